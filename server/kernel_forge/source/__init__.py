"""CUDA text as a model: kernels, parameters, launches, macros, spec blocks, and where each of them is.

Invariant: pure. Nothing here reads a file, and broken code never raises. Only this package knows the parser
and its byte offsets; everything it gives out counts code points.
"""

from kernel_forge.source.comments import CommentBlock
from kernel_forge.source.file import MAX_BYTES, SourceFile, parse
from kernel_forge.source.model import Constant, Kernel, LaunchSite, Macro, Param, SharedArray, Symbol, TemplateParam

__all__ = [
    "MAX_BYTES",
    "CommentBlock",
    "Constant",
    "Kernel",
    "LaunchSite",
    "Macro",
    "Param",
    "SharedArray",
    "SourceFile",
    "Symbol",
    "TemplateParam",
    "parse",
]

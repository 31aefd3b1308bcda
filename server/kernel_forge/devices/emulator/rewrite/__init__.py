"""Turning CUDA text into C++ text for the host's compiler, token by token and line by line.

Invariant: line N of the result is line N of the source, so that every message and address leads back.
"""

from kernel_forge.devices.emulator.rewrite.rewriter import NOT_EMULATED, Rewritten, rewrite
from kernel_forge.devices.emulator.rewrite.translation import Translation, translate

__all__ = ["NOT_EMULATED", "Rewritten", "Translation", "rewrite", "translate"]

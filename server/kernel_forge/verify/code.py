"""What the text of the kernels under test shows: the numbers they compare with."""

import re

from kernel_forge.domain.spec import KernelSpec
from kernel_forge.source import Constant, Macro, SourceFile
from kernel_forge.spec.signature import kernel_name

_NUMBER = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?=[fFlLuU]*(?![\w.]))")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def thresholds(spec: KernelSpec, source: SourceFile) -> tuple[float, ...]:
    """Numbers written in the kernels, and in the macros and constants they name, with both signs; no sizes of loops."""
    text = _bodies(spec, source)
    constants: tuple[Macro | Constant, ...] = (*source.macros, *source.constants)
    named = [c.value for c in constants if re.search(rf"\b{re.escape(c.name)}\b", text)]
    found: dict[float, None] = {}
    for part in (text, *named):
        for match in _NUMBER.finditer(part):
            value = float(match.group())
            if value not in (0.0, 1.0):
                found[value] = None
    ordered = sorted(found, key=lambda v: v.is_integer())  # fractions are no sizes of blocks
    return tuple(s * v for v in ordered for s in (1.0, -1.0))


def _bodies(spec: KernelSpec, source: SourceFile) -> str:
    launched = {kernel_name(launch.kernel) for launch in spec.launches}
    parts = []
    for kernel in source.kernels:
        if kernel.name in launched and kernel.body_range is not None:
            start, end = source.offset(kernel.body_range.start), source.offset(kernel.body_range.end)
            parts.append(source.text[start:end])
    return _COMMENT.sub(" ", "\n".join(parts))

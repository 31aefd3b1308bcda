"""What comes out of a compilation for a GPU."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class GpuCode:
    """A cubin. ``entries`` maps kernels and symbols, as requested, to linker names; ``resources`` has the kernels."""

    image: bytes
    entries: Mapping[str, str]
    resources: Mapping[str, Resources]
    messages: tuple[CompilerMessage, ...]
    compiler: str


Compiled = GpuCode | CompileFailed | Unavailable

_ARCHITECTURE = re.compile(
    r"^.*(invalid value for --gpu-architecture|unsupported gpu architecture|is not defined for option 'gpu-arch).*$",
    re.IGNORECASE | re.MULTILINE,
)


def refused_architecture(log: str) -> str | None:
    """What a compiler says of a GPU that is older or newer than itself: no fault of the code."""
    match = _ARCHITECTURE.search(log)
    return None if match is None else match[0].strip()[:300]

"""What comes out of a compilation for a GPU."""

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

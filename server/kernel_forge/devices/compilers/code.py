"""What goes into a compilation for a GPU and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class DeviceSources:
    """The user's code without what only a host compiles.

    Attributes:
        texts: path -> original text, the main file first.
        device_texts: path -> text with host-only code blanked, main file first.
        headers: name as included -> path of the local header it means.
        dropped: headers of host libraries that the main file or a header includes.
    """

    texts: Mapping[str, str]
    device_texts: Mapping[str, str]
    headers: Mapping[str, str]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuCode:
    """A cubin. ``entries`` maps kernels and symbols, as requested, to linker names; ``resources`` has the kernels."""

    image: bytes
    entries: Mapping[str, str]
    resources: Mapping[str, Resources]
    messages: tuple[CompilerMessage, ...]
    compiler: str


Compiled = GpuCode | CompileFailed | Unavailable

"""A kernel that is proposed for a spec. Templates and models propose the same thing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.expression import Number

LaunchTable = Mapping[str, object]
"""One table of ``[launch]`` as a spec block has it: ``kernel``, ``grid``, ``block``, ``shared``, ``args``, ..."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Source and everything of a spec block that is the author's to decide; compiled and believed by nobody yet.

    Attributes:
        source: CUDA with LF line ends: the macros of the tunables with their defaults, then the kernels. No spec block.
        launch: in the order of execution; at least one.
        scratch: buffers between the launches, as ``[args]`` has them: name -> ``{shape, dtype}``.
        tune: the values of each tunable, in the order of ``[tune]``.
        where: constraints on configurations.
        idea: what the kernel does and why, for the person who reads it; a sentence or two.
    """

    source: str
    launch: tuple[LaunchTable, ...]
    scratch: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    tune: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    idea: str = ""

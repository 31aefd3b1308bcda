"""The contract of one kernel, as parsed from its spec block and its signature."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.text import Location, Range
from kernel_forge.domain.texture import Sampling

BLOCK_MARKER = "/// kernel-forge"
"""What opens a spec block, inside a ``//`` comment."""

Sizes = Mapping[str, int]
Configuration = Mapping[str, Number]
"""Tunable parameter -> chosen value."""


class Role(Enum):
    """What a kernel does with an argument's memory."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class NamedInit:
    """A built-in distribution: normal, uniform, permutation, sorted or adversarial."""

    name: str


@dataclass(frozen=True, slots=True)
class IntegersInit:
    """Integers drawn uniformly from ``low <= v < high``; either may depend on the sizes."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class ConstantInit:
    """Every element the same ``value``."""

    value: Number


@dataclass(frozen=True, slots=True)
class FunctionInit:
    """``function(rng, shape, **sizes)`` in the Python file at ``path`` returns the array."""

    path: str
    function: str


Init = NamedInit | IntegersInit | ConstantInit | FunctionInit


@dataclass(frozen=True, slots=True)
class BufferArg:
    """An array in device memory: a pointer parameter, a ``__constant__`` symbol, scratch, or a texture.

    ``shape`` counts *scalars*, so a ``float4*`` over n floats has shape ``[n]`` and ``lanes`` 4. That of a texture has
    its texels' extents and, where they have several lanes, the lanes as a last dimension.
    ``texture`` says how fetches read it; None for what is no texture. ``init`` is None where the default for the dtype
    applies (normal for floats).
    """

    name: str
    dtype: DType
    shape: tuple[Expression, ...]
    role: Role
    init: Init | None = None
    lanes: int = 1
    is_symbol: bool = False
    location: Location | None = None
    texture: Sampling | None = None


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A parameter passed by value: a size, a fixed number, or an expression over sizes and tunables."""

    name: str
    dtype: DType
    value: Expression
    location: Location | None = None


Arg = BufferArg | ScalarArg


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One kernel launch.

    ``kernel`` is the C++ expression to launch, template arguments included (``f<BLOCK, 4>``; tunable
    names in it reach the compiler as macros or are replaced by their values). ``args`` name, in parameter
    order, entries of ``KernelSpec.args``; ``types`` are the element types of these parameters, where known (one
    scalar may be an ``int`` in one launch and a ``size_t`` in another).
    ``grid``, ``block`` and ``cluster`` have 1 to 3 entries; ``stream`` as in
    :class:`~kernel_forge.domain.launch.Launch`.
    """

    kernel: str
    args: tuple[str, ...]
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression
    cluster: tuple[Expression, ...] = ()
    cooperative: bool = False
    stream: str | None = None
    location: Location | None = None
    types: tuple[DType | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpressionReference:
    """A NumPy expression over the argument names, evaluated in float64."""

    text: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """``function`` in the Python file at ``path``; takes arguments by name, returns output or mapping."""

    path: str
    function: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class KernelReference:
    """Another kernel of the same file, run on the same device with its own launch(es)."""

    launches: tuple[LaunchSpec, ...]
    kernel: str
    location: Location | None = None


Reference = ExpressionReference | FunctionReference | KernelReference


@dataclass(frozen=True, slots=True)
class Tunable:
    """A tunable parameter: its admissible values, first to last, and the default in the source."""

    name: str
    values: tuple[Number, ...]
    default: Number
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A tolerance the user widened: |got - want| <= absolute + relative * |want|. Shown in every verdict."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class KernelSpec:
    """Everything a verification needs to know about one kernel.

    Attributes:
        kernel: name of the kernel, without template arguments; several launches are named by the first
            kernel of the block's ``kernel`` key.
        path: the CUDA source, absolute.
        block_range: range of the spec block in its own file (``block_path``).
        name_range: range of the kernel's name in ``path``: where verdicts are shown.
        args: every buffer and scalar that some launch uses, in the first launch's order, scratch last.
        references: output name -> what it must be. A function reference that serves several outputs is
            repeated under each.
        cases: bindings of the sizes; the first is the tuning case.
        where: constraints on the sizes.
        tune_where: constraints on configurations (may name sizes too).
    """

    kernel: str
    path: str
    block_path: str
    block_range: Range
    name_range: Range
    args: tuple[Arg, ...]
    launches: tuple[LaunchSpec, ...]
    references: Mapping[str, Reference]
    cases: tuple[Sizes, ...]
    where: tuple[Expression, ...] = ()
    tunables: tuple[Tunable, ...] = ()
    tune_where: tuple[Expression, ...] = ()
    tolerance: Tolerance | None = None
    baseline: str | None = None
    gate: float | None = None
    macro_tunables: frozenset[str] = field(default=frozenset())
    """Tunables that reach the code as ``-D`` macros (the others are template arguments)."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the sizes, in the order of the first case."""
        return tuple(self.cases[0]) if self.cases else ()

    @property
    def default_configuration(self) -> Configuration:
        """Each tunable at its default."""
        return {t.name: t.default for t in self.tunables}

    @property
    def outputs(self) -> tuple[BufferArg, ...]:
        """Buffers the kernel must produce (roles out and inout)."""
        return tuple(a for a in self.args if isinstance(a, BufferArg) and a.role in (Role.OUT, Role.INOUT))

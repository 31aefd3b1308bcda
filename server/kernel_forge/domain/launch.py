"""What a device is asked to compile and run: fully bound, no expressions left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.texture import Texture

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Source to compile for a set of kernel instances.

    Attributes:
        path: the file as the user knows it; messages name it. Local includes resolve beside it.
        text: the source text (the editor's snapshot, not necessarily what is on disk).
        kernels: C++ expressions to be launchable, e.g. ``("scale", "reduce<256, float>")``.
        symbols: ``__constant__``/``__device__`` variables to be writable from outside.
        defines: macro -> value, as ``-D``.
        include_dirs: directories for ``#include``, absolute.
        flags: further compiler flags of the user.
        time_limit: seconds for the whole compilation.
    """

    path: str
    text: str
    kernels: tuple[str, ...]
    symbols: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    include_dirs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    time_limit: float = 60.0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Device memory for one run.

    Attributes:
        name: unique in the run; reports speak of it.
        data: initial contents, C-contiguous; None means :func:`poison` with ``RunRequest.poison_seed``, so
            that a stale or unwritten element differs between runs.
        nbytes: size in bytes (0 is legal: a valid pointer that may not be dereferenced).
        dtype: element type.
        writable: whether the kernel may write. Every buffer is checked for changes outside its bounds;
            one that is not writable also for changes inside.
        symbol: a ``__constant__``/``__device__`` variable instead of an allocation.
        texture: its elements are the texels of a texture instead of an allocation: a reference passes the texture
            object. Never writable and never without texels.
    """

    name: str
    dtype: DType
    nbytes: int
    data: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None = None
    writable: bool = True
    symbol: bool = False
    texture: Texture | None = None


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A pointer argument: the start of the buffer of that name; for a texture, its object."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A by-value argument."""

    dtype: DType
    value: int | float | bool

    def encoded(self) -> bytes:
        """The argument as it lies in memory; an integer wraps as it does in C."""
        if self.dtype is DType.BOOL:
            return bytes([bool(self.value)])
        return np.asarray(self.value).astype(self.dtype.numpy).tobytes()


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch with concrete numbers; ``kernel`` is one of ``CompileRequest.kernels``.

    ``stream`` None is the default stream: it begins when all earlier launches have ended, and later ones begin when it
    has. Launches of one named stream follow each other; those of different ones may run at the same time.
    """

    kernel: str
    args: tuple[BufferRef | Scalar, ...]
    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    cluster: Dim3 | None = None
    cooperative: bool = False
    stream: str | None = None


class Schedule(Enum):
    """Order in which a device that can choose runs the threads between two barriers."""

    FORWARD = "forward"
    REVERSE = "reverse"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Watch:
    """Ask which thread and line last wrote bytes ``offset .. offset + nbytes`` of ``buffer``."""

    buffer: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Launches to run on fresh buffers, one after the other but for their streams.

    Attributes:
        buffers: all memory of the run.
        launches: in order.
        schedule: honoured by devices with ``DeviceInfo.has_schedules``.
        schedule_seed: for ``Schedule.RANDOM``.
        poison_seed: selects the poison pattern of uninitialised buffers, guard bands and shared memory.
        time_limit: seconds of run time.
        output_limit: bytes of ``printf`` text kept; more ends the run.
        watch: see :class:`Watch`; honoured where ``DeviceInfo.has_watch``.
    """

    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    schedule: Schedule = Schedule.FORWARD
    schedule_seed: int = 0
    poison_seed: int = 0
    time_limit: float = 10.0
    output_limit: int = 1 << 20
    watch: Watch | None = None


def poison(dtype: DType, count: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """``count`` elements that no kernel writes by chance: what uninitialised buffers hold before a run.

    All elements are equal. Neighbouring seeds give different values, alternating between NaN (even) and a
    large finite number (odd) for floats, so that a kernel that reads them, or writes a value that happens to
    be one of them, shows in a second run with another seed.
    """
    variant = seed % 61
    if dtype is DType.BOOL:
        return np.full(count, seed % 2 == 1)
    bits = np.dtype(f"u{dtype.itemsize}")
    if not dtype.is_float:
        pattern = int.from_bytes(bytes([0xA5 - variant]) * dtype.itemsize, "little")
    else:
        nan, large = _FLOAT_POISON[dtype]
        pattern = (large if seed % 2 else nan) + variant
    return np.full(count, pattern, dtype=bits).view(dtype.numpy)


_FLOAT_POISON = {
    DType.FLOAT16: (0x7E40, 0x7140),
    DType.BFLOAT16: (0x7FC0, 0x7140),
    DType.FLOAT32: (0x7FC0_A000, 0x7149_A000),
    DType.FLOAT64: (0x7FF8_0000_A000_0000, 0x7149_0000_A000_0000),
}

"""The closed set of things that can come of compiling, running and verifying a kernel.

Match on these exhaustively; never on strings. ``Unavailable`` means the question was not answered: it
never counts against the kernel nor for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from kernel_forge.domain.launch import Dim3
from kernel_forge.domain.text import Location


@dataclass(frozen=True, slots=True)
class Thread:
    """A CUDA thread: its block and its index in the block, each (x, y, z)."""

    block: Dim3
    thread: Dim3

    def __str__(self) -> str:
        """``block (3,0,0), thread (17,0,0)``."""
        b, t = self.block, self.thread
        return f"block ({b[0]},{b[1]},{b[2]}), thread ({t[0]},{t[1]},{t[2]})"


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One message of a compiler. ``severity`` is error, warning or note; ``origin`` names the compiler."""

    severity: str
    message: str
    location: Location | None
    origin: str


@dataclass(frozen=True, slots=True)
class CompileFailed:
    """The code does not compile for the target: the user's to mend."""

    messages: tuple[CompilerMessage, ...]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The device cannot answer (feature it does not have, nothing installed). Never a verdict.

    ``of_spec`` says that it would not help to have another device: a reference or an ``init`` of the spec fails.
    """

    reason: str
    location: Location | None = None
    of_spec: bool = False


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The launch was refused or the kernel ended itself: bad grid, assert, trap, too much output or memory.

    ``kind`` is one of: configuration, assert, trap, output-limit, memory-limit, crash.
    """

    kind: str
    message: str
    location: Location | None = None
    thread: Thread | None = None


@dataclass(frozen=True, slots=True)
class MemoryFault:
    """An access outside what the kernel may touch.

    ``kind`` is one of: out-of-bounds, null, misaligned, read-only (a write to an input), guard-band (a write found
    after the run, no line known), stack-overflow, unwritten (a read of what nobody has written). ``buffer`` and
    ``offset`` (bytes from its start, negative before it) are None when the address is near no buffer. ``watch_hit``
    answers a :class:`~kernel_forge.domain.launch.Watch` where the fault was found after the run.
    """

    kind: str
    message: str
    location: Location | None = None
    thread: Thread | None = None
    buffer: str | None = None
    offset: int | None = None
    is_write: bool | None = None
    watch_hit: "WatchHit | None" = None


@dataclass(frozen=True, slots=True)
class RaceFound:
    """The result depends on the order of threads. ``locations`` are the accesses, where known."""

    message: str
    locations: tuple[Location, ...] = ()
    thread: Thread | None = None


@dataclass(frozen=True, slots=True)
class BarrierDivergence:
    """Threads wait at different barriers, for lanes that are gone, or for each other for ever.

    ``kind`` is one of: barrier, warp-mask, deadlock.
    """

    kind: str
    message: str
    locations: tuple[Location, ...] = ()
    thread: Thread | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The kernel did not end within the limit. ``location`` is where some thread was, if known."""

    seconds: float
    message: str
    location: Location | None = None
    thread: Thread | None = None


@dataclass(frozen=True, slots=True)
class WatchHit:
    """Who wrote a watched element last, and where; ``location`` None where the line is not known."""

    thread: Thread
    location: Location | None


@dataclass(frozen=True, slots=True)
class Ran:
    """The launches ended normally.

    ``contents`` has, per writable buffer, its bytes after the run as a flat array of its dtype.
    ``text`` is what ``printf`` printed. ``seconds`` is the wall time of the launches *on this device*:
    on an emulator it says nothing about a GPU.
    """

    contents: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]
    text: str = ""
    seconds: float = 0.0
    watch_hit: WatchHit | None = None


RunFailure = LaunchFailed | MemoryFault | BarrierDivergence | TimedOut | Unavailable
RunOutcome = Ran | RunFailure
SanitizerFailure = MemoryFault | RaceFound | BarrierDivergence | LaunchFailed


class MismatchKind(Enum):
    """Why an output is not accepted."""

    WRONG_VALUE = "wrong value"
    NOT_WRITTEN = "not written"
    INSENSITIVE = "does not depend on the inputs"
    UNWRITTEN_READ = "is computed from memory that was never written"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An output differs from its reference beyond the tolerance.

    ``index`` is the first wrong element (row-major, in the output's shape), ``expected``/``got`` its
    values, ``tolerance`` the largest absolute difference accepted there. ``max_relative`` and ``max_ulp``
    are None for integers. ``owner`` and ``location`` tell which thread wrote the element and on which
    line, where the device could say.
    """

    kind: MismatchKind
    output: str
    count: int
    total: int
    index: tuple[int, ...]
    expected: float | int | None
    got: float | int | None
    tolerance: float
    max_absolute: float
    max_relative: float | None = None
    max_ulp: float | None = None
    owner: Thread | None = None
    location: Location | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    """Every check of the policy that this device offers was made and held.

    ``worst`` maps each output to its largest error as a fraction of the tolerance (0 exact, 1 just in).
    """

    cases: int
    runs: int
    worst: Mapping[str, float] = field(default_factory=dict)


Outcome = (
    Passed
    | Mismatch
    | CompileFailed
    | LaunchFailed
    | MemoryFault
    | RaceFound
    | BarrierDivergence
    | TimedOut
    | Unavailable
)


@dataclass(frozen=True, slots=True)
class CaseId:
    """Which inputs a run used, enough to repeat it: sizes, kind of inputs, seed, why it was chosen."""

    sizes: Mapping[str, int]
    inputs: str
    seed: int
    origin: str


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch of a case: blocks and threads by axis, and the dynamic shared memory."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of differential verification of one kernel at one configuration.

    Attributes:
        case: the smallest failing case; None where the outcome belongs to no case.
        launches: of that case.
        seed: the master seed; the same seed repeats the same verification.
        device: name of the device, e.g. ``emulator``.
        basis: what the words may claim: ``emulated`` or ``measured on NVIDIA H200``.
        checks: names of the policy's steps that were made, in order.
        skipped: step -> why this device could not make it.
        notes: things every surface must show (widened tolerance, compiler used, ...).
        warnings: what the CUDA compiler warned of.
    """

    kernel: str
    path: str
    outcome: Outcome
    configuration: Mapping[str, int | float | bool]
    seed: int
    device: str
    basis: str
    case: CaseId | None = None
    checks: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    warnings: tuple[CompilerMessage, ...] = ()
    launches: tuple[Launched, ...] = ()

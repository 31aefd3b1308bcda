"""What the pipeline asks of the outside world, as Protocols; adapters live in ``devices/``, ``ledger/``, ``llm/``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kernel_forge.domain.launch import CompileRequest, RunRequest
from kernel_forge.domain.measurement import Peaks, TimingPlan, Timings
from kernel_forge.domain.model import ModelFailure, ModelProgress, ModelReply, ModelRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, RunOutcome, SanitizerFailure, Unavailable
from kernel_forge.domain.performance import Counters
from kernel_forge.domain.record import Anchor, Audit, BadEntry, Entry, Record, Selection, Unreadable
from kernel_forge.domain.resources import Resources

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device is and can do.

    Attributes:
        name: as given to ``--device``.
        description: one line for a person.
        basis: how results must be called, e.g. ``emulated``.
        unavailable: None when usable, else the reason and what to install.
        has_schedules: runs the same launch in different thread orders on request.
        has_watch: can tell who wrote an element.
        has_places: tells the line and thread of a fault.
        has_misuse_checks: finds divergent barriers and wrong warp masks.
        sanitizer: None where :meth:`Device.sanitize` works, else why it does not.
        facts: further name -> value for ``kernel-forge devices``.
    """

    name: str
    description: str
    basis: str
    unavailable: str | None = None
    has_schedules: bool = False
    has_watch: bool = False
    has_places: bool = False
    has_misuse_checks: bool = False
    sanitizer: str | None = "this device has no sanitizer"
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something compiled. ``handle`` is opaque and belongs to the device that made it.

    ``resources`` says what each kernel takes of a multiprocessor, where the device has such.
    """

    handle: str
    kernels: tuple[str, ...]
    messages: tuple[CompilerMessage, ...] = ()
    from_cache: bool = False
    resources: Mapping[str, Resources] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trial:
    """Something to time: all launches of ``request``, one after the other, count as one execution."""

    artifact: Artifact
    request: RunRequest


class Device(Protocol):
    """Where kernels run.

    Contract (kept by ``tests/contracts/device_suite.py`` for every device): methods block, return within the time
    limits of their requests plus ten seconds, leave no process behind (also when the caller is killed), are safe to
    call from several threads, and never raise for anything the kernel or its source does wrong.
    """

    def info(self) -> DeviceInfo:
        """What this device is; never raises. The first call may start a process, later ones are cheap."""
        ...

    def prepare(self) -> Unavailable | None:
        """Make what a device needs once, before its first use on a machine; at once where it is there already.

        The one method without a time limit: it may compile parts of ours for minutes. Returns why the device
        cannot be used, else None.
        """
        ...

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        """Compile for this device, from the cache where nothing changed."""
        ...

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        """Run the launches on fresh buffers and give back what they did."""
        ...

    def sanitize(
        self, artifact: Artifact, request: RunRequest, tools: Sequence[str] = SANITIZERS
    ) -> tuple[SanitizerFailure, ...] | Unavailable:
        """What ``tools`` (of :data:`SANITIZERS`) find in one execution; empty where all is well.

        Each tool runs it again, far slower than :meth:`run` does: the request's time limit is for one tool.
        """
        ...

    def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
        """Time the trials against each other, samples interleaved. Each trial may take ``request.time_limit`` more."""
        ...

    def peaks(self) -> Peaks | Unavailable:
        """What the device does at best, measured at the first call on a machine and kept."""
        ...

    def profile(self, artifact: Artifact, request: RunRequest) -> tuple[Counters, ...] | Unavailable:
        """Hardware counters of one execution, launch by launch, where the device has them and permits reading them."""
        ...


class Ledger(Protocol):
    """The record of runs of one project: entries are added, never changed.

    Safe to call from several threads and from several processes at once. Every method raises LedgerUnavailable, and
    nothing else, where the ledger cannot be read or written.
    """

    @property
    def place(self) -> str:
        """Where it is kept, for a message."""
        ...

    def append(self, record: Record) -> Entry:
        """Write ``record`` down. Once this returns, the entry outlives the death of any process.

        Refused where the search that it belongs to is not there, or not the one that was claimed.
        """
        ...

    def entry(self, number: int) -> Entry | Unreadable | None:
        """The entry of that number, if there is one."""
        ...

    def entries(self, selection: Selection) -> tuple[Entry, ...]:
        """The entries of ``selection``, the newest first; none where there is no ledger yet.

        What is unreadable is passed over.
        """
        ...

    def listing(self, selection: Selection) -> tuple[Entry | Unreadable, ...]:
        """The same with what is unreadable, in its place."""
        ...

    def unfinished(self, key: str) -> tuple[Entry, ...]:
        """Searches (``tune``) of that key that have no end yet, the newest first."""
        ...

    def claim(self, run: int) -> Callable[[], None] | None:
        """Be the one process that is at a search; returns what ends that, None where another process is at it.

        The death of a process ends its claims.
        """
        ...

    def check(self, run: int) -> BadEntry | None:
        """The first entry that is not as it was written, from that of a search to the last that belongs to it."""
        ...

    def audit(self, anchor: Anchor | None = None) -> Audit:
        """Check every entry against its hash and the one before, and all against an ``anchor`` taken earlier.

        Without an anchor the loss of the newest entries, or a ledger written anew from some entry on, cannot show.
        """
        ...

    def settle(self) -> None:
        """Have what was written on the disk itself, where it outlives a power failure too."""
        ...

    def close(self) -> None:
        """Settle and let go of what is held open; the ledger can be used again."""
        ...


FindLedger = Callable[[str], Ledger | None]
"""The ledger for the runs of a file (given absolute); None where none are to be recorded."""


class Model(Protocol):
    """A language model. One object serves one job and its budget; several calls may be under way at a time."""

    @property
    def name(self) -> str:
        """Which model, as the provider names it."""
        ...

    def preview(self, request: ModelRequest) -> str | ModelFailure:
        """The text that :meth:`ask` would send, part by part and verbatim, or why it would not be sent."""
        ...

    async def ask(
        self, request: ModelRequest, progress: Callable[[ModelProgress], None] = lambda _: None
    ) -> ModelReply | ModelFailure:
        """The answer, after the retries that help; never raises for what a server or a network does.

        Ends within the time limits of the model. Cancelling the task that waits here ends the call at once; its
        connection is closed, and what it can have cost is counted.
        """
        ...

    def cancel(self) -> None:
        """End every call within a second, and refuse later ones: each returns a failure CANCELLED. Thread-safe."""
        ...

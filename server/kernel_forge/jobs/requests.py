"""What is asked of a job and what comes back: plain values, so that an owner need not import what does the work."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import TimingPlan
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.performance import KernelTiming
from kernel_forge.domain.record import Number, Platform, Subject
from kernel_forge.domain.spec import BLOCK_MARKER, Sizes
from kernel_forge.domain.text import Location
from kernel_forge.domain.tuning import Budget, KernelTuning

MARGIN_SECONDS = 30.0
FINALISTS = 5
"""How many configurations a search times again at the end; each may have to be verified."""
_TABLE = re.compile(r"^\s*\[kernels\.", re.MULTILINE)


@dataclass(frozen=True)
class KernelRequest:
    """Which kernels of which text, where and how.

    Attributes:
        path: the CUDA file, absolute.
        text: its text (the editor's, not necessarily what is on disk).
        sidecar: path and text of ``name.forge.toml``, where there is one.
        kernel: only the kernel of that name; None for all with a spec.
        device: name of the device.
        seed: None draws a fresh one.
        configuration: values of tunables instead of their defaults.
        flags: for the CUDA compiler, see :mod:`kernel_forge.jobs.compiler_flags`.
        time_limit: seconds for compiling and verifying one kernel.
    """

    path: str
    text: str
    sidecar: tuple[str, str] | None = None
    kernel: str | None = None
    device: str = "auto"
    seed: int | None = None
    configuration: Mapping[str, int | float | bool] = field(default_factory=dict)
    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    time_limit: float = 120.0

    @property
    def spec_count(self) -> int:
        """How many kernels the job concerns at most, read off without parsing; at least 1."""
        if self.kernel is not None:
            return 1
        tables = len(_TABLE.findall(self.sidecar[1])) if self.sidecar is not None else 0
        return max(1, self.text.count(BLOCK_MARKER) + tables)


@dataclass(frozen=True)
class VerifyRequest(KernelRequest):
    """What to verify; ``sanitize`` runs a few cases under the device's sanitizers too."""

    sanitize: bool = False

    @property
    def wall_limit(self) -> float:
        """Seconds after which the whole job is stopped."""
        return self.time_limit * self.spec_count + MARGIN_SECONDS


@dataclass(frozen=True)
class FileReport:
    """What a verify job found: every problem of the specs, and a verdict per kernel verified.

    ``ran_python`` tells that the user's Python was run, which may have left anything in its process.
    """

    problems: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    ran_python: bool = False


@dataclass(frozen=True)
class TimeRequest(KernelRequest):
    """What to time; timing has the budget of the plan beside ``time_limit``.

    Attributes:
        sizes: values of sizes in place of those of the first case.
        plan: how carefully.
        profile: read hardware counters too.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    plan: TimingPlan = field(default_factory=TimingPlan)
    profile: bool = False

    @property
    def wall_limit(self) -> float:
        """Seconds after which the whole job is stopped; the peaks of the device may have to be measured first."""
        return (self.time_limit + self.plan.budget + MARGIN_SECONDS) * self.spec_count + 2 * MARGIN_SECONDS


@dataclass(frozen=True)
class TimeReport:
    """What a time job found: per kernel its time, or a verdict that says why it has none."""

    problems: tuple[Finding, ...]
    results: tuple[KernelTiming | Verdict, ...]


@dataclass(frozen=True)
class TuneRequest(KernelRequest):
    """What to tune. ``configuration`` fixes tunables: those named there are not searched.

    ``time_limit`` bounds the final verification of one configuration.

    Attributes:
        cases: sizes to tune for, each with every size of the spec or a part of them (the rest are the first case's);
            empty for the first case.
        budget: of the search.
        sampler: a key of :data:`kernel_forge.search.SAMPLERS`.
        fresh: begin anew although an unfinished search of the same is recorded.
        energy: measure the energy of the finalists too, where the device can.
    """

    cases: tuple[Sizes, ...] = ()
    budget: Budget = field(default_factory=Budget)
    sampler: str = "portfolio"
    fresh: bool = False
    energy: bool = False

    @property
    def wall_limit(self) -> float:
        """Seconds after which the whole job is stopped: a day where the budget itself has no limit of time."""
        searching = 86400.0 if self.budget.seconds is None else 2 * self.budget.seconds
        verified = FINALISTS + 1 + 2 * len(self.cases)
        return (searching + verified * self.time_limit + (4 + 3 * len(self.cases)) * MARGIN_SECONDS) * self.spec_count


@dataclass(frozen=True)
class TuneReport:
    """What a tune job found: per kernel what came of it, or a verdict that says why it was not tuned."""

    problems: tuple[Finding, ...]
    results: tuple[KernelTuning | Verdict, ...]


Request = VerifyRequest | TimeRequest | TuneRequest
JobReport = FileReport | TimeReport | TuneReport


@dataclass(frozen=True)
class Undertaking:
    """One kernel of a job; ``seed`` where it is known before the verdict says it."""

    subject: Subject
    configuration: Mapping[str, Number]
    seed: int | None = None


@dataclass(frozen=True)
class Circumstances:
    """What the ledger keeps beside what comes of a job: where it runs, and each kernel, in the order of the report.

    A worker tells them before anything of the user's is run, so that they are known even of a job that crashes.
    """

    platform: Platform
    undertakings: tuple[Undertaking, ...]


@dataclass(frozen=True)
class JobFailed:
    """A job that gave no report.

    ``kind`` is usage, unavailable, internal, crashed, time-limit, or reference: Python of the user's ended or blocked
    the worker, and ``location`` is the place that asks for it.
    """

    kind: str
    message: str
    log: str = ""
    location: Location | None = None

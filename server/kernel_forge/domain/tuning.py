"""What a tuning run is asked for, tells while it runs, and finds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL, Measurement
from kernel_forge.domain.outcome import Outcome, Verdict
from kernel_forge.domain.performance import Attained, Occupancy
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.text import Location

_Chosen = TypeVar("_Chosen", "TunedTrial", "Contender", "CaseChoice", Verdict)
SAME = 0.01
"""Speed-ups below this are none: medians of one kernel in seven fresh processes differ by up to 0.6 % on an H200
(``scripts/bench timing``)."""
WRONG = ("wrong", "memory fault", "race", "barrier", "ends itself")
"""How :attr:`TunedTrial.failure` begins where the kernel itself is at fault, and not its use of resources."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search ends: whatever comes first.

    Attributes:
        trials: configurations tried, failed ones too; None for no limit.
        seconds: of searching, without the final verification; None for no limit.
        patience: trials in a row without a new best; None for no limit.
    """

    trials: int | None = 100
    seconds: float | None = 60.0
    patience: int | None = None


@dataclass(frozen=True, slots=True)
class TunedTrial:
    """One configuration tried.

    Attributes:
        seconds: time per case, in the order of the cases; None where it failed. With fewer samples than a final time.
        failure: why it has no time, in a few words.
        early: hopeless at once, so that it was given few samples.
        reason: why it was tried before the sampler was asked; None where the sampler chose it.
        outcome: what came of it where it failed, and ``case`` the sizes that it failed at; None where that is not
            known (of a trial of an earlier process only ``failure`` is).
    """

    configuration: Configuration
    seconds: tuple[float, ...] | None
    failure: str | None = None
    early: bool = False
    reason: str | None = None
    outcome: Outcome | None = None
    case: Sizes | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the kernel is wrong with this configuration: another result, a fault, a race.

        Not where it does not compile or launch for lack of resources, takes too long, or could not be judged.
        """
        return self.failure is not None and self.failure.partition(":")[0] in WRONG

    @property
    def place(self) -> Location | None:
        """Where in the code it failed, if known."""
        found = getattr(self.outcome, "locations", ())
        return found[0] if found else getattr(self.outcome, "location", None)

    @property
    def value(self) -> float | None:
        """What the search makes small: the geometric mean over the cases, in seconds."""
        return None if self.seconds is None else geometric_mean(self.seconds)


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        trials: so far; ``failed`` of them have no time.
        limit: trials of the budget, or valid configurations where these are fewer; None where neither is a limit.
        baseline, best: seconds (geometric mean over the cases) of the default and of the best so far.
        configuration: of the best so far.
        convergence: the best time after each trial, from the first that has one, or after some of very many; seconds.
        remaining: seconds left, estimated; None while unknown.
    """

    trials: int
    failed: int
    limit: int | None
    baseline: float | None
    best: float | None
    configuration: Configuration
    convergence: tuple[float, ...]
    remaining: float | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time of one over time of another, with its 95 % interval; of ``samples`` in the shorter of the two measurements:
    with fewer than :data:`~kernel_forge.domain.measurement.FEWEST_FOR_INTERVAL` it is no interval but a range."""

    value: float
    low: float
    high: float
    samples: int = FEWEST_FOR_INTERVAL

    @property
    def has_interval(self) -> bool:
        """Whether there were samples enough to be sure of anything."""
        return self.samples >= FEWEST_FOR_INTERVAL

    @property
    def is_faster(self) -> bool:
        """Whether it is above 1 for sure, by more than what one kernel differs from itself in another process."""
        return self.has_interval and self.low > 1.0 + SAME


@dataclass(frozen=True, slots=True)
class Contender:
    """A configuration that was timed at the end, interleaved with the others that are left.

    Attributes:
        times: per case.
        speedup: the baseline's time over its own (geometric mean over the cases); None without a baseline.
        joules: energy of one execution, per case; empty where it was not measured.
    """

    configuration: Configuration
    times: tuple[Measurement, ...]
    speedup: Ratio | None = None
    joules: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """Geometric mean over the cases."""
        return geometric_mean([t.seconds for t in self.times])


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """The best configuration of one case, where several cases were tuned at once; ``speedup`` over the default."""

    sizes: Sizes
    configuration: Configuration
    seconds: float
    speedup: Ratio | None


@dataclass(frozen=True, slots=True)
class SpaceFacts:
    """The search space: how many ``combinations``, how many of them ``valid``, and the values of each parameter."""

    combinations: int
    valid: int
    parameters: Mapping[str, tuple[int | float | bool, ...]]


@dataclass(frozen=True)
class KernelTuning:
    """What came of tuning one kernel.

    Attributes:
        cases: the sizes it was tuned for.
        basis: what the times are: ``emulated``, ``measured on NVIDIA H200``.
        ended: why the search ended: ``trials``, ``seconds``, ``patience``, ``exhausted`` (every valid configuration was
            tried) or ``stopped`` (on request).
        trials: every one, in the order they were told.
        resumed: how many of them were taken over from the ledger.
        baseline: the default configuration, timed beside the winner; None where it does not run on this
            device or fails the full verification, as the notes then say.
        winner: verified in full; the baseline itself where nothing was faster for sure.
        verdict: of the winner, at its configuration.
        default_verdict: of the default, verified in full as the winner is; None where it does not run here.
        finalists: all that were timed at the end, the winner and the baseline among them, fastest first.
        rejected: configurations that were fast in the search and are not right, or could not be shown to be; the
            default is none of them.
        choices: the best configuration per case, where several cases were tuned; verified as the winner is.
        attained, occupancy: of the winner at the first case.
        run: number of the search in the ledger.
        seconds: wall time of the whole.
        search_seconds: how much of it the search itself took, without the final timing and verification, and without
            what an earlier process did; None where that is not known.
        notes: things every surface must show.
    """

    kernel: str
    path: str
    device: str
    basis: str
    cases: tuple[Sizes, ...]
    space: SpaceFacts
    sampler: str
    seed: int
    budget: Budget
    ended: str
    trials: tuple[TunedTrial, ...]
    baseline: Contender | None
    winner: Contender
    verdict: Verdict
    default_verdict: Verdict | None = None
    finalists: tuple[Contender, ...] = ()
    rejected: tuple[Verdict, ...] = ()
    choices: tuple[CaseChoice, ...] = ()
    attained: Attained | None = None
    occupancy: Occupancy | None = None
    resumed: int = 0
    run: int | None = None
    seconds: float = 0.0
    search_seconds: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_improved(self) -> bool:
        """Whether the winner is another configuration than the default."""
        return self.baseline is None or dict(self.winner.configuration) != dict(self.baseline.configuration)

    @property
    def convergence(self) -> tuple[float, ...]:
        """The best time after each trial, from the first that has one; seconds."""
        return convergence(self.trials)

    @property
    def failed(self) -> int:
        """Trials without a time."""
        return sum(t.seconds is None for t in self.trials)


def in_order(tuning: KernelTuning) -> KernelTuning:
    """The same with every configuration in the order of the space's parameters: a ledger keeps none."""
    rank = {name: place for place, name in enumerate(tuning.space.parameters)}

    def of(each: _Chosen) -> _Chosen:
        names = sorted(each.configuration, key=lambda name: rank.get(name, len(rank)))
        return replace(each, configuration={name: each.configuration[name] for name in names})

    return replace(
        tuning,
        trials=tuple(map(of, tuning.trials)),
        baseline=None if tuning.baseline is None else of(tuning.baseline),
        winner=of(tuning.winner),
        verdict=of(tuning.verdict),
        default_verdict=None if tuning.default_verdict is None else of(tuning.default_verdict),
        finalists=tuple(map(of, tuning.finalists)),
        rejected=tuple(map(of, tuning.rejected)),
        choices=tuple(map(of, tuning.choices)),
    )


def convergence(trials: tuple[TunedTrial, ...] | list[TunedTrial]) -> tuple[float, ...]:
    """The best value after each trial, from the first that has one."""
    best, found = math.inf, []
    for trial in trials:
        best = min(best, trial.value if trial.value is not None else math.inf)
        if math.isfinite(best):
            found.append(best)
    return tuple(found)


def geometric_mean(values: tuple[float, ...] | list[float]) -> float:
    """Of positive values."""
    return math.exp(sum(map(math.log, values)) / len(values))

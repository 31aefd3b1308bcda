"""After the search: the best are timed again beside the baseline, and only who is verified in full can win."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL, Measurement, Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import Outcome, Passed, RunFailure, Unavailable, Verdict
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import CaseChoice, Contender, Ratio, TunedTrial, geometric_mean
from kernel_forge.jobs.requests import FINALISTS
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.spec import BoundCase
from kernel_forge.verify.expectation import Expected

COMPARED_BYTES = 1 << 30
"""Beyond this the timed buffers are not compared: in float64 the reference would not fit beside them."""
READ_BYTES = 2 << 30
"""Outputs of all finalists together, at most."""
RUN_LIMIT = 30.0
LONGEST = 90.0
"""Seconds of timing one case, for enough samples of slow kernels."""
UNCHANGED = Ratio(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Timing:
    """The contenders that are left, fastest first.

    Attributes:
        failed: those that are not: what their timed launches left is wrong, or they ended otherwise than before.
        uncompared: why what the timed launches left was not compared; None where it was.
    """

    contenders: tuple[Contender, ...]
    failed: tuple[tuple[Configuration, Outcome], ...]
    uncompared: str | None
    notes: tuple[str, ...]


def finalists(
    trials: Sequence[TunedTrial],
    baseline: Configuration | None,
    cases: int,
    passed_over: Collection[Configuration] = (),
    most: int = FINALISTS,
) -> list[TunedTrial]:
    """Who is timed again: the best overall, the two best of every case where there are several, and the baseline.

    Not those in ``passed_over``.
    """
    timed = [t for t in trials if t.seconds is not None and not t.early and t.configuration not in passed_over]
    chosen = sorted(timed, key=lambda t: t.value or math.inf)[:most]
    for case in range(cases if cases > 1 else 0):
        chosen += sorted(timed, key=lambda t, c=case: t.seconds[c] if t.seconds else math.inf)[:2]  # type: ignore[misc]
    found = [t for t in trials if t.configuration == baseline][:1]
    if baseline is not None and not found:
        found = [TunedTrial(baseline, None)]  # there was no time to try even that
    for trial in chosen:
        if all(trial.configuration != other.configuration for other in found):
            found.append(trial)
    return found


def time_again(
    bench: Workbench,
    chosen: Sequence[TunedTrial],
    baseline: Configuration | None,
    cases: Sequence[Sizes],
    plan: TimingPlan,
) -> Timing | Unavailable:
    """Time all of them against each other at every case, and compare what the timed launches left.

    What faults is left out, and the rest timed again without it. ``plan.budget`` is given to each configuration at each
    case, and more where it is too little for the samples of an interval.
    """
    configurations = [t.configuration for t in chosen]
    artifacts = {k: a for k, c in enumerate(configurations) if isinstance(a := _compiled(bench, cases[0], c), Artifact)}
    alive = list(artifacts)
    times: dict[int, list[Measurement]] = {k: [] for k in alive}
    joules: dict[int, list[float]] = {k: [] for k in alive}
    failed: list[tuple[Configuration, Outcome]] = []
    notes: dict[str, None] = {}
    uncompared: str | None = None
    for number, sizes in enumerate(cases):
        case = _FinalCase(bench, sizes, plan, [t.seconds[number] if t.seconds else 0.0 for t in chosen])
        measured = case.measure({k: (artifacts[k], configurations[k]) for k in alive})
        if isinstance(measured, Unavailable):
            return measured
        notes |= case.notes
        uncompared = uncompared or case.uncompared
        for k in list(alive):
            result = measured[k]
            if not isinstance(result, Timed):
                failed.append((configurations[k], result))
                alive.remove(k)
                continue
            times[k].append(result.measurement)
            if result.joules is not None:
                joules[k].append(result.joules)
    base = next((times[k] for k in alive if configurations[k] == baseline), None)
    left = [
        Contender(
            configurations[k],
            tuple(times[k]),
            None if base is None else UNCHANGED if configurations[k] == baseline else speedup(base, times[k]),
            tuple(joules[k]) if len(joules[k]) == len(cases) else (),
        )
        for k in alive
    ]
    return Timing(tuple(sorted(left, key=lambda c: c.seconds)), tuple(failed), uncompared, tuple(notes))


class _FinalCase:
    """All contenders at one case; ``seconds`` are their times of the search."""

    def __init__(self, bench: Workbench, sizes: Sizes, plan: TimingPlan, seconds: Sequence[float]) -> None:
        self._bench, self._sizes, self._plan, self._seconds = bench, sizes, plan, seconds
        self.notes: dict[str, None] = {}
        self.uncompared: str | None = None

    def measure(
        self, contenders: Mapping[int, tuple[Artifact, Configuration]]
    ) -> Mapping[int, Timed | Outcome] | Unavailable:
        """The time of each, or why it has none; Unavailable where the device answers nothing at all."""
        found: dict[int, Timed | Outcome] = {}
        trials: dict[int, tuple[BoundCase, Trial]] = {}
        for k, (artifact, configuration) in contenders.items():
            bound = self._bench.bind(self._sizes, configuration)
            inputs = Unavailable(bound.message) if isinstance(bound, Finding) else self._bench.gate.inputs(bound)
            if isinstance(bound, Finding) or isinstance(inputs, Unavailable):
                found[k] = inputs if isinstance(inputs, Unavailable) else Unavailable("it cannot be launched")
                continue
            trials[k] = bound, Trial(artifact, self._bench.gate.request(bound, inputs, RUN_LIMIT))
        expected = {k: self._expected(bound, len(trials)) for k, (bound, _) in trials.items()}
        while trials:
            timings = self._bench.device.time([t for _, t in trials.values()], self._plan_for(list(trials)))
            if isinstance(timings, Unavailable):
                return timings
            results = dict(zip(trials, timings.results, strict=True))
            faulty = [k for k, r in results.items() if not isinstance(r, Timed | Unavailable)]
            if not faulty:
                self._note(timings)
                found.update({k: self._judged(trials[k][0], r, expected[k]) for k, r in results.items()})
                break
            found.update({k: results[k] for k in faulty})  # the others' context went with it
            trials = {k: t for k, t in trials.items() if k not in faulty}
        return found

    def _judged(self, bound: BoundCase, result: Timed | RunFailure, want: Expected | None) -> Timed | Outcome:
        if not isinstance(result, Timed) or want is None:
            return result
        return self._bench.gate.wrong(bound, want, result.contents) or result

    def _plan_for(self, contenders: Sequence[int]) -> TimingPlan:
        """Time for at least the samples of an interval, with the flush or the batch around each execution."""
        needed = 3.0 * FEWEST_FOR_INTERVAL * sum(self._seconds[k] for k in contenders)
        budget = min(LONGEST, max(self._plan.budget * len(contenders), needed))
        return replace(self._plan, budget=budget, outputs=self.uncompared is None)

    def _note(self, timings: Timings) -> None:
        if timings.drift is not None and not timings.is_steady:
            moved = f"{100 * (timings.drift - 1):+.1f} %"
            self.notes[f"the clocks moved by {moved} while the finalists were timed: in turns, so it hit all alike"] = (
                None
            )
        if timings.no_energy is not None:
            self.notes[f"the energy was not measured everywhere: {timings.no_energy}"] = None

    def _expected(self, bound: BoundCase, contenders: int) -> Expected | None:
        """What the timed buffers must hold; None where that cannot be told, and ``uncompared`` says why."""
        outputs = sum(bound.count(a.name) * a.dtype.itemsize for a in self._bench.spec.outputs)
        if self._bench.compared_bytes(bound) > COMPARED_BYTES or contenders * outputs > READ_BYTES:
            self.uncompared = f"its buffers take {self._bench.compared_bytes(bound) / 2**30:.2g} GiB"
            return None
        found = self._bench.gate.quickly(bound, lambda: self._bench.compile(bound), RUN_LIMIT)
        if isinstance(found.expected, Unavailable):
            self.uncompared = found.expected.reason
            return None
        if found.is_rough:
            self.notes["the buffers that were timed are large: they were compared with a rough tolerance"] = None
        return found.expected


def speedup(baseline: Sequence[Measurement], other: Sequence[Measurement]) -> Ratio:
    """Geometric mean over the cases; the interval pairs the ends of both intervals, so it is wider than 95 %."""
    pairs = list(zip(baseline, other, strict=True))
    return Ratio(
        geometric_mean([b.seconds / o.seconds for b, o in pairs]),
        geometric_mean([b.low / o.high for b, o in pairs]),
        geometric_mean([b.high / o.low for b, o in pairs]),
        min(m.samples for pair in pairs for m in pair),
    )


@dataclass
class Judge:
    """Verifies configurations in full, each once."""

    verify: Callable[[Configuration], Verdict]

    def __post_init__(self) -> None:
        self._known: dict[tuple[tuple[str, object], ...], Verdict] = {}

    def verdict(self, configuration: Configuration) -> Verdict:
        """The verdict of one configuration."""
        key = tuple(sorted(configuration.items()))
        if key not in self._known:
            self._known[key] = self.verify(configuration)
        return self._known[key]

    def holds(self, configuration: Configuration) -> bool:
        """Whether it is verified."""
        return isinstance(self.verdict(configuration).outcome, Passed)

    @property
    def rejected(self) -> tuple[Verdict, ...]:
        """Those that were verified and are not right."""
        return tuple(v for v in self._known.values() if not isinstance(v.outcome, Passed))


def winner(contenders: Sequence[Contender], baseline: Configuration | None, judge: Judge) -> Contender | None:
    """The fastest that is verified and faster than the baseline for sure; else the baseline.

    ``contenders`` are the fastest first. Without a baseline the fastest that is verified. None where nothing holds.
    """
    for contender in contenders:
        if contender.configuration == baseline:
            continue
        surely = baseline is None or (contender.speedup is not None and contender.speedup.is_faster)
        if surely and judge.holds(contender.configuration):
            return contender
    default = next((c for c in contenders if c.configuration == baseline), None)
    return default if default is not None and judge.holds(default.configuration) else None


def choices(
    contenders: Sequence[Contender], baseline: Contender | None, cases: Sequence[Sizes], judge: Judge
) -> tuple[CaseChoice, ...]:
    """For each of several cases the fastest verified contender, the baseline where none is faster there for sure."""
    if len(cases) < 2:
        return ()
    found = []
    for number, sizes in enumerate(cases):
        for contender in sorted(contenders, key=lambda c, n=number: c.times[n].seconds):  # type: ignore[misc]
            kept = baseline is not None and contender.configuration == baseline.configuration
            ratio = None
            if baseline is not None:
                ratio = UNCHANGED if kept else speedup([baseline.times[number]], [contender.times[number]])
            if (kept or ratio is None or ratio.is_faster) and judge.holds(contender.configuration):
                found.append(CaseChoice(sizes, contender.configuration, contender.times[number].seconds, ratio))
                break
    return tuple(found)


def _compiled(bench: Workbench, sizes: Sizes, configuration: Configuration) -> Artifact | Outcome:
    bound = bench.bind(sizes, configuration)
    return Unavailable(bound.message) if isinstance(bound, Finding) else bench.compile(bound)

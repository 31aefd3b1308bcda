"""After the search: the best are timed again beside the baseline, and what the timed launches left is compared."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL, Measurement, Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import Outcome, RunFailure, Unavailable
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import Contender, Ratio, TunedTrial, geometric_mean
from kernel_forge.jobs.requests import FINALISTS
from kernel_forge.jobs.tune.samples import SAMPLE
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.spec import BoundCase
from kernel_forge.verify.expectation import Expected
from kernel_forge.verify.gate import Rough, sample_of

READ_BYTES = 2 << 30
"""Outputs of all finalists together that are read; of more a sample is."""
EVALUATIONS = 30
EXACT_SECONDS = 120.0
"""A tolerance is derived from so many evaluations of the reference, where they take no longer than this together."""
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

    Not those in ``passed_over``, which turned out to be wrong. What was given up early beside one of them has its turn
    behind the others.
    """
    timed = [t for t in trials if t.seconds is not None and t.configuration not in passed_over]
    if not passed_over:
        timed = [t for t in timed if not t.early]
    chosen = sorted(timed, key=lambda t: (t.early, t.value or math.inf))[:most]
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
    compiled = {k: _compiled(bench, cases[0], c) for k, c in enumerate(configurations)}
    artifacts = {k: made for k, made in compiled.items() if isinstance(made, Artifact)}
    alive = list(artifacts)
    times: dict[int, list[Measurement]] = {k: [] for k in alive}
    joules: dict[int, list[float]] = {k: [] for k in alive}
    failed = [(configurations[k], made) for k, made in compiled.items() if not isinstance(made, Artifact)]
    notes: dict[str, None] = {}
    uncompared: str | None = None
    for number, sizes in enumerate(cases):
        case = _FinalCase(bench, sizes, plan, [t.seconds[number] if t.seconds else 0.0 for t in chosen])
        measured = case.measure({k: (artifacts[k], configurations[k]) for k in alive})
        if isinstance(measured, Unavailable):
            return measured
        notes |= case.notes
        uncompared = uncompared or case.uncompared
        if len(cases) > 1:
            case.forget()
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
        self._sample = 0
        self._bounds: list[BoundCase] = []

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
            self._bounds.append(bound)
            trials[k] = bound, Trial(artifact, self._bench.gate.request(bound, inputs, RUN_LIMIT))
        outputs = sum(self._output_bytes(bound) for bound, _ in trials.values())
        self._sample = SAMPLE if outputs > READ_BYTES else 0
        expected = {k: self._expected(bound) for k, (bound, _) in trials.items()}
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

    def _judged(self, bound: BoundCase, result: Timed | RunFailure, want: Rough) -> Timed | Outcome:
        if not isinstance(result, Timed) or self.uncompared is not None or not isinstance(want.expected, Expected):
            return result
        wrong = self._wrong(bound, want.expected, result)
        if wrong is not None and want.is_rough:
            exact = self._exact(bound, EVALUATIONS * want.seconds)
            if isinstance(exact, Unavailable):
                self.uncompared = exact.reason
                return result
            wrong = self._wrong(bound, exact, result)
        return wrong or result

    def _wrong(self, bound: BoundCase, expected: Expected, result: Timed) -> Outcome | None:
        gate = self._bench.gate
        if not self._sample:
            return gate.wrong(bound, expected, result.contents)
        return gate.wrong_in_sample(bound, expected, result.contents, self._sample)

    def _exact(self, bound: BoundCase, seconds: float) -> Expected | Unavailable:
        """With the exact tolerance, for results that differ by more than a rough one: right ones do where they jump.

        ``seconds`` is what deriving it takes.
        """
        if seconds > EXACT_SECONDS:
            return Unavailable(f"its tolerance would take some {seconds:.0f} s to derive: the reference is slow there")
        found = self._bench.gate.expected(bound, lambda: self._bench.compile(bound), RUN_LIMIT)
        return sample_of(bound, found, self._sample) if self._sample and isinstance(found, Expected) else found

    def _plan_for(self, contenders: Sequence[int]) -> TimingPlan:
        """Time for at least the samples of an interval, with the flush or the batch around each execution."""
        needed = 3.0 * FEWEST_FOR_INTERVAL * sum(self._seconds[k] for k in contenders)
        budget = min(LONGEST, max(self._plan.budget * len(contenders), needed))
        is_whole = self.uncompared is None and not self._sample
        return replace(self._plan, budget=budget, outputs=is_whole, sample=self._sample)

    def _note(self, timings: Timings) -> None:
        if timings.drift is not None and not timings.is_steady:
            moved = f"{100 * (timings.drift - 1):+.1f} %"
            self.notes[f"the clocks moved by {moved} while the finalists were timed: in turns, so it hit all alike"] = (
                None
            )
        if timings.no_energy is not None:
            self.notes[f"the energy was not measured everywhere: {timings.no_energy}"] = None

    def _expected(self, bound: BoundCase) -> Rough:
        """What the timed buffers must hold; where that cannot be told ``uncompared`` says why."""

        def compiled() -> Artifact | Outcome:
            return self._bench.compile(bound)

        gate = self._bench.gate
        if self._sample:
            found = gate.glance(bound, self._sample, compiled, RUN_LIMIT)
            self.notes[f"the outputs that were timed are large: {self._sample} elements of each were compared"] = None
        else:
            found = gate.quickly(bound, compiled, RUN_LIMIT)
        if isinstance(found.expected, Unavailable):
            self.uncompared = found.expected.reason
        elif found.is_rough:
            self.notes["the reference is slow at the tuned size: results were compared with a rough tolerance"] = None
        return found

    def _output_bytes(self, bound: BoundCase) -> int:
        return sum(bound.count(a.name) * a.dtype.itemsize for a in self._bench.spec.outputs)

    def forget(self) -> None:
        """Let go of the arrays: each of several cases may take gigabytes."""
        for bound in self._bounds:
            self._bench.gate.forget(bound)


def speedup(baseline: Sequence[Measurement], other: Sequence[Measurement]) -> Ratio:
    """Geometric mean over the cases; the interval pairs the ends of both intervals, so it is wider than 95 %."""
    pairs = list(zip(baseline, other, strict=True))
    return Ratio(
        geometric_mean([b.seconds / o.seconds for b, o in pairs]),
        geometric_mean([b.low / o.high for b, o in pairs]),
        geometric_mean([b.high / o.low for b, o in pairs]),
        min(m.samples for pair in pairs for m in pair),
    )


def _compiled(bench: Workbench, sizes: Sizes, configuration: Configuration) -> Artifact | Outcome:
    bound = bench.bind(sizes, configuration)
    return Unavailable(bound.message) if isinstance(bound, Finding) else bench.compile(bound)

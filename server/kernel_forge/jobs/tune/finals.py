"""After the search: the best are timed again beside the baseline, and only who is verified in full can win."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import Measurement, Timed, TimingPlan
from kernel_forge.domain.outcome import Outcome, Passed, Unavailable, Verdict
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import CaseChoice, Contender, Ratio, TunedTrial, geometric_mean
from kernel_forge.jobs.requests import FINALISTS
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.spec import BoundCase
from kernel_forge.verify.expectation import Expected

COMPARED_BYTES = 1 << 30
"""Beyond this the timed buffers are not compared: in float64 the reference would not fit beside them."""
RUN_LIMIT = 30.0
UNCHANGED = Ratio(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Timing:
    """The contenders that are left, fastest first; ``wrong`` says of some what their timed launches left."""

    contenders: tuple[Contender, ...]
    wrong: tuple[tuple[Configuration, Outcome], ...]
    notes: tuple[str, ...]


def finalists(
    trials: Sequence[TunedTrial], baseline: Configuration | None, cases: int, most: int = FINALISTS
) -> list[Configuration]:
    """Who is timed again: the best overall, the two best of every case where there are several, and the baseline."""
    timed = [t for t in trials if t.seconds is not None and not t.early]
    chosen = sorted(timed, key=lambda t: t.value or math.inf)[:most]
    if cases > 1:
        for case in range(cases):
            chosen += sorted(timed, key=lambda t, c=case: t.seconds[c] if t.seconds else math.inf)[:2]  # type: ignore[misc]
    found = [] if baseline is None else [baseline]
    for trial in chosen:
        if trial.configuration not in found:
            found.append(trial.configuration)
    return found


def time_again(
    bench: Workbench,
    configurations: Sequence[Configuration],
    baseline: Configuration | None,
    cases: Sequence[Sizes],
    plan: TimingPlan,
) -> Timing | Unavailable:
    """Time all of them against each other at every case, and compare what the timed launches left.

    ``plan.budget`` is for one configuration at one case.
    """
    artifacts = {k: a for k, c in enumerate(configurations) if isinstance(a := _compiled(bench, cases[0], c), Artifact)}
    alive = list(artifacts)
    times: dict[int, list[Measurement]] = {k: [] for k in alive}
    joules: dict[int, list[float]] = {k: [] for k in alive}
    wrong: list[tuple[Configuration, Outcome]] = []
    notes: dict[str, None] = {}
    for sizes in cases:
        trials = []
        expected = {}
        for k in list(alive):
            bound = bench.bind(sizes, configurations[k])
            inputs = Unavailable(bound.message) if isinstance(bound, Finding) else bench.gate.inputs(bound)
            if isinstance(bound, Finding) or isinstance(inputs, Unavailable):
                alive.remove(k)
                continue
            trials.append(Trial(artifacts[k], bench.gate.request(bound, inputs, RUN_LIMIT)))
            expected[k] = bound, _expected(bench, bound, notes)
        if not trials:
            break
        timings = bench.device.time(trials, replace(plan, budget=plan.budget * len(trials)))
        if isinstance(timings, Unavailable):
            return timings
        if timings.drift is not None and not timings.is_steady:
            moved = f"{100 * (timings.drift - 1):+.1f} %"
            notes[f"the clocks moved by {moved} while the finalists were timed: in turns, so that it hit all alike"] = (
                None
            )
        if timings.no_energy is not None:
            notes[f"the energy was not measured everywhere: {timings.no_energy}"] = None
        for k, result in zip(list(alive), timings.results, strict=True):
            bound, want = expected[k]
            if not isinstance(result, Timed):
                alive.remove(k)
                continue
            bad = None if want is None else bench.gate.wrong(bound, want, result.contents)
            if bad is not None:
                wrong.append((configurations[k], bad))
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
    return Timing(tuple(sorted(left, key=lambda c: c.seconds)), tuple(wrong), tuple(notes))


def speedup(baseline: Sequence[Measurement], other: Sequence[Measurement]) -> Ratio:
    """Geometric mean over the cases; the interval pairs the ends of both intervals, so it is wider than 95 %."""
    pairs = list(zip(baseline, other, strict=True))
    return Ratio(
        geometric_mean([b.seconds / o.seconds for b, o in pairs]),
        geometric_mean([b.low / o.high for b, o in pairs]),
        geometric_mean([b.high / o.low for b, o in pairs]),
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

    ``contenders`` are the fastest first. None where neither holds: without a baseline, or with a wrong one.
    """
    for contender in contenders:
        is_baseline = contender.configuration == baseline
        surely = contender.speedup is None or contender.speedup.is_faster
        if not is_baseline and surely and judge.holds(contender.configuration):
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
            ratio = None if baseline is None else speedup([baseline.times[number]], [contender.times[number]])
            kept = baseline is not None and contender.configuration == baseline.configuration
            if (kept or ratio is None or ratio.is_faster) and judge.holds(contender.configuration):
                found.append(CaseChoice(sizes, contender.configuration, contender.times[number].seconds, ratio))
                break
    return tuple(found)


def _compiled(bench: Workbench, sizes: Sizes, configuration: Configuration) -> Artifact | Outcome:
    bound = bench.bind(sizes, configuration)
    return Unavailable(bound.message) if isinstance(bound, Finding) else bench.compile(bound)


def _expected(bench: Workbench, bound: BoundCase, notes: dict[str, None]) -> Expected | None:
    """What the timed buffers must hold; None where that cannot be told, and the notes say so."""
    if bench.nbytes(bound) > COMPARED_BYTES:
        notes[f"the buffers that were timed are larger than {COMPARED_BYTES >> 20} MiB and were not compared"] = None
        return None
    found = bench.gate.quickly(bound, lambda: bench.compile(bound), RUN_LIMIT)
    if isinstance(found.expected, Unavailable):
        notes[f"the buffers that were timed could not be compared: {found.expected.reason}"] = None
        return None
    if found.is_rough:
        notes["the buffers that were timed are large: they were compared with a rough tolerance"] = None
    return found.expected

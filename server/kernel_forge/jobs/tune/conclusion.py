"""The end of a tuning: only who is verified in full can win, and where the best are wrong the next have their turn."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernel_forge.domain.measurement import TimingPlan
from kernel_forge.domain.outcome import Outcome, Passed, Unavailable, Verdict
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import CaseChoice, Contender, TunedTrial
from kernel_forge.jobs.tune.failures import reason_of
from kernel_forge.jobs.tune.finals import UNCHANGED, Timing, finalists, speedup, time_again
from kernel_forge.jobs.tune.workbench import Workbench

MOST_FAILED = 15
"""Finalists that may turn out wrong before no more are tried."""


class NoWinner(Exception):
    """There is no winner, or nothing to search for: the outcome (of the default), or a verdict, says why."""

    def __init__(self, end: Outcome | Verdict) -> None:
        super().__init__()
        self.end = end


@dataclass
class Judge:
    """Verifies configurations in full, each once."""

    verify: Callable[[Configuration], Verdict]
    default: Configuration

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
    def default_failure(self) -> Verdict | None:
        """The verdict of the default, where it was verified and is not right."""
        found = next((v for v in self._known.values() if v.configuration == dict(self.default)), None)
        return None if found is None or isinstance(found.outcome, Passed | Unavailable) else found

    @property
    def rejected(self) -> tuple[Verdict, ...]:
        """Those that were verified and are not right, or could not be shown to be; the default is none of them."""
        found = (v for v in self._known.values() if not isinstance(v.outcome, Passed))
        return tuple(v for v in found if v.configuration != dict(self.default))


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


@dataclass(frozen=True)
class Conclusion:
    """What :class:`~kernel_forge.domain.tuning.KernelTuning` says of its winner and of those beside it.

    Attributes:
        failed: finalists whose timed launches left something wrong, or that ended otherwise than before.
    """

    winner: Contender
    baseline: Contender | None
    finalists: tuple[Contender, ...]
    failed: tuple[tuple[Configuration, Outcome], ...]
    choices: tuple[CaseChoice, ...]
    notes: tuple[str, ...]


def conclude(
    bench: Workbench,
    trials: Sequence[TunedTrial],
    baseline: Configuration | None,
    cases: Sequence[Sizes],
    plan: TimingPlan,
    judge: Judge,
) -> Conclusion:
    """Time the best again and verify from the fastest on, until one holds that is faster than the baseline for sure.

    Raises:
        NoWinner: see there.
    """
    notes: list[str] = []
    if baseline is not None:
        verdict = judge.verdict(baseline)
        if isinstance(verdict.outcome, Unavailable):  # which says nothing about the default
            notes.append(f"the default could not be verified in full ({verdict.outcome.reason})")
        elif not isinstance(verdict.outcome, Passed):
            # It fails elsewhere than at the gate: what is right is worth finding, but is faster than nothing.
            notes.append(f"the default fails the full verification ({reason_of(verdict.outcome)})")
            trials = [t for t in trials if t.configuration != baseline]
            if all(t.seconds is None for t in trials):
                raise NoWinner(verdict)
            baseline = None
    failed: list[tuple[Configuration, Outcome]] = []
    passed_over: list[Configuration] = []
    while True:
        timing = _timed(bench, trials, baseline, cases, plan, passed_over, failed, judge)
        failed += timing.failed
        best = winner(timing.contenders, baseline, judge)
        rejected = [v.configuration for v in judge.rejected]
        wrong = [c for c, _ in timing.failed]
        wrong += [c.configuration for c in timing.contenders if c.configuration in rejected]
        has_won = best is not None and best.configuration != baseline
        if has_won or not wrong or len(passed_over) + len(wrong) >= MOST_FAILED:
            break
        passed_over += wrong
    if best is None:
        raise NoWinner(_why_none(failed, judge))
    base = next((c for c in timing.contenders if c.configuration == baseline), None)
    per_case = choices(timing.contenders, base, cases, judge)
    return Conclusion(best, base, timing.contenders, tuple(failed), per_case, (*notes, *timing.notes))


def _why_none(failed: Sequence[tuple[Configuration, Outcome]], judge: Judge) -> Outcome | Verdict:
    known = judge.default_failure or next(iter(judge.rejected), None)
    if known is not None:
        return known
    return failed[0][1] if failed else Unavailable("none of the best could be verified")


def _timed(
    bench: Workbench,
    trials: Sequence[TunedTrial],
    baseline: Configuration | None,
    cases: Sequence[Sizes],
    plan: TimingPlan,
    passed_over: Sequence[Configuration],
    failed: Sequence[tuple[Configuration, Outcome]],
    judge: Judge,
) -> Timing:
    """The next finalists with their times; those that were not compared are left out, but for the baseline."""
    chosen = finalists(trials, baseline, len(cases), passed_over)
    if not chosen:
        is_known = failed or judge.rejected or judge.default_failure
        raise NoWinner(_why_none(failed, judge) if is_known else _nothing_timed(trials))
    timing = time_again(bench, chosen, baseline, cases, plan)
    if isinstance(timing, Unavailable):
        raise NoWinner(timing)
    lost = next((outcome for c, outcome in timing.failed if c == baseline), None)
    if lost is not None:
        raise NoWinner(lost)
    if timing.uncompared is None:
        return timing
    kept = tuple(c for c in timing.contenders if c.configuration == baseline)
    if not kept:
        raise NoWinner(Unavailable(f"what was timed could not be compared: {timing.uncompared}"))
    note = f"the default stays: what was timed could not be compared ({timing.uncompared}); tune at smaller sizes"
    return replace(timing, contenders=kept, notes=(*timing.notes, note))


def _nothing_timed(trials: Sequence[TunedTrial]) -> Unavailable:
    reasons = Counter(t.failure.partition(":")[0] for t in trials if t.failure)
    shown = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3)) or "none was tried"
    return Unavailable(f"no configuration has a time ({shown})")

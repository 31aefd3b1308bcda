"""The search itself: ask, try, tell, write down, until the budget ends."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace

from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import Budget, SearchProgress, TunedTrial, convergence
from kernel_forge.jobs.tune.executor import Executor
from kernel_forge.jobs.tune.prior import Suggestion
from kernel_forge.jobs.tune.record import SearchRecord
from kernel_forge.jobs.tune.search_process import AskAndTell
from kernel_forge.search import Proposal, reason_to_stop, remaining_seconds

POLL_SECONDS = 0.1
MOST_TOLD = 100
_Pending = tuple[Proposal, "Future[TunedTrial]"]


@dataclass
class Searching:
    """One search on its way.

    Attributes:
        default: the configuration that speed is compared with; None where there is none.
        is_finishing: whether somebody asked to end with what there is.
        suggestions: what the search was told to try first, and why.
        meanwhile: what is to be done in this thread whenever trials are on their way.
        in_order: tell results in the order in which they were asked for, so that the same seed and the same times
            repeat the same search; else as they come, so that one that takes long to compile holds up nothing.
        trials: in the order in which they were told, those of an earlier process first.
    """

    name: str
    search: AskAndTell
    executor: Executor
    record: SearchRecord
    budget: Budget
    report: Report
    default: Configuration | None
    is_finishing: Callable[[], bool]
    suggestions: Sequence[Suggestion] = ()
    meanwhile: Callable[[], None] = lambda: None
    in_order: bool = True
    trials: list[TunedTrial] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> str:
        """Search, and return why it ended (see :class:`~kernel_forge.domain.tuning.KernelTuning`).

        Raises:
            DeviceGone: as from the executor; trials until then are kept and written down.
        """
        for taken in self.record.taken:
            if self.search.space.index_of(taken.configuration) is None:
                continue
            self.search.recall(taken.configuration, taken.value)
            self.trials.append(taken)
        pending: list[_Pending] = []
        while True:
            ended = self._ended()
            while ended is None and self._wants_more(len(pending)) and (proposal := self.search.ask()) is not None:
                pending.append((proposal, self.executor.submit(_numbers(proposal))))
            if ended is not None or not pending:
                self._take_done(pending)
                return ended or "exhausted"
            self.meanwhile()
            awaited = pending[:1] if self.in_order else pending
            ended_one = self._wait(awaited)
            if ended_one is None:
                continue
            pending.remove(ended_one)
            proposal, trial = ended_one[0], ended_one[1].result()
            self._take(proposal, trial)

    def _take_done(self, pending: Sequence[_Pending]) -> None:
        """What has ended by the end of the search is not thrown away."""
        for proposal, future in pending:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take(proposal, future.result())

    def _reason(self, configuration: Configuration) -> str | None:
        return next((reason for suggested, reason in self.suggestions if suggested == configuration), None)

    def _ended(self) -> str | None:
        if self.is_finishing():
            return "stopped"
        return reason_to_stop(self.budget, [t.value for t in self.trials], time.monotonic() - self._began)

    def _wants_more(self, pending: int) -> bool:
        if self.budget.trials is not None and len(self.trials) + pending >= self.budget.trials:
            return False
        return pending < self.executor.width

    def _wait(self, awaited: Sequence[_Pending]) -> _Pending | None:
        """The first of these trials that has ended; None as soon as somebody asks to end, or time runs out."""
        while True:
            done = next((each for each in awaited if each[1].done()), None)
            if done is not None or self._ended() is not None:
                return done
            wait([future for _, future in awaited], POLL_SECONDS, FIRST_COMPLETED)

    def _take(self, proposal: Proposal, trial: TunedTrial) -> None:
        trial = replace(trial, reason=self._reason(trial.configuration))
        self.record.trial(len(self.trials), trial)  # before the search goes on: what it knows outlives this process
        if trial.value is None:
            self.search.tell_failed(proposal, trial.failure or "")
        else:
            self.search.tell(proposal, trial.value)
        self.trials.append(trial)
        self.report(self._progress())

    def _progress(self) -> Progress:
        limits = [self.search.space.size, *([] if self.budget.trials is None else [self.budget.trials])]
        limit = min(limits)
        values = [t.value for t in self.trials]
        best = min((t for t in self.trials if t.value is not None), key=lambda t: t.value or 0.0, default=None)
        seconds = time.monotonic() - self._began
        told = SearchProgress(
            trials=len(self.trials),
            failed=sum(v is None for v in values),
            limit=limit if self.budget.trials is not None or self.budget.seconds is None else None,
            baseline=value_of(self.trials, self.default),
            best=None if best is None else best.value,
            configuration={} if best is None else best.configuration,
            convergence=_thinned(convergence(self.trials)),
            remaining=remaining_seconds(self.budget, values, limit, seconds, len(self.record.taken)),
        )
        return Progress(f"{self.name}: searching ({self.record.basis})", len(self.trials), limit, told)


def value_of(trials: Sequence[TunedTrial], configuration: Configuration | None) -> float | None:
    """The time of the trial of a configuration, where there is one."""
    return next((t.value for t in trials if configuration is not None and t.configuration == configuration), None)


def _thinned(values: tuple[float, ...]) -> tuple[float, ...]:
    """As many of ``values`` as a line can show, the first and the last among them: every step tells all of them."""
    if len(values) <= MOST_TOLD:
        return values
    return tuple(values[round(i * (len(values) - 1) / (MOST_TOLD - 1))] for i in range(MOST_TOLD))


def _numbers(proposal: Proposal) -> Configuration:
    return {name: value for name, value in proposal.configuration.items() if not isinstance(value, str)}

"""Trials on one device of this process: compiled ahead in parallel, gated and timed one group after the other."""

import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass, replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.measurement import Contents, Timed, TimingPlan
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import TunedTrial
from kernel_forge.jobs.tune.executor import DeviceGone
from kernel_forge.jobs.tune.failures import reason_of
from kernel_forge.jobs.tune.samples import ExpectedSamples
from kernel_forge.jobs.tune.workbench import GATE_LIMIT, Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.spec import BoundCase
from kernel_forge.verify.expectation import Expected

HOPELESS = 2.0
"""A trial this many times slower than the best is given no more samples, where there is one case: with several, what
is hopeless at one may be the best at another."""
SLOWEST = 50.0
"""One execution may take this many times the best's, within the two limits below (seconds)."""
SHORTEST_LIMIT, LONGEST_LIMIT = 2.0, 30.0
SWITCH_SECONDS = 0.0001
"""A thread that waits for the interpreter's lock asks for it so often. Python's own 5 ms, at every step of a trial,
would be more than the trial takes."""
MOST_LOST = 8
"""So many trials in a row without an answer, and the device counts as gone."""


@dataclass(eq=False)
class _Order:
    configuration: Configuration
    bounds: tuple[BoundCase, ...]
    requests: tuple[RunRequest, ...]
    gate: tuple[BoundCase, Expected] | None
    artifact: "Future[Artifact | Outcome]"
    result: "Future[TunedTrial]"


def suitable_width(group: int, *, learns: bool) -> int:
    """Trials to have under way on this machine: enough that a compiler is seldom waited for, although some take ten
    times as long as others; no more than six groups where each result makes the next choice better."""
    cpus = len(os.sched_getaffinity(0))
    return min(6 * group, cpus + cpus // 2) if learns else 2 * max(group, cpus)


def _compilers() -> int:
    """Compilers at a time. The other CPUs are for the search, for what judges, and for the process that measures."""
    return max(1, 2 * len(os.sched_getaffinity(0)) // 3)


class LocalExecutor:
    """An :class:`~kernel_forge.jobs.tune.executor.Executor` on the device of a workbench.

    ``gate`` is the case at which every configuration must be right before it is timed at ``cases``; None where there is
    none small enough. Trials are timed in groups of up to ``group``, against each other. ``width`` of them are under
    way at a time, of which two in three CPUs compile one each. What timed launches left is compared with
    ``samples``, where they are given. ``is_there`` is asked when many trials in a row had no answer:
    it tells whether the device still answers anything, so that it was these configurations that it cannot do.
    """

    def __init__(
        self,
        bench: Workbench,
        cases: Sequence[Sizes],
        gate: Sizes | None,
        plan: TimingPlan,
        *,
        group: int,
        width: int,
        samples: ExpectedSamples | None = None,
        is_there: Callable[[], bool] = lambda: False,
    ) -> None:
        self._bench = bench
        self._cases = tuple(cases)
        self._gate = gate
        self._plan = plan
        self._group = group
        self.width = width
        self._samples = samples
        self._compilers = ThreadPoolExecutor(min(_compilers(), width), "compile")
        self._judges = ThreadPoolExecutor(1, "compare")
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._switch_interval))
        self._is_there = is_there
        self._waiting: list[_Order] = []
        self._changed = threading.Condition()
        self._closed = False
        self._lost = 0
        self._best = [math.inf] * len(self._cases)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, configuration: Configuration) -> "Future[TunedTrial]":
        """Begin to compile, and time when its turn comes."""
        result: Future[TunedTrial] = Future()
        made = self._order(configuration, result)
        if isinstance(made, _Order):
            with self._changed:
                self._waiting.append(made)
                self._changed.notify_all()
        else:
            result.set_result(_failed(configuration, made))
        return result

    def close(self) -> None:
        """Stop what has not begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._compilers.shutdown(wait=False, cancel_futures=True)
        if self._samples is not None:
            self._samples.close()
        self._thread.join()
        self._judges.shutdown()
        sys.setswitchinterval(self._switch_interval)

    def _order(self, configuration: Configuration, result: "Future[TunedTrial]") -> _Order | Outcome:
        """What the trial needs; Python of the user's is run here, in the caller's thread."""
        bounds, requests = [], []
        for number, case in enumerate(self._cases):
            bound = self._bench.bind(case, configuration)
            if isinstance(bound, Finding):
                return LaunchFailed("configuration", bound.message)
            inputs = self._bench.gate.inputs(bound)
            if isinstance(inputs, Unavailable):
                return inputs
            if self._samples is not None:
                self._samples.ask(bound)
            bounds.append(bound)
            requests.append(self._bench.gate.request(bound, inputs, self._limit(number)))
        gate = None if self._gate is None else self._bench.expectation(self._gate, configuration)
        if isinstance(gate, Unavailable):
            return gate
        artifact = self._compilers.submit(self._bench.compile, bounds[0])
        artifact.add_done_callback(self._wake)
        return _Order(configuration, tuple(bounds), tuple(requests), gate, artifact, result)

    def _wake(self, _: object) -> None:
        with self._changed:
            self._changed.notify_all()

    def _limit(self, case: int) -> float:
        return min(LONGEST_LIMIT, max(SHORTEST_LIMIT, SLOWEST * self._best[case]))

    def _work(self) -> None:
        while orders := self._next_group():
            try:
                self._do(orders)
            except Exception as error:  # whoever waits for these must not wait for ever
                for order in orders:
                    _settle(order, error)

    def _next_group(self) -> list[_Order]:
        """The next trials that are compiled, however long those before them take to be; none when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(order.artifact.done() for order in self._waiting))
            if self._closed:  # then what was not compiled yet is cancelled
                for order in self._waiting:
                    order.result.cancel()
                return []
            group = [order for order in self._waiting if order.artifact.done()][: self._group]
            for order in group:
                self._waiting.remove(order)
            return group

    def _do(self, orders: list[_Order]) -> None:
        ready: list[tuple[_Order, Artifact]] = []
        for order in orders:
            artifact = order.artifact.result()
            failed = self._problem(order, artifact)
            if failed is None and isinstance(artifact, Artifact):
                ready.append((order, artifact))
            else:
                assert failed is not None
                self._fail(order, failed, self._gate if isinstance(artifact, Artifact) else None)
        if ready:
            self._time(ready)

    def _problem(self, order: _Order, artifact: Artifact | Outcome) -> Outcome | None:
        if not isinstance(artifact, Artifact):
            return artifact
        for bound in order.bounds:
            exceeded = self._bench.exceeded(bound, artifact)
            if exceeded is not None:
                return exceeded
        if order.gate is None:
            return None
        bound, expected = order.gate
        return self._bench.gate.check(bound, artifact, expected, GATE_LIMIT)

    def _time(self, ready: list[tuple[_Order, Artifact]]) -> None:
        seconds: list[list[float]] = [[] for _ in ready]
        seen: list[list[Contents]] = [[] for _ in ready]
        early = [False for _ in ready]
        failures: dict[int, tuple[Outcome, Sizes]] = {}
        for case in range(len(self._cases)):
            alive = [k for k in range(len(ready)) if k not in failures]
            if not alive:
                break
            best = self._best[case]
            judges = math.isfinite(best) and len(self._cases) == 1
            plan = replace(self._plan, hopeless=HOPELESS * best if judges else None)
            timings = self._bench.device.time([Trial(ready[k][1], ready[k][0].requests[case]) for k in alive], plan)
            if isinstance(timings, Unavailable):
                failures.update(dict.fromkeys(alive, (timings, self._cases[case])))
                break
            for k, result in zip(alive, timings.results, strict=True):
                if isinstance(result, Timed):
                    seconds[k].append(result.measurement.seconds)
                    seen[k].append(result.contents)
                    early[k] = early[k] or result.measurement.early
                else:
                    failures[k] = (result, self._cases[case])
        for k, (order, _) in enumerate(ready):
            failed = failures.get(k)
            if failed is None:
                self._lost = 0
                trial = TunedTrial(order.configuration, tuple(seconds[k]), early=early[k])
                self._judges.submit(self._conclude, order, trial, seen[k])  # the GPU goes on meanwhile
            elif isinstance(failed[0], Unavailable) and len(ready) > 1:
                self._time([ready[k]])  # another trial took the GPU's context with it
            else:
                self._fail(order, *failed)

    def _conclude(self, order: _Order, trial: TunedTrial, seen: Sequence[Contents]) -> None:
        """The end of a trial that was timed: right at the tuned cases, as far as a sample tells, or failed."""
        try:
            wrong = self._wrong(order, seen)
            if wrong is not None:
                self._fail(order, *wrong)
                return
            for case, taken in enumerate(trial.seconds or ()):
                self._best[case] = min(self._best[case], taken)  # the best is what others are measured by
            _settle(order, trial)
        except Exception as error:  # whoever waits for it must not wait for ever
            _settle(order, error)

    def _wrong(self, order: _Order, seen: Sequence[Contents]) -> tuple[Outcome, Sizes] | None:
        if self._samples is None:
            return None
        for bound, contents, case in zip(order.bounds, seen, self._cases, strict=True):
            wrong = self._samples.wrong(bound, contents)
            if wrong is not None:
                return wrong, case
        return None

    def _fail(self, order: _Order, outcome: Outcome, case: Sizes | None = None) -> None:
        """The end of a trial that failed, at ``case`` where it ran."""
        self._lost = self._lost + 1 if isinstance(outcome, Unavailable) else 0
        if self._lost >= MOST_LOST and not self._is_there():
            _settle(order, DeviceGone(reason_of(outcome)))
        else:
            _settle(order, _failed(order.configuration, outcome, case))


def _failed(configuration: Configuration, outcome: Outcome, case: Sizes | None = None) -> TunedTrial:
    return TunedTrial(configuration, None, reason_of(outcome), outcome=outcome, case=case)


def _settle(order: _Order, end: TunedTrial | Exception) -> None:
    """The end of a trial, where it has none yet: two threads may come to it."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(end, TunedTrial):
            order.result.set_result(end)
        else:
            order.result.set_exception(end)

"""All checks of one case: run, compare, run again otherwise, compare the runs."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from kernel_forge.domain.launch import Schedule, Watch
from kernel_forge.domain.outcome import (
    CaseId,
    LaunchFailed,
    MemoryFault,
    Mismatch,
    Outcome,
    RaceFound,
    RunFailure,
    SanitizerFailure,
    Unavailable,
    WatchHit,
)
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.ports import SANITIZERS, Artifact, Device
from kernel_forge.spec import BoundCase
from kernel_forge.verify.agreement import against_reference, between_fillings, between_inputs, between_runs
from kernel_forge.verify.expectation import Expectations, Expected
from kernel_forge.verify.failure import CaseFailure, CaseHeld, CaseOpen, Tally
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.planning import PlannedCase
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import Finished, Options, request_of, run

MEMCHECK_LIMIT = 20.0
UNORDERED = "the code has atomics, so float results may differ in the last bits from run to run"
OUT_OF_TIME = "the time limit of the verification was reached before it"


class CaseChecker:
    """Checks cases of one spec on one device with one compiled artifact."""

    def __init__(
        self,
        spec: KernelSpec,
        device: Device,
        artifact: Artifact,
        evaluator: Evaluator,
        *,
        unordered: frozenset[str],
        seed: int,
        thresholds: tuple[float, ...] = (),
    ) -> None:
        self.spec = spec
        self.device = device
        self.artifact = artifact
        self.expectations = Expectations(spec, evaluator, seed, thresholds)
        self.unordered = unordered
        self.seed = seed
        self.has_schedules = device.info().has_schedules
        self.has_watch = device.info().has_watch
        self.has_sanitizer = device.info().sanitizer is None
        self._runs = 0

    def take_runs(self) -> int:
        """How many runs were made since the last call."""
        runs, self._runs = self._runs, 0
        return runs

    def check(
        self, case: PlannedCase, run_limit: float, deadline: float = math.inf
    ) -> CaseHeld | CaseFailure | CaseOpen:
        """Every check for every kind of inputs that ``case`` asks for; open where ``deadline`` comes first."""
        tally = Tally()
        checks: list[str] = []
        seconds = 0.0
        previous: tuple[Expected, Mapping[str, Array]] | None = None
        for number, kind in enumerate(case.kinds):
            if time.monotonic() >= deadline:
                return CaseOpen(OUT_OF_TIME)
            made = self._one(case, kind, run_limit, tally, all_schedules=case.all_schedules and number == 0)
            if isinstance(made, CaseFailure):
                late = made.about_reference and time.monotonic() >= deadline
                return CaseOpen(OUT_OF_TIME) if late else made
            expected, finished, done = made
            seconds = max(seconds, finished.seconds)
            checks.extend(done)
            if previous is not None:
                frozen = between_inputs(self.spec, previous, (expected, finished.outputs))
                if frozen is not None:
                    first = self._options(run_limit)
                    return self._failure(frozen[0], case.bound, kind, case.origin, first, watch=frozen[1])
                checks.append("outputs move with the inputs")
            previous = (expected, finished.outputs)
        unseen = tally.never_compared
        if unseen is not None:
            return CaseOpen(f"no element of {unseen} could be compared: the reference overflows at these inputs")
        notes = (
            ("the code has atomics, so float results may differ in the last bits from run to run",)
            if self.unordered
            else ()
        )
        return CaseHeld(tally, seconds, tuple(checks), notes)

    def _options(self, run_limit: float) -> Options:
        return Options(poison_seed=self.seed % 1000, time_limit=run_limit)

    def _one(
        self, case: PlannedCase, kind: str, run_limit: float, tally: Tally, *, all_schedules: bool
    ) -> tuple[Expected, Finished, list[str]] | CaseFailure:
        bound, origin = case.bound, case.origin
        first = self._options(run_limit)
        expected = self.expect(bound, kind, run_limit)
        if isinstance(expected, Unavailable):
            made = self._failure(expected, bound, kind, origin, first)
            return replace(made, about_reference=True)
        finished = self._run(bound, expected.inputs, first)
        if not isinstance(finished, Finished):
            return self._failure(finished, bound, kind, origin, first)
        wrong = against_reference(self.spec, expected, finished.outputs, first.poison_seed, tally)
        if wrong is not None:
            return self._failure(wrong[0], bound, kind, origin, first, watch=wrong[1])
        checks = [
            "outputs written everywhere",
            "guard bands intact, inputs unchanged",
            "equal to the float64 reference within the tolerance",
            "no access out of bounds, no barrier or mask misuse seen",
        ]
        if not all_schedules and not case.is_own:
            return expected, finished, checks
        for options in self._others(first, all_schedules=all_schedules):
            again = self._run(bound, expected.inputs, options)
            if not isinstance(again, Finished):
                return self._failure(again, bound, kind, origin, options)
            differs = self._differs(case, kind, expected, (finished.outputs, first), (again.outputs, options))
            if differs is not None:
                return differs
            wrong = against_reference(self.spec, expected, again.outputs, options.poison_seed, tally)
            if wrong is not None:
                return self._failure(wrong[0], bound, kind, origin, options, watch=wrong[1])
        checks.append("same result twice")
        if all_schedules and self.has_schedules:
            checks.append("same result in forward, reverse and random order of threads")
        return expected, finished, checks

    def _differs(
        self,
        case: PlannedCase,
        kind: str,
        expected: Expected,
        one: tuple[Mapping[str, Array], Options],
        two: tuple[Mapping[str, Array], Options],
    ) -> CaseFailure | None:
        """Whether two runs that differ in order and poison disagree, and which of the two it is."""
        race = between_runs(self.spec, one, two, unordered=self.unordered)
        if race is None:
            return None
        first = one[1]
        other_poison = replace(first, poison_seed=two[1].poison_seed)
        other_order = replace(two[1], poison_seed=first.poison_seed)
        # Each twice, in turns: what races may give any of these results by chance. What is read unwritten gives the
        # same in the other order of threads, with the first filling.
        repeated = (first, other_poison, other_order, first, other_poison, other_order)
        again = [self._run(case.bound, expected.inputs, o) for o in repeated]
        ended = [run.outputs for run in again if isinstance(run, Finished)]
        if len(ended) == len(again):
            pairs = (
                (one[0], ended[0]),
                (one[0], ended[3]),
                (ended[1], ended[4]),
                *((one[0], ended[k]) for k in (2, 5)),
            )
            steady = all(between_fillings(self.spec, *pair, unordered=self.unordered) is None for pair in pairs)
            unwritten = between_fillings(self.spec, one[0], ended[1], unordered=self.unordered)
            if steady and unwritten is not None:
                found, watch = unwritten
                return self._failure(found, case.bound, kind, case.origin, first, other=other_poison, watch=watch)
        told = _told_of_streams(race[0], case.bound)
        return self._failure(told, case.bound, kind, case.origin, first, other=two[1], watch=race[1])

    def _others(self, first: Options, *, all_schedules: bool) -> list[Options]:
        """How to run again."""
        seed = first.poison_seed
        if not self.has_schedules:
            return [replace(first, poison_seed=seed + 1)]
        if not all_schedules:
            return [replace(first, schedule=Schedule.RANDOM, schedule_seed=self.seed, poison_seed=seed + 1)]
        return [
            replace(first, schedule=Schedule.REVERSE, poison_seed=seed + 1),
            replace(first, schedule=Schedule.RANDOM, schedule_seed=self.seed, poison_seed=seed + 2),
        ]

    def expect(self, bound: BoundCase, kind: str, run_limit: float) -> Expected | Unavailable:
        """What the outputs must be; Unavailable where the reference cannot tell."""
        options = Options(time_limit=run_limit)
        return self.expectations.of(bound, kind, lambda other, inputs: self._run(other, inputs, options))

    def _run(
        self, bound: BoundCase, inputs: Mapping[str, Array], options: Options, watch: Watch | None = None
    ) -> Finished | RunFailure:
        self._runs += 1
        return run(self.spec, bound, inputs, self.device, self.artifact, options, watch)

    def explain(self, failure: CaseFailure) -> CaseFailure:
        """The same failure with its thread and line, where a sanitizer or a watch finds them."""
        if self.has_sanitizer and _lacks_place(failure.outcome):
            return self._located(failure)
        if failure.watch is None or not self.has_watch:
            return failure
        expected = self.expect(failure.bound, failure.kind, failure.options.time_limit)
        if isinstance(expected, Unavailable):
            return failure
        runs = [o for o in (failure.options, failure.other) if o is not None]
        found = [self._writer(failure, expected, options) for options in runs]
        hits = [h for h in found if h is not None]
        if not hits:
            return failure
        outcome = failure.outcome
        places = tuple(dict.fromkeys(h.location for h in hits if h.location is not None))
        if isinstance(outcome, Mismatch):
            outcome = replace(outcome, owner=hits[0].thread, location=places[0] if places else None)
        elif isinstance(outcome, RaceFound):
            outcome = replace(outcome, locations=places, thread=hits[0].thread)
        elif isinstance(outcome, MemoryFault):
            outcome = replace(outcome, thread=hits[0].thread, location=places[0] if places else None)
        return replace(failure, outcome=outcome)

    def _located(self, failure: CaseFailure) -> CaseFailure:
        """A fault of the hardware, which tells no line, as memcheck sees it."""
        options = replace(failure.options, time_limit=MEMCHECK_LIMIT)
        found = self._sanitized(failure.bound, failure.kind, options, ("memcheck",))
        return failure if isinstance(found, Unavailable) or not found else replace(failure, outcome=found[0])

    def sanitize(self, case: PlannedCase, run_limit: float) -> CaseFailure | None:
        """What the sanitizer's tools find in one execution of ``case``; Unavailable is a failure too."""
        kind, options = case.kinds[0], self._options(run_limit)
        found = self._sanitized(case.bound, kind, options, SANITIZERS)
        if not isinstance(found, Unavailable) and not found:
            return None
        first = found if isinstance(found, Unavailable) else found[0]
        return self._failure(first, case.bound, kind, case.origin, options)

    def _sanitized(
        self, bound: BoundCase, kind: str, options: Options, tools: tuple[str, ...]
    ) -> tuple[SanitizerFailure, ...] | Unavailable:
        expected = self.expect(bound, kind, options.time_limit)
        if isinstance(expected, Unavailable):
            return expected
        self._runs += len(tools)
        request = request_of(self.spec, bound, expected.inputs, options)
        return self.device.sanitize(self.artifact, request, tools)

    def _writer(self, failure: CaseFailure, expected: Expected, options: Options) -> WatchHit | None:
        finished = self._run(failure.bound, expected.inputs, options, failure.watch)
        return finished.watch_hit if isinstance(finished, Finished | MemoryFault) else None

    def _failure(
        self,
        outcome: Outcome,
        bound: BoundCase,
        kind: str,
        origin: str,
        options: Options,
        *,
        other: Options | None = None,
        watch: Watch | None = None,
    ) -> CaseFailure:
        found_late = isinstance(outcome, MemoryFault) and outcome.location is None
        if isinstance(outcome, MemoryFault) and found_late and outcome.buffer and outcome.buffer in bound.shapes:
            watch = Watch(outcome.buffer, outcome.offset or 0, 1)
        case = CaseId(dict(bound.sizes), kind, self.seed, origin)
        return CaseFailure(outcome, case, bound, kind, options, other=other, watch=watch)


def _told_of_streams(outcome: Outcome, bound: BoundCase) -> Outcome:
    """Where launches run on streams, their order is another thing that a race may depend on."""
    streams = dict.fromkeys(launch.stream for launch in bound.launches if launch.stream is not None)
    if len(streams) < 2 or not isinstance(outcome, RaceFound):
        return outcome
    kernels = {s: ", ".join(dict.fromkeys(x.kernel for x in bound.launches if x.stream == s)) for s in streams}
    named = "; ".join(f"{stream}: {launched}" for stream, launched in kernels.items())
    return replace(outcome, message=f"{outcome.message}; so may launches of different streams ({named})")


def _lacks_place(outcome: Outcome) -> bool:
    """Whether the hardware ended the kernel, or damage was found later, without a line."""
    if isinstance(outcome, LaunchFailed):
        return outcome.kind in ("trap", "crash") and outcome.location is None
    return isinstance(outcome, MemoryFault) and outcome.kind != "read-only" and outcome.location is None

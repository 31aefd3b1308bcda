"""All checks of one case: run, compare, run again otherwise, compare the runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernel_forge.domain.launch import Schedule, Watch
from kernel_forge.domain.outcome import (
    CaseId,
    MemoryFault,
    Mismatch,
    MismatchKind,
    Outcome,
    RaceFound,
    RunFailure,
    Unavailable,
    WatchHit,
)
from kernel_forge.domain.spec import BufferArg, KernelReference, KernelSpec, Role
from kernel_forge.ports import Artifact, Device
from kernel_forge.spec import BoundCase
from kernel_forge.verify import tolerance as tolerances
from kernel_forge.verify.comparison import compare, describe, first_difference, same_bits
from kernel_forge.verify.inputs import Array, InputsFailed, make_inputs
from kernel_forge.verify.references import Evaluator, ReferenceFailed
from kernel_forge.verify.runs import Finished, Options, run

if TYPE_CHECKING:
    from kernel_forge.verify.policy import PlannedCase


@dataclass(frozen=True)
class CaseFailure:
    """What went wrong at one case, with what is needed to do it again."""

    outcome: Outcome
    case: CaseId
    bound: BoundCase
    kind: str
    options: Options = field(default_factory=Options)
    other: Options | None = None  # the second of two runs that disagree
    watch: Watch | None = None  # the bytes whose writer explains the failure
    about_reference: bool = False


@dataclass(frozen=True)
class CaseHeld:
    """The case holds. ``worst`` as in :class:`~kernel_forge.domain.outcome.Passed`."""

    worst: Mapping[str, float]
    seconds: float
    checks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Expected:
    reference: Mapping[str, Array]
    tolerance: Mapping[str, Array]
    inputs: Mapping[str, Array]


class CaseChecker:
    """Checks cases of one spec on one device with one compiled artifact."""

    def __init__(
        self,
        spec: KernelSpec,
        device: Device,
        artifact: Artifact,
        evaluator: Evaluator,
        *,
        float_atomics: bool,
        seed: int,
    ) -> None:
        self.spec = spec
        self.device = device
        self.artifact = artifact
        self.evaluator = evaluator
        self.float_atomics = float_atomics
        self.seed = seed
        self.has_schedules = device.info().has_schedules
        self.has_watch = device.info().has_watch
        self._runs = 0

    def take_runs(self) -> int:
        """How many runs were made since the last call."""
        runs, self._runs = self._runs, 0
        return runs

    def check(self, case: "PlannedCase", run_limit: float) -> CaseHeld | CaseFailure:
        """Every check for every kind of inputs that ``case`` asks for."""
        worst: dict[str, float] = {}
        checks: list[str] = []
        notes: list[str] = []
        seconds = 0.0
        previous: tuple[_Expected, Finished] | None = None
        for number, kind in enumerate(case.kinds):
            made = self._one(case, kind, run_limit, all_schedules=case.all_schedules and number == 0)
            if isinstance(made, CaseFailure):
                return made
            expected, finished, fractions, done = made
            seconds = max(seconds, finished.seconds)
            checks.extend(done)
            for name, fraction in fractions.items():
                worst[name] = max(worst.get(name, 0.0), fraction)
            if previous is not None:
                frozen = self._insensitive(case, kind, previous, (expected, finished))
                if frozen is not None:
                    return frozen
                checks.append("outputs move with the inputs")
            previous = (expected, finished)
        if self.float_atomics:
            notes.append("sums by float atomics may differ in the last bits from run to run")
        return CaseHeld(worst, seconds, tuple(checks), tuple(notes))

    def _one(
        self, case: "PlannedCase", kind: str, run_limit: float, *, all_schedules: bool
    ) -> "tuple[_Expected, Finished, dict[str, float], list[str]] | CaseFailure":
        bound = case.bound
        first = Options(poison_seed=self.seed % 1000, time_limit=run_limit)
        expected = self.expect(bound, kind, case.origin, run_limit)
        if isinstance(expected, CaseFailure):
            return expected
        finished = self._run(bound, expected, first)
        if not isinstance(finished, Finished):
            return self._failure(finished, bound, kind, case.origin, first)
        fractions: dict[str, float] = {}
        failure = self._compare(bound, kind, case.origin, expected, finished, first, fractions)
        if failure is not None:
            return failure
        checks = [
            "outputs written everywhere",
            "guard bands intact, inputs unchanged",
            "equal to the float64 reference within the tolerance",
            "no access out of bounds, no barrier or mask misuse seen",
        ]
        others = [replace(first, poison_seed=first.poison_seed + 1)]
        if all_schedules and self.has_schedules:
            others = [
                replace(first, schedule=Schedule.REVERSE, poison_seed=first.poison_seed + 1),
                replace(
                    first,
                    schedule=Schedule.RANDOM,
                    schedule_seed=self.seed,
                    poison_seed=first.poison_seed + 2,
                ),
            ]
        if not all_schedules and not case.is_own:
            return expected, finished, fractions, checks
        for options in others:
            again = self._run(bound, expected, options)
            if not isinstance(again, Finished):
                return self._failure(again, bound, kind, case.origin, options)
            failure = self._agree(bound, kind, case.origin, expected, finished, again, first, options, fractions)
            if failure is not None:
                return failure
        checks.append("same result twice")
        if all_schedules and self.has_schedules:
            checks.append("same result in forward, reverse and random order of threads")
        return expected, finished, fractions, checks

    def expect(self, bound: BoundCase, kind: str, origin: str, run_limit: float) -> _Expected | CaseFailure:
        """Inputs, reference and tolerance of one case."""
        case = self._case_id(bound, kind, origin)
        try:
            inputs = make_inputs(self.spec, bound, kind, self._input_seed(bound, kind), self.evaluator.load)
            reference = self.evaluator.evaluate(bound, inputs)
            tolerance = self._tolerance(bound, inputs, reference)
        except (ReferenceFailed, InputsFailed) as error:
            location = getattr(error, "location", None)
            return CaseFailure(Unavailable(str(error), location), case, bound, kind, about_reference=True)
        from_kernels = self._kernel_references(bound, kind, origin, inputs, run_limit)
        if isinstance(from_kernels, CaseFailure):
            return from_kernels
        for name, (values, allowed) in from_kernels.items():
            reference[name] = values
            tolerance[name] = allowed
        return _Expected(reference, tolerance, inputs)

    def _tolerance(
        self, bound: BoundCase, inputs: Mapping[str, Array], reference: Mapping[str, Array]
    ) -> dict[str, Array]:
        if self.spec.tolerance is not None:
            return {
                a.name: tolerances.fixed(self.spec.tolerance, reference[a.name])
                if a.dtype.is_float
                else np.zeros(reference[a.name].shape)
                for a in self.spec.outputs
                if a.name in reference
            }
        return tolerances.derive(
            self.spec,
            bound,
            inputs,
            reference,
            lambda values, kind: self.evaluator.evaluate(bound, values, kind),
            reduces=self.evaluator.reduces,
            seed=self._input_seed(bound, "tolerance"),
        )

    def _kernel_references(
        self, bound: BoundCase, kind: str, origin: str, inputs: Mapping[str, Array], run_limit: float
    ) -> dict[str, tuple[Array, Array]] | CaseFailure:
        """Outputs that another kernel gives; both sides round, so the tolerance covers two computations."""
        from kernel_forge.verify.policy import reference_bound

        found: dict[str, tuple[Array, Array]] = {}
        for output in self.spec.outputs:
            reference = self.spec.references[output.name]
            if not isinstance(reference, KernelReference):
                continue
            other = reference_bound(self.spec, reference, bound)
            options = Options(time_limit=run_limit)
            finished = self._run_bound(other, inputs, options)
            if not isinstance(finished, Finished):
                message = f"the reference kernel {reference.kernel} failed: {_text(finished)}"
                outcome = Unavailable(message, reference.location)
                return CaseFailure(outcome, self._case_id(bound, kind, origin), bound, kind, about_reference=True)
            values = finished.outputs[output.name]
            found[output.name] = (
                values,
                self._between_kernels(bound, inputs, other, output.name, values, options),
            )
        return found

    def _between_kernels(
        self,
        bound: BoundCase,
        inputs: Mapping[str, Array],
        other: BoundCase,
        name: str,
        values: Array,
        options: Options,
    ) -> Array:
        output = next(a for a in self.spec.outputs if a.name == name)
        if not output.dtype.is_float:
            return np.zeros(values.shape)
        if self.spec.tolerance is not None:
            return tolerances.fixed(self.spec.tolerance, values)

        def evaluate(moved: Mapping[str, Array], _kind: type[Any]) -> Mapping[str, Array]:
            typed = {n: moved[n].astype(inputs[n].dtype) for n in moved}
            finished = self._run_bound(other, typed, options)
            return {name: finished.outputs[name]} if isinstance(finished, Finished) else {name: values}

        return (
            2
            * tolerances.between_kernels(
                self.spec, bound, inputs, {name: values}, evaluate, seed=self._input_seed(bound, "tolerance")
            )[name]
        )

    def _run(self, bound: BoundCase, expected: _Expected, options: Options) -> Finished | RunFailure:
        return self._run_bound(bound, expected.inputs, options)

    def _run_bound(
        self,
        bound: BoundCase,
        inputs: Mapping[str, Array],
        options: Options,
        watch: Watch | None = None,
    ) -> Finished | RunFailure:
        self._runs += 1
        return run(self.spec, bound, inputs, self.device, self.artifact, options, watch)

    def _compare(
        self,
        bound: BoundCase,
        kind: str,
        origin: str,
        expected: _Expected,
        finished: Finished,
        options: Options,
        fractions: dict[str, float],
    ) -> CaseFailure | None:
        for output in self.spec.outputs:
            result = compare(
                output.name,
                output.dtype,
                finished.outputs[output.name],
                expected.reference[output.name],
                expected.tolerance[output.name],
                poison_seed=options.poison_seed if output.role is Role.OUT else None,
            )
            fractions[output.name] = max(fractions.get(output.name, 0.0), result.worst)
            if result.mismatch is not None:
                flat = _flat(result.mismatch.index, bound.shapes[output.name])
                case = self._case_id(bound, kind, origin)
                return CaseFailure(result.mismatch, case, bound, kind, options, watch=_element(output, flat))
        return None

    def _agree(
        self,
        bound: BoundCase,
        kind: str,
        origin: str,
        expected: _Expected,
        one: Finished,
        two: Finished,
        first: Options,
        second: Options,
        fractions: dict[str, float],
    ) -> CaseFailure | None:
        """Two runs of the same inputs: equal bit for bit, or within the tolerance for float atomics."""
        for output in self.spec.outputs:
            a, b = one.outputs[output.name], two.outputs[output.name]
            if same_bits(a, b):
                continue
            if self.float_atomics and output.dtype.is_float:
                failure = self._compare(bound, kind, origin, expected, two, second, fractions)
                if failure is not None:
                    return failure
                continue
            flat = first_difference(a, b)
            index = tuple(int(i) for i in np.unravel_index(flat, a.shape))
            what = f"{output.name}[{', '.join(map(str, index))}]"
            if second.schedule is first.schedule:
                message = f"{what} differs between two runs of the same inputs: {a[index]} and {b[index]}"
            else:
                message = (
                    f"{what} depends on the order of threads: {a[index]} in {first.schedule.value} order, "
                    f"{b[index]} in {second.schedule.value} order"
                )
            message += "; threads race for it, or it is computed from memory that was never written"
            case = self._case_id(bound, kind, origin)
            return CaseFailure(RaceFound(message), case, bound, kind, first, other=second, watch=_element(output, flat))
        return None

    def _insensitive(
        self, case: "PlannedCase", kind: str, one: tuple[_Expected, Finished], two: tuple[_Expected, Finished]
    ) -> CaseFailure | None:
        for output in self.spec.outputs:
            a, b = one[1].outputs[output.name], two[1].outputs[output.name]
            want_a, want_b = one[0].reference[output.name], two[0].reference[output.name]
            if a.size == 0 or not same_bits(a, b):
                continue
            scale = np.maximum(np.abs(want_a.astype(np.float64)), np.abs(want_b.astype(np.float64)))
            with np.errstate(all="ignore"):
                apart = np.abs(want_a.astype(np.float64) - want_b.astype(np.float64))
            u = output.dtype.unit_roundoff if output.dtype.is_float else 0.0
            moved = apart > 64 * u * scale
            if not moved.any():
                continue
            flat = int(np.flatnonzero(moved)[0])
            index = tuple(int(i) for i in np.unravel_index(flat, a.shape))
            mismatch = Mismatch(
                MismatchKind.INSENSITIVE,
                output.name,
                int(np.count_nonzero(moved)),
                int(a.size),
                index,
                float(want_b[index]),
                float(b[index]),
                0.0,
                float(apart.max()),
            )
            mismatch = replace(mismatch, message=describe(mismatch))
            return CaseFailure(
                mismatch,
                self._case_id(case.bound, kind, case.origin),
                case.bound,
                kind,
                watch=_element(output, flat),
            )
        return None

    def explain(self, failure: CaseFailure) -> CaseFailure:
        """The same failure with the thread and line that wrote the first wrong element, where known."""
        if failure.watch is None or not self.has_watch:
            return failure
        expected = self.expect(failure.bound, failure.kind, failure.case.origin, failure.options.time_limit)
        if isinstance(expected, CaseFailure):
            return failure
        hits = []
        for options in (failure.options, failure.other):
            if options is None:
                continue
            hit = self._writer(failure, expected, options)
            if hit is not None:
                hits.append(hit)
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

    def _writer(self, failure: CaseFailure, expected: _Expected, options: Options) -> WatchHit | None:
        finished = self._run_bound(failure.bound, expected.inputs, options, failure.watch)
        return finished.watch_hit if isinstance(finished, Finished | MemoryFault) else None

    def _failure(self, outcome: RunFailure, bound: BoundCase, kind: str, origin: str, options: Options) -> CaseFailure:
        watch = None
        found_late = isinstance(outcome, MemoryFault) and outcome.location is None
        if isinstance(outcome, MemoryFault) and found_late and outcome.buffer and outcome.buffer in bound.shapes:
            watch = Watch(outcome.buffer, outcome.offset or 0, 1)
        return CaseFailure(outcome, self._case_id(bound, kind, origin), bound, kind, options, watch=watch)

    def _case_id(self, bound: BoundCase, kind: str, origin: str) -> CaseId:
        return CaseId(dict(bound.sizes), kind, self.seed, origin)

    def _input_seed(self, bound: BoundCase, kind: str) -> int:
        words = [self.seed, *bound.sizes.values(), *kind.encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])


def _element(output: BufferArg, flat: int) -> Watch:
    size = output.dtype.itemsize
    return Watch(output.name, flat * size, size)


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(index, shape)) if shape else 0


def _text(failure: RunFailure) -> str:
    return failure.reason if isinstance(failure, Unavailable) else failure.message

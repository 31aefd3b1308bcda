"""What a case must give: inputs, reference and tolerance, the reference being NumPy or another kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import RunFailure, Unavailable
from kernel_forge.domain.spec import BufferArg, FunctionReference, KernelReference, KernelSpec
from kernel_forge.spec import BoundCase
from kernel_forge.verify import tolerance as tolerances
from kernel_forge.verify.exactness import Traced, trace_of
from kernel_forge.verify.inputs import Array, Hints, InputsFailed, make_inputs
from kernel_forge.verify.kernel_tolerance import between_kernels
from kernel_forge.verify.limits import OutOfTime, ReferenceFailed, limits
from kernel_forge.verify.planning import reference_bound
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import Finished
from kernel_forge.verify.tolerance import Allowed, exactly

RunKernel = Callable[[BoundCase, Mapping[str, Array]], Finished | RunFailure]
"""Runs the launches of a case on given inputs."""


_LARGE_INTEGERS = (2**32 - 1, 2**31 - 1, 2**30, 2**24, 2**20)


@dataclass(frozen=True)
class Expected:
    """Inputs, and per output what it must be and how far from it it may be."""

    reference: Mapping[str, Array]
    tolerance: Mapping[str, Allowed]
    inputs: Mapping[str, Array]


@dataclass(frozen=True)
class Expectations:
    """Makes the expectations of one spec; the same ``seed`` makes the same ones."""

    spec: KernelSpec
    evaluator: Evaluator
    seed: int
    thresholds: tuple[float, ...] = ()
    _steady: set[str] = field(default_factory=set)
    """Outputs whose reference function was seen to repeat itself."""

    def of(self, bound: BoundCase, kind: str, run: RunKernel) -> Expected | Unavailable:
        """Inputs, reference and tolerance of one case; Unavailable where the reference itself fails."""
        try:
            with limits(self.evaluator.time_left, None, "making the inputs"):
                inputs = self.inputs(bound, kind)
            reference = self.evaluator.evaluate(bound, inputs)
            self._ask_again(bound, inputs, reference)
            tolerance = self._tolerance(bound, inputs, reference, troubled=self.evaluator.troubles.seen)
            for output in self.spec.outputs:
                other = self.spec.references[output.name]
                if isinstance(other, KernelReference):
                    made = self._from_kernel(bound, other, output.name, inputs, run)
                    reference[output.name], tolerance[output.name] = made
        except _NotAnswered as error:
            return error.answer
        except OutOfTime as error:
            return Unavailable(str(error))
        except (ReferenceFailed, InputsFailed) as error:
            return Unavailable(str(error), error.location if isinstance(error, ReferenceFailed) else None, of_spec=True)
        return Expected(reference, tolerance, inputs)

    def _ask_again(self, bound: BoundCase, inputs: Mapping[str, Array], reference: Mapping[str, Array]) -> None:
        """A reference function that keeps something from call to call would blame the kernel for it."""
        functions = {n: r for n, r in self.spec.references.items() if isinstance(r, FunctionReference)}
        if functions.keys() <= self._steady:
            return
        again = self.evaluator.evaluate(bound, inputs)
        for name, function in functions.items():
            if again[name].tobytes() != reference[name].tobytes():
                message = f"{function.function} gives another {name} when it is asked again with the same inputs"
                raise ReferenceFailed(message, function.location)
            self._steady.add(name)

    def inputs(self, bound: BoundCase, kind: str) -> dict[str, Array]:
        """Fresh inputs; large integers as large as nothing that the reference computes leaves the kernel's types."""
        scalars = tuple(float(v) for n, v in bound.scalars.items() if n not in bound.sizes)
        hints = Hints(tuple(dict.fromkeys((*scalars, *self.thresholds))))
        seed = self._seed(bound, kind)
        for large in _LARGE_INTEGERS if kind == "large" and _is_all_integers(self.spec) else ():
            inputs = make_inputs(self.spec, bound, kind, seed, self.evaluator.load, replace(hints, large=large))
            if self._stays_in_range(bound, inputs):
                return inputs
        return make_inputs(self.spec, bound, kind, seed, self.evaluator.load, hints)

    def _stays_in_range(self, bound: BoundCase, inputs: Mapping[str, Array]) -> bool:
        types = [a.dtype for a in self.spec.args if isinstance(a, BufferArg) and a.dtype is not DType.BOOL]
        widest = max((np.iinfo(t.value) for t in types), key=lambda i: (i.bits, i.max), default=np.iinfo(np.int32))
        low, high = (widest.min, widest.max) if widest.bits > 32 or widest.min == 0 else (-(2**31), 2**31 - 1)
        low, high = (low, high) if widest.bits >= 32 else (-(2**31), 2**31 - 1)  # C computes in int at least
        trace = trace_of(DType.FLOAT64)
        if any(a.dtype.kind not in "iub" or a.dtype == np.uint64 for a in inputs.values()):
            return False
        try:
            self.evaluator.evaluate(bound, {n: Traced.of(a, trace) for n, a in inputs.items()})
        except ReferenceFailed:
            return False
        if trace.is_exact and len(trace.reached) == len(self.spec.outputs):
            return low <= trace.low <= trace.high <= high
        return widest.bits > 32 and self._wraps_nowhere(bound, inputs)

    def _wraps_nowhere(self, bound: BoundCase, inputs: Mapping[str, Array]) -> bool:
        """Whether the reference in integers is what it is in float64: for one whose steps cannot be traced."""
        try:
            whole = self.evaluator.evaluate(bound, inputs)
            real = self.evaluator.evaluate(bound, {n: a.astype(np.float64) for n, a in inputs.items()})
        except ReferenceFailed:
            return False
        for output in self.spec.outputs:
            a, b = (v[output.name].astype(np.float64) for v in (whole, real))
            limits = np.iinfo(output.dtype.value) if output.dtype is not DType.BOOL else np.iinfo(np.uint8)
            inside = (b >= float(limits.min)) & (b <= float(limits.max))
            if not (inside & np.isclose(a, b, rtol=1e-9, atol=0.0)).all():
                return False
        return True

    def _tolerance(
        self, bound: BoundCase, inputs: Mapping[str, Array], reference: Mapping[str, Array], *, troubled: bool
    ) -> dict[str, Allowed]:
        if self.spec.tolerance is not None:
            return {
                a.name: tolerances.fixed(self.spec.tolerance, reference[a.name], troubled=troubled)
                if a.dtype.is_float
                else exactly(np.zeros(reference[a.name].shape))
                for a in self.spec.outputs
                if a.name in reference
            }
        return tolerances.derive(
            self.spec,
            bound,
            inputs,
            reference,
            lambda values, kind: self.evaluator.evaluate(bound, values, kind),
            reduces=self.evaluator.reduces(bound, inputs),
            troubled=troubled,
            seed=self._seed(bound, "tolerance"),
        )

    def _from_kernel(
        self, bound: BoundCase, reference: KernelReference, name: str, inputs: Mapping[str, Array], run: RunKernel
    ) -> tuple[Array, Allowed]:
        """An output that another kernel gives; both sides round, so the tolerance covers two computations."""
        place = reference.location
        other = reference_bound(self.spec, reference, bound)

        if isinstance(other, Finding):
            raise ReferenceFailed(f"the reference kernel {reference.kernel} cannot be launched: {other.message}", place)
        launched = other

        def outputs(values: Mapping[str, Array]) -> Mapping[str, Array]:
            self.evaluator.time_left  # noqa: B018 (raises when it is over)
            finished = run(launched, values)
            if isinstance(finished, Unavailable):
                raise _NotAnswered(finished)
            if not isinstance(finished, Finished):
                raise ReferenceFailed(f"the reference kernel {reference.kernel} failed: {_text(finished)}", place)
            return finished.outputs

        values = outputs(inputs)[name]
        output = next(a for a in self.spec.outputs if a.name == name)
        if not output.dtype.is_float:
            return values, exactly(np.zeros(values.shape))
        if self.spec.tolerance is not None:
            return values, tolerances.fixed(self.spec.tolerance, values, troubled=False)

        def evaluate(moved: Mapping[str, Array], _kind: type[Any]) -> Mapping[str, Array]:
            return {name: outputs({n: moved[n].astype(inputs[n].dtype) for n in moved})[name]}

        seed = self._seed(bound, "tolerance")
        allowed = between_kernels(self.spec, bound, inputs, {name: values}, evaluate, seed=seed)
        return values, allowed[name]

    def _seed(self, bound: BoundCase, kind: str) -> int:
        words = [self.seed, *bound.sizes.values(), *kind.encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])


class _NotAnswered(Exception):
    """The device cannot run the reference kernel, which says nothing about it."""

    def __init__(self, answer: Unavailable) -> None:
        super().__init__(answer.reason)
        self.answer = answer


def _is_all_integers(spec: KernelSpec) -> bool:
    """Whether no argument is a float, so that nothing is rounded on the way."""
    return not any(a.dtype.is_float for a in spec.args)


def _text(failure: RunFailure) -> str:
    return failure.reason if isinstance(failure, Unavailable) else failure.message

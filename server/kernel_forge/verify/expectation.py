"""What a case must give: inputs, reference and tolerance, the reference being NumPy or another kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_forge.domain.outcome import RunFailure, Unavailable
from kernel_forge.domain.spec import KernelReference, KernelSpec
from kernel_forge.domain.text import Location
from kernel_forge.spec import BoundCase
from kernel_forge.verify import tolerance as tolerances
from kernel_forge.verify.inputs import Array, InputsFailed, make_inputs
from kernel_forge.verify.planning import reference_bound
from kernel_forge.verify.references import TIME_LIMIT, Evaluator
from kernel_forge.verify.runs import Finished
from kernel_forge.verify.user_code import ReferenceFailed, time_limit

RunKernel = Callable[[BoundCase, Mapping[str, Array]], Finished | RunFailure]
"""Runs the launches of a case on given inputs."""


@dataclass(frozen=True)
class Expected:
    """Inputs, and per output what it must be and how far from it it may be."""

    reference: Mapping[str, Array]
    tolerance: Mapping[str, Array]
    inputs: Mapping[str, Array]


@dataclass(frozen=True)
class Expectations:
    """Makes the expectations of one spec; the same ``seed`` makes the same ones."""

    spec: KernelSpec
    evaluator: Evaluator
    seed: int

    def of(self, bound: BoundCase, kind: str, run: RunKernel) -> Expected | Unavailable:
        """Inputs, reference and tolerance of one case; Unavailable where the reference itself fails."""
        try:
            with time_limit(TIME_LIMIT, None, "making the inputs"):
                inputs = make_inputs(self.spec, bound, kind, self._seed(bound, kind), self.evaluator.load)
            reference = self.evaluator.evaluate(bound, inputs)
            tolerance = self._tolerance(bound, inputs, reference)
        except (ReferenceFailed, InputsFailed) as error:
            location: Location | None = getattr(error, "location", None)
            return Unavailable(str(error), location, of_spec=True)
        for output in self.spec.outputs:
            other = self.spec.references[output.name]
            if isinstance(other, KernelReference):
                made = self._from_kernel(bound, other, output.name, inputs, run)
                if isinstance(made, Unavailable):
                    return made
                reference[output.name], tolerance[output.name] = made
        return Expected(reference, tolerance, inputs)

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
            seed=self._seed(bound, "tolerance"),
        )

    def _from_kernel(
        self, bound: BoundCase, reference: KernelReference, name: str, inputs: Mapping[str, Array], run: RunKernel
    ) -> tuple[Array, Array] | Unavailable:
        """An output that another kernel gives; both sides round, so the tolerance covers two computations."""
        other = reference_bound(self.spec, reference, bound)
        finished = run(other, inputs)
        if not isinstance(finished, Finished):
            message = f"the reference kernel {reference.kernel} failed: {_text(finished)}"
            return Unavailable(message, reference.location, of_spec=not isinstance(finished, Unavailable))
        values = finished.outputs[name]
        output = next(a for a in self.spec.outputs if a.name == name)
        if not output.dtype.is_float:
            return values, np.zeros(values.shape)
        if self.spec.tolerance is not None:
            return values, tolerances.fixed(self.spec.tolerance, values)

        def evaluate(moved: Mapping[str, Array], _kind: type[Any]) -> Mapping[str, Array]:
            again = run(other, {n: moved[n].astype(inputs[n].dtype) for n in moved})
            return {name: again.outputs[name] if isinstance(again, Finished) else values}

        seed = self._seed(bound, "tolerance")
        allowed = tolerances.between_kernels(self.spec, bound, inputs, {name: values}, evaluate, seed=seed)
        return values, 2 * allowed[name]

    def _seed(self, bound: BoundCase, kind: str) -> int:
        words = [self.seed, *bound.sizes.values(), *kind.encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])


def _text(failure: RunFailure) -> str:
    return failure.reason if isinstance(failure, Unavailable) else failure.message

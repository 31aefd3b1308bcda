"""The same inputs for many configurations of one kernel: made and evaluated once, compared for each.

This is no verification (one case, one kind of inputs, one run): it keeps configurations that are plainly wrong from
being timed, and compares what timed launches left.
"""

from collections.abc import Callable, Mapping

from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import Outcome, RunFailure, Unavailable
from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.ports import Artifact, Device
from kernel_forge.spec import BoundCase
from kernel_forge.verify.agreement import against_reference
from kernel_forge.verify.expectation import Expectations, Expected
from kernel_forge.verify.failure import Tally
from kernel_forge.verify.inputs import Array, InputsFailed
from kernel_forge.verify.limits import OutOfTime, ReferenceFailed, limits
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import Finished, Options, request_of, run

KIND = "centred"
Key = tuple[object, ...]


class Gate:
    """Inputs and expectations of ``spec`` on centred inputs, drawn with ``seed`` and kept.

    :meth:`inputs` and :meth:`expected` run Python of the user's: in the main thread only, before other threads use
    what they made. ``deadline`` of ``time.monotonic``.
    """

    def __init__(self, spec: KernelSpec, device: Device, *, seed: int, deadline: float) -> None:
        self.spec = spec
        self.evaluator = Evaluator.of(spec, deadline)
        self._device = device
        self._expectations = Expectations(spec, self.evaluator, seed)
        self._poison = seed % 1000
        self._inputs: dict[Key, Mapping[str, Array]] = {}
        self._expected: dict[Key, Expected | Unavailable] = {}

    def inputs(self, bound: BoundCase) -> Mapping[str, Array] | Unavailable:
        """The inputs of a case: the very same arrays for every configuration that has these sizes and scalars."""
        key = self._key(bound)
        if key not in self._inputs:
            try:
                with limits(self.evaluator.time_left, None, "making the inputs"):
                    self._inputs[key] = self._expectations.inputs(bound, KIND)
            except OutOfTime as error:
                return Unavailable(str(error))
            except (ReferenceFailed, InputsFailed) as error:
                location = error.location if isinstance(error, ReferenceFailed) else None
                return Unavailable(str(error), location, of_spec=True)
        return self._inputs[key]

    def expected(
        self, bound: BoundCase, compiled: Callable[[], Artifact | Outcome], time_limit: float
    ) -> Expected | Unavailable:
        """What a case must give; ``compiled`` is asked for the reference kernels, where there are any."""
        key = self._key(bound)
        if key not in self._expected:
            options = Options(time_limit=time_limit)

            def run_reference(other: BoundCase, inputs: Mapping[str, Array]) -> Finished | RunFailure:
                artifact = compiled()
                if not isinstance(artifact, Artifact):
                    return Unavailable("the reference kernel cannot be compiled with this configuration")
                return run(self.spec, other, inputs, self._device, artifact, options)

            self._expected[key] = self._expectations.of(bound, KIND, run_reference)
        return self._expected[key]

    def request(self, bound: BoundCase, inputs: Mapping[str, Array], time_limit: float) -> RunRequest:
        """The launches of a case on ``inputs``."""
        return request_of(self.spec, bound, inputs, Options(poison_seed=self._poison, time_limit=time_limit))

    def check(self, bound: BoundCase, artifact: Artifact, expected: Expected, time_limit: float) -> Outcome | None:
        """Run once and compare; None where it is right."""
        options = Options(poison_seed=self._poison, time_limit=time_limit)
        finished = run(self.spec, bound, expected.inputs, self._device, artifact, options)
        if not isinstance(finished, Finished):
            return finished
        found = against_reference(self.spec, expected, finished.outputs, self._poison, Tally())
        return None if found is None else found[0]

    def wrong(self, bound: BoundCase, expected: Expected, contents: Mapping[str, Array]) -> Outcome | None:
        """What is wrong with the flat ``contents`` of one execution of :meth:`request`; None where right."""
        outputs = {a.name: contents[a.name].reshape(bound.shapes[a.name]) for a in self.spec.outputs}
        found = against_reference(self.spec, expected, outputs, self._poison, Tally())
        return None if found is None else found[0]

    def _key(self, bound: BoundCase) -> Key:
        shapes = (bound.shapes[a.name] for a in self.spec.args if isinstance(a, BufferArg))
        return (*sorted(bound.sizes.items()), *sorted(bound.scalars.items()), *shapes)

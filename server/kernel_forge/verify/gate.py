"""The same inputs for many configurations of one kernel: made and evaluated once, compared for each.

This is no verification (one case, one kind of inputs, one run): it keeps configurations that are plainly wrong from
being timed, and compares what timed launches left.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.measurement import sampled
from kernel_forge.domain.outcome import Outcome, Ran, RunFailure, Unavailable
from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.ports import Artifact, Device
from kernel_forge.spec import BoundCase
from kernel_forge.verify.agreement import against_reference
from kernel_forge.verify.comparison import describe
from kernel_forge.verify.expectation import Expectations, Expected
from kernel_forge.verify.failure import Tally
from kernel_forge.verify.inputs import Array, InputsFailed
from kernel_forge.verify.limits import OutOfTime, ReferenceFailed, limits
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import Finished, Options, request_of, run
from kernel_forge.verify.tolerance import Allowed, exactly, fixed, where_finite

KIND = "centred"
A_MOMENT = 0.02
"""Seconds of one evaluation of a reference, beyond which its tolerance is not derived where that is to be quick."""
ROUGH, SAFETY, ROUNDINGS = 1e-3, 16.0, 4.0
EVALUATED_BYTES = 512 << 20
"""Of references that are kept without their tolerances; the last one is, whatever its size."""
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Rough:
    """An expectation, and whether its tolerance is rough: what differs by more may be right, where results jump. Then
    ``seconds`` is what one evaluation of the reference took.
    """

    expected: Expected | Unavailable
    is_rough: bool = False
    seconds: float = 0.0


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
        self._rough: dict[Key, Rough] = {}
        self._evaluated: dict[Key, _Evaluation | Unavailable] = {}

    def inputs(self, bound: BoundCase) -> Mapping[str, Array] | Unavailable:
        """The inputs of a case, which nothing can change: the very same arrays for every configuration that has these
        sizes and scalars, so that a device may keep them.
        """
        key = self.key(bound)
        if key not in self._inputs:
            try:
                with limits(self.evaluator.time_left, None, "making the inputs"):
                    made = self._expectations.inputs(bound, KIND)
                    self._inputs[key] = {name: _frozen(array) for name, array in made.items()}
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
        key = self.key(bound)
        if key not in self._expected:
            options = Options(time_limit=time_limit)

            def run_reference(other: BoundCase, inputs: Mapping[str, Array]) -> Finished | RunFailure:
                artifact = compiled()
                if not isinstance(artifact, Artifact):
                    return Unavailable("the reference kernel cannot be compiled with this configuration")
                return run(self.spec, other, inputs, self._device, artifact, options)

            self._expected[key] = self._expectations.of(bound, KIND, run_reference)
        return self._expected[key]

    def quickly(self, bound: BoundCase, compiled: Callable[[], Artifact | Outcome], time_limit: float) -> Rough:
        """As :meth:`expected`, but roughly where one evaluation of the reference takes longer than a moment: the
        derivation of a tolerance takes some thirty. Then an element may be off by :data:`ROUGH` of its own and the
        output's size, or by what the exact tolerance of smaller cases suggests where that is more.
        """
        key = self.key(bound)
        if key not in self._rough:
            self._rough[key] = self._quickly(bound, compiled, time_limit)
        return self._rough[key]

    def glance(
        self, bound: BoundCase, most: int, compiled: Callable[[], Artifact | Outcome], time_limit: float
    ) -> Rough:
        """As :meth:`quickly`, of a sample of each output: flat arrays of up to ``most`` elements, without the inputs.

        Not cheaper than one evaluation of the reference, but than a tolerance for all of its elements.
        """
        found = self._evaluate(bound)
        if isinstance(found, Unavailable):
            return Rough(found)
        if found.wants_exact:
            whole = self.quickly(bound, compiled, time_limit)
            if isinstance(whole.expected, Unavailable):
                return whole
            return replace(whole, expected=sample_of(bound, whole.expected, most))
        reference = {name: _sample(value, most) for name, value in found.reference.items()}
        tolerance = self._roughly(reference, troubled=found.is_troubled)
        return Rough(Expected(reference, tolerance, {}), is_rough=True, seconds=found.seconds)

    def forget(self, bound: BoundCase) -> None:
        """Let go of the arrays of a case: they are made anew where it is asked for again."""
        key = self.key(bound)
        for kept in (self._inputs, self._expected, self._rough, self._evaluated):
            kept.pop(key, None)

    def _quickly(self, bound: BoundCase, compiled: Callable[[], Artifact | Outcome], time_limit: float) -> Rough:
        found = self._evaluate(bound)
        if isinstance(found, Unavailable):
            return Rough(found)
        if found.wants_exact:
            return Rough(self.expected(bound, compiled, time_limit))
        tolerance = self._roughly(found.reference, troubled=found.is_troubled)
        return Rough(Expected(found.reference, tolerance, found.inputs), is_rough=True, seconds=found.seconds)

    def _evaluate(self, bound: BoundCase) -> "_Evaluation | Unavailable":
        key = self.key(bound)
        if key not in self._evaluated:
            inputs = self.inputs(bound)
            made = inputs if isinstance(inputs, Unavailable) else self._evaluation(bound, inputs)
            while self._evaluated and _nbytes(made) + sum(map(_nbytes, self._evaluated.values())) > EVALUATED_BYTES:
                del self._evaluated[next(iter(self._evaluated))]
            self._evaluated[key] = made
        return self._evaluated[key]

    def _evaluation(self, bound: BoundCase, inputs: Mapping[str, Array]) -> "_Evaluation | Unavailable":
        started = time.monotonic()
        try:
            reference = self.evaluator.evaluate(bound, inputs)
        except ReferenceFailed as error:
            return Unavailable(str(error), error.location, of_spec=True)
        seconds = time.monotonic() - started
        lacks_outputs = bool({a.name for a in self.spec.outputs} - reference.keys())
        return _Evaluation(inputs, reference, seconds, lacks_outputs, self.evaluator.troubles.seen)

    def _roughly(self, reference: Mapping[str, Array], *, troubled: bool) -> dict[str, Allowed]:
        return {name: self._rough_tolerance(name, value, troubled=troubled) for name, value in reference.items()}

    def _rough_tolerance(self, name: str, reference: Array, *, troubled: bool) -> Allowed:
        if reference.dtype.kind != "f":
            return exactly(np.zeros(reference.shape))
        if self.spec.tolerance is not None:
            return fixed(self.spec.tolerance, reference, troubled=troubled)
        known = [e for e in self._expected.values() if isinstance(e, Expected)]
        dtype = next(a.dtype for a in self.spec.outputs if a.name == name)
        least = max(ROUGH, ROUNDINGS * dtype.unit_roundoff) if dtype.is_float else ROUGH
        share = max([least, *(SAFETY * _share(e, name) for e in known)])
        return exactly(where_finite(reference, share * _size(reference), troubled=troubled))

    def request(self, bound: BoundCase, inputs: Mapping[str, Array], time_limit: float) -> RunRequest:
        """The launches of a case on ``inputs``."""
        return request_of(self.spec, bound, inputs, Options(poison_seed=self._poison, time_limit=time_limit))

    def check(self, bound: BoundCase, artifact: Artifact, expected: Expected, time_limit: float) -> Outcome | None:
        """Run once and compare; None where it is right."""
        ran = self._device.run(artifact, self.request(bound, expected.inputs, time_limit))
        return self.wrong(bound, expected, ran.contents) if isinstance(ran, Ran) else ran

    def wrong(self, bound: BoundCase, expected: Expected, contents: Mapping[str, Array]) -> Outcome | None:
        """What is wrong with the flat ``contents`` of one execution of :meth:`request`; None where right."""
        outputs = {a.name: contents[a.name].reshape(bound.shapes[a.name]) for a in self.spec.outputs}
        found = against_reference(self.spec, expected, outputs, self._poison, Tally())
        return None if found is None else found[0]

    def wrong_in_sample(
        self, bound: BoundCase, expected: Expected, contents: Mapping[str, Array], most: int, *, allowed: float = 0.0
    ) -> Outcome | None:
        """What is wrong with a sample of the outputs, ``expected`` being one of a sample.

        None where right, and where no more than the share ``allowed`` of the sample is wrong.
        """
        outputs = {a.name: contents[a.name] for a in self.spec.outputs}
        found = against_reference(self.spec, expected, outputs, self._poison, Tally())
        if found is None:
            return None
        mismatch = found[0]
        if mismatch.count <= allowed * mismatch.total:
            return None
        count = bound.count(mismatch.output)
        places = range(count)[sampled(count, most)]
        place = np.unravel_index(places[mismatch.index[0]], bound.shapes[mismatch.output])
        moved = replace(mismatch, index=tuple(int(i) for i in place))
        looked = f"; {len(places)} of its {count} elements were looked at" if len(places) < count else ""
        return replace(moved, message=describe(moved) + looked)

    def key(self, bound: BoundCase) -> Key:
        """Equal for configurations that have the same inputs and results at a case."""
        shapes = (bound.shapes[a.name] for a in self.spec.args if isinstance(a, BufferArg))
        return (*sorted(bound.sizes.items()), *sorted(bound.scalars.items()), *shapes)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """A reference at one case, and how long it took."""

    inputs: Mapping[str, Array]
    reference: dict[str, Array]
    seconds: float
    lacks_outputs: bool
    is_troubled: bool

    @property
    def wants_exact(self) -> bool:
        """Whether the exact tolerance is to be derived: soon done, or the only way to have all outputs."""
        return self.lacks_outputs or self.seconds < A_MOMENT


def sample_of(bound: BoundCase, expected: Expected, most: int) -> Expected:
    """The part of ``expected`` that a sample of up to ``most`` elements of each output is compared with."""
    reference = {name: _sample(value, most) for name, value in expected.reference.items()}
    tolerance = {
        name: Allowed(*(_sample(np.broadcast_to(a, bound.shapes[name]), most) for a in (t.error, t.overflow)))
        for name, t in expected.tolerance.items()
    }
    return Expected(reference, tolerance, {})


def _frozen(array: Array) -> Array:
    """The array itself where it is all of its memory, else a copy."""
    own = array if array.flags.owndata and array.flags.c_contiguous else array.copy()
    own.setflags(write=False)
    return own


def _nbytes(evaluation: _Evaluation | Unavailable) -> int:
    return 0 if isinstance(evaluation, Unavailable) else sum(a.nbytes for a in evaluation.reference.values())


def _sample(array: Array, most: int) -> Array:
    return array.reshape(-1)[sampled(array.size, most)]


def _size(reference: Array) -> Array:
    """Per element its own and the typical size; shape as ``reference``."""
    values = np.abs(np.nan_to_num(reference.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0))
    size: Array = values + np.sqrt(np.mean(values * values))
    return size


def _share(expected: Expected, name: str) -> float:
    """The largest exact tolerance of an output as a share of :func:`_size`."""
    error, size = expected.tolerance[name].error, _size(expected.reference[name])
    shares = np.divide(error, size, out=np.zeros(size.shape), where=(size > 0) & np.isfinite(error))
    return float(shares.max(initial=0.0))

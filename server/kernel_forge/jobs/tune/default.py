"""The default configuration: what speed is compared with, and what must be right before anything is searched."""

from collections.abc import Sequence

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import TimingPlan
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.jobs.configurations import in_words
from kernel_forge.jobs.tune.workbench import COMPARED_BYTES, GATE_LIMIT, Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.search import SearchSpace
from kernel_forge.spec import is_legal

_ONCE = TimingPlan(budget=0.1, interval=1.0, min_samples=1, outputs=False)


def refuse_unfit_cases(bench: Workbench, default: Configuration, cases: Sequence[Sizes]) -> None:
    """There must be something to time, and to compare: nothing wins whose results nobody has looked at.

    Raises:
        UsageError: the kernel launches nothing at a case, or its buffers are too large there to be compared.
    """
    for sizes in cases:
        bound = bench.bind(sizes, default)
        if not isinstance(bound, Finding) and not bound.launches:
            raise UsageError(f"{bench.spec.kernel} launches nothing at {in_words(sizes)}, so there is no time to take")
        if not isinstance(bound, Finding) and bench.compared_bytes(bound) > COMPARED_BYTES:
            raise UsageError(
                f"the buffers of {bench.spec.kernel} take {bench.compared_bytes(bound) / 2**30:.3g} GiB at "
                f"{in_words(sizes)}, too much to be compared with the reference; tune it for smaller sizes (--case)"
            )


def problem_with_default(
    bench: Workbench, space: SearchSpace, default: Configuration, cases: Sequence[Sizes], gate: Sizes | None
) -> Outcome | None:
    """What is wrong with the default; None where it is right at the case ``gate`` and can be launched at ``cases``."""
    bounds = []
    for sizes in cases:
        bound = bench.bind(sizes, default)
        if isinstance(bound, Finding):
            return LaunchFailed("configuration", bound.message)
        if not is_legal(bench.spec, sizes, default):
            return LaunchFailed("configuration", f"a where of the spec does not admit {in_words(sizes)}")
        bounds.append(bound)
    if space.index_of(default) is None:
        return LaunchFailed("configuration", "the constraints rule it out")
    artifact = bench.compile(bounds[0])
    if not isinstance(artifact, Artifact):
        return artifact
    for bound in bounds:
        exceeded = bench.exceeded(bound, artifact)
        if exceeded is not None:
            return exceeded
    if gate is None:
        return None
    expected = bench.expectation(gate, default)
    if expected is None or isinstance(expected, Unavailable):
        return expected
    return bench.gate.check(expected[0], artifact, expected[1], GATE_LIMIT)


def is_answering(bench: Workbench, default: Configuration, sizes: Sizes) -> bool:
    """Whether the device can still time a configuration that it could time before; in any thread."""
    bound = bench.bind(sizes, default)
    artifact = None if isinstance(bound, Finding) else bench.compile(bound)
    if isinstance(bound, Finding) or not isinstance(artifact, Artifact):
        return False
    inputs = bench.gate.inputs(bound)
    if isinstance(inputs, Unavailable):
        return False
    timings = bench.device.time([Trial(artifact, bench.gate.request(bound, inputs, GATE_LIMIT))], _ONCE)
    return not isinstance(timings, Unavailable) and not isinstance(timings.results[0], Unavailable)

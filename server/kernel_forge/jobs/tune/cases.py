"""At which sizes to check configurations, and which an emulator can be asked for."""

import math
from collections.abc import Sequence

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Ran, Unavailable
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Artifact

GATE_BYTES = 4 << 20
EMULATED_GATE_BYTES = 1 << 20
EMULATED_SECONDS = 3.0


def gate_case(bench: Workbench, default: Configuration, cases: Sequence[Sizes], *, small: bool) -> Sizes | None:
    """The largest of the spec's and the tuned cases whose buffers are small enough to be compared at every trial.

    Where all are larger, the smallest that launches anything; None where none does.
    """
    limit = EMULATED_GATE_BYTES if small else GATE_BYTES
    sized = []
    for sizes in (*bench.spec.cases, *cases):
        bound = bench.bind(sizes, default)
        if not isinstance(bound, Finding) and bound.launches:
            sized.append((bench.nbytes(bound), sizes))
    fitting = [pair for pair in sized if pair[0] <= limit]
    if fitting:
        return max(fitting, key=lambda pair: pair[0])[1]
    return min(sized, key=lambda pair: pair[0])[1] if sized else None


def affordable_case(bench: Workbench, default: Configuration) -> Sizes | None:
    """The first case of the spec that the emulator runs within a few seconds; None where no case is known to.

    A default that fails is not judged here.
    """
    for sizes in bench.spec.cases:
        bound = bench.bind(sizes, default)
        if isinstance(bound, Finding) or not bound.launches:
            continue
        inputs = bench.gate.inputs(bound)
        artifact = bench.compile(bound)
        if isinstance(inputs, Unavailable) or not isinstance(artifact, Artifact):
            return sizes
        ran = bench.device.run(artifact, bench.gate.request(bound, inputs, 2 * EMULATED_SECONDS))
        if (ran.seconds if isinstance(ran, Ran) else math.inf) <= EMULATED_SECONDS:
            return sizes
    return None

"""One case compiled and found right, ready to be run again: what timing begins with."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import Outcome, Unavailable
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.ports import Artifact, Device
from kernel_forge.source import SourceFile
from kernel_forge.spec import BoundCase
from kernel_forge.verify.agreement import against_reference
from kernel_forge.verify.atomics import unordered_outputs
from kernel_forge.verify.check_case import CaseChecker
from kernel_forge.verify.compiling import compile_case
from kernel_forge.verify.failure import CaseFailure, CaseOpen, Tally
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.planning import PlannedCase
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import Options, request_of

RUN_LIMIT = 30.0
KIND = "centred"


@dataclass(frozen=True)
class CheckedRun:
    """``request`` is what ran right on ``inputs``; it has the time limit of the check."""

    bound: BoundCase
    artifact: Artifact
    request: RunRequest
    inputs: Mapping[str, Array]
    evaluator: Evaluator
    checker: CaseChecker

    def request_at(self, bound: BoundCase) -> RunRequest:
        """The same at another case, on inputs of the same kind.

        Raises:
            ReferenceFailed: an ``init`` of the spec fails there.
        """
        inputs = self.checker.expectations.inputs(bound, KIND)
        options = Options(poison_seed=self.request.poison_seed, time_limit=RUN_LIMIT)
        return request_of(self.checker.spec, bound, inputs, options)

    def wrong(self, contents: Mapping[str, Array]) -> Outcome | None:
        """What is wrong with the flat ``contents`` of the outputs, as another execution on the same inputs left them.

        Raises:
            ReferenceFailed: an ``init`` of the spec fails.
        """
        spec, bound = self.checker.spec, self.bound
        expected = self.checker.expect(bound, KIND, RUN_LIMIT)
        if isinstance(expected, Unavailable):
            return expected
        outputs = {a.name: contents[a.name].reshape(bound.shapes[a.name]) for a in spec.outputs}
        found = against_reference(spec, expected, outputs, self.request.poison_seed, Tally())
        return None if found is None else found[0]


def checked_run(
    spec: KernelSpec,
    source: SourceFile,
    device: Device,
    bound: BoundCase,
    *,
    seed: int,
    deadline: float,
    include_dirs: tuple[str, ...] = (),
    defines: Mapping[str, str] | None = None,
    flags: tuple[str, ...] = (),
) -> CheckedRun | Outcome:
    """Compile, run and compare ``bound`` on centred inputs; ``deadline`` is of ``time.monotonic``.

    This is no verification (one case, one kind of inputs): it keeps wrong kernels from being timed.
    """
    artifact = compile_case(spec, source, device, bound, include_dirs, defines or {}, deadline, flags)
    if not isinstance(artifact, Artifact):
        return artifact
    evaluator = Evaluator.of(spec, deadline)
    unordered = unordered_outputs(spec, source, include_dirs)
    checker = CaseChecker(spec, device, artifact, evaluator, unordered=unordered, seed=seed)
    case = PlannedCase(bound, "the timed case", (KIND,), all_schedules=False, is_own=False)
    held = checker.check(case, RUN_LIMIT, deadline)
    if isinstance(held, CaseFailure):
        return checker.explain(held).outcome
    if isinstance(held, CaseOpen):
        return Unavailable(held.reason)
    inputs = checker.expectations.inputs(bound, KIND)
    options = Options(poison_seed=seed % 1000, time_limit=RUN_LIMIT)
    return CheckedRun(bound, artifact, request_of(spec, bound, inputs, options), inputs, evaluator, checker)

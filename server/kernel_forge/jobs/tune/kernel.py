"""Tuning one kernel: its space searched, the best timed again, the winner verified in full."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import Peaks, TimingPlan
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable, Verdict
from kernel_forge.domain.record import Platform, Subject
from kernel_forge.domain.spec import Configuration, KernelSpec, Sizes
from kernel_forge.domain.tuning import KernelTuning
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.configurations import in_words
from kernel_forge.jobs.rates import limits_of, occupancy_of, rates, work_of
from kernel_forge.jobs.requests import TuneRequest
from kernel_forge.jobs.tune.cases import affordable_case, gate_case
from kernel_forge.jobs.tune.executor import DeviceGone
from kernel_forge.jobs.tune.finals import Judge, Timing, choices, finalists, time_again, winner
from kernel_forge.jobs.tune.local import GATE_LIMIT, LocalExecutor, suitable_width
from kernel_forge.jobs.tune.opening import opening
from kernel_forge.jobs.tune.record import SearchRecord, open_record
from kernel_forge.jobs.tune.searching import Searching
from kernel_forge.jobs.tune.space import facts_of, search_space
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import Artifact, Device, Ledger
from kernel_forge.search import SAMPLERS, Search, SearchSpace
from kernel_forge.source import SourceFile
from kernel_forge.spec import is_legal
from kernel_forge.verify import verify
from kernel_forge.verify.gate import Gate

TRIAL_PLAN = TimingPlan(budget=0.25, interval=0.02, min_samples=5, outputs=False)
FINAL_PLAN = TimingPlan(budget=2.0, interval=0.005, min_samples=15)
EMULATED_PLAN = TimingPlan(budget=0.3, interval=0.05, min_samples=6)
GROUP = 4
"""Trials timed against each other on a GPU; an emulation has nothing to gain from groups."""


class _Ended(Exception):
    """There is nothing to search for, or no winner: the outcome says why."""

    def __init__(self, outcome: Outcome, configuration: Configuration | None = None) -> None:
        super().__init__()
        self.outcome, self.configuration = outcome, configuration


@dataclass
class KernelTuner:
    """Tunes ``spec`` for ``cases``, the tunables in ``fixed`` left as they are; used once."""

    request: TuneRequest
    spec: KernelSpec
    source: SourceFile
    device: Device
    options: CompileOptions
    report: Report
    is_finishing: Callable[[], bool]
    ledger: Ledger | None
    fixed: Configuration
    cases: tuple[Sizes, ...]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.info = self.device.info()
        self.started = time.monotonic()
        self.default: Configuration = {**self.spec.default_configuration, **self.fixed}

    @property
    def is_emulated(self) -> bool:
        """Whether this device is no GPU."""
        return self.info.basis == "emulated"

    def tune(self, subject: Subject, platform: Platform, seed: int) -> KernelTuning | Verdict:
        """From the space to a verified winner, or why there is none.

        Raises:
            UsageError: the space is empty or too large, or the cases launch nothing.
        """
        self.report(Progress(f"preparing {self.info.name}"))
        unusable = Unavailable(self.info.unavailable) if self.info.unavailable else self.device.prepare()
        if unusable is not None:
            return self._verdict(unusable, self.default, seed)
        if self.options.note is not None:
            self.notes.append(self.options.note)
        if self.is_emulated and not self.request.cases:
            self._emulate_smaller(seed)
        bench = self._bench(seed)
        space = search_space(self.spec, self.source, self.cases, self.fixed, bench.limits, self.info.name)
        self.notes += _without_value(space)
        record = open_record(self.ledger, self.request, subject, platform, self.cases, self.fixed, seed)
        if record.seed != seed:
            bench = self._bench(record.seed)  # the inputs of the search that goes on
        try:
            made = self._tuned(bench, space, record)
        except _Ended as end:
            if not isinstance(end.outcome, Unavailable):  # else it may be gone on with, once the device answers again
                record.gave_up(encode(end.outcome))
            return self._verdict(end.outcome, end.configuration or self.default, record.seed)
        record.end(made, self.info.description)
        trouble = () if record.trouble is None else (record.trouble,)
        return replace(made, notes=(*self.notes, *trouble))

    def _bench(self, seed: int) -> Workbench:
        gate = Gate(self.spec, self.device, seed=seed, deadline=time.monotonic() + self.request.wall_limit)
        return Workbench(self.spec, self.source, self.device, self.options, limits_of(self.info), gate)

    def _emulate_smaller(self, seed: int) -> None:
        smaller = affordable_case(self._bench(seed), self.default)
        if smaller is not None and dict(smaller) != dict(self.cases[0]):
            self.notes.append(f"tuned at {in_words(smaller)}: the first case takes too long to emulate")
            self.cases = (dict(smaller),)

    def _tuned(self, bench: Workbench, space: SearchSpace, record: SearchRecord) -> KernelTuning:
        gate = gate_case(bench, self.default, self.cases, small=self.is_emulated)
        baseline = self._baseline(bench, space, gate)
        searching, ended = self._searched(bench, space, record, baseline, gate)
        self.report(Progress(f"{self.spec.kernel}: timing the best again"))
        timing = self._timed_again(bench, searching, baseline)
        judge = Judge(lambda configuration: self._verify(configuration, record.seed))
        best = winner(timing.contenders, baseline, judge)
        if best is None:
            worst = next((v.outcome for v in judge.rejected), Unavailable("none of the best could be timed again"))
            raise _Ended(worst, baseline)
        base = next((c for c in timing.contenders if c.configuration == baseline), None)
        per_case = choices(timing.contenders, base, self.cases, judge)
        wrong = tuple(self._verdict(outcome, c, record.seed) for c, outcome in timing.wrong)
        made = KernelTuning(
            kernel=self.spec.kernel,
            path=self.spec.path,
            device=self.info.name,
            basis=self.info.basis,
            cases=self.cases,
            space=facts_of(space),
            sampler=self.request.sampler,
            seed=record.seed,
            budget=self.request.budget,
            ended=ended,
            trials=tuple(searching.trials),
            baseline=base,
            winner=best,
            verdict=judge.verdict(best.configuration),
            finalists=timing.contenders,
            rejected=(*wrong, *judge.rejected),
            choices=per_case,
            resumed=len(record.taken),
            run=record.run,
        )
        return replace(self._with_rates(made, bench), seconds=time.monotonic() - self.started)

    def _baseline(self, bench: Workbench, space: SearchSpace, gate: Sizes | None) -> Configuration | None:
        """The default, or None where it does not launch here. One that is wrong as it stands ends the tuning."""
        problem = self._problem_with_default(bench, space, gate)
        if problem is None:
            return self.default
        if isinstance(problem, LaunchFailed) and problem.kind == "configuration":
            self.notes.append(f"the default does not run here ({problem.message}), so there is nothing to compare with")
            return None
        raise _Ended(problem)

    def _problem_with_default(self, bench: Workbench, space: SearchSpace, gate: Sizes | None) -> Outcome | None:
        bounds = []
        for sizes in self.cases:
            bound = bench.bind(sizes, self.default)
            if isinstance(bound, Finding):
                return LaunchFailed("configuration", bound.message)
            if not bound.launches:
                raise UsageError(
                    f"{self.spec.kernel} launches nothing at {in_words(sizes)}, so there is no time to take"
                )
            if not is_legal(self.spec, sizes, self.default):
                return LaunchFailed("configuration", f"a where of the spec does not admit {in_words(sizes)}")
            bounds.append(bound)
        if space.index_of(self.default) is None:
            return LaunchFailed("configuration", "the constraints rule it out")
        self.report(Progress(f"{self.spec.kernel}: checking the default"))
        artifact = bench.compile(bounds[0])
        if not isinstance(artifact, Artifact):
            return artifact
        exceeded = bench.exceeded(bounds[0], artifact)
        if exceeded is not None or gate is None:
            return exceeded
        expected = bench.expectation(gate, self.default)
        if expected is None or isinstance(expected, Unavailable):
            return expected
        return bench.gate.check(expected[0], artifact, expected[1], GATE_LIMIT)

    def _searched(
        self,
        bench: Workbench,
        space: SearchSpace,
        record: SearchRecord,
        baseline: Configuration | None,
        gate: Sizes | None,
    ) -> tuple[Searching, str]:
        """The search after its end, and why it ended."""
        sampler = SAMPLERS[self.request.sampler](space, record.seed)
        first = opening(bench, space, self.ledger, self.cases[0], self.default, gate, record.seed)
        group = 1 if self.is_emulated else GROUP
        width = suitable_width(group, learns=sampler.learns)
        executor = LocalExecutor(bench, self.cases, gate, TRIAL_PLAN, group=group, width=width)
        searching = Searching(
            self.spec.kernel,
            Search(space, sampler, first=[configuration for configuration, _ in first]),
            executor,
            record,
            self.request.budget,
            self.report,
            baseline,
            self.is_finishing,
            first,
        )
        try:
            return searching, searching.run()
        except DeviceGone as gone:
            raise _Ended(Unavailable(str(gone))) from gone
        finally:
            executor.close()

    def _timed_again(self, bench: Workbench, searching: Searching, baseline: Configuration | None) -> Timing:
        chosen = finalists(searching.trials, baseline, len(self.cases))
        if not chosen:
            reasons = Counter(t.failure.partition(":")[0] for t in searching.trials if t.failure)
            shown = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3)) or "none was tried"
            raise _Ended(Unavailable(f"no configuration has a time ({shown})"))
        plan = replace(EMULATED_PLAN if self.is_emulated else FINAL_PLAN, energy=self.request.energy)
        timing = time_again(bench, chosen, baseline, self.cases, plan)
        if isinstance(timing, Unavailable):
            raise _Ended(timing)
        of_default = next((outcome for c, outcome in timing.wrong if c == baseline), None)
        if of_default is not None:
            raise _Ended(of_default)
        self.notes += timing.notes
        return timing

    def _verify(self, configuration: Configuration, seed: int) -> Verdict:
        return verify(
            self.spec,
            self.source,
            self.device,
            seed=seed,
            configuration=configuration,
            report=self.report,
            time_limit=self.request.time_limit,
            include_dirs=self.options.include_dirs,
            defines=self.options.defines,
            flags=self.options.flags,
        )

    def _with_rates(self, made: KernelTuning, bench: Workbench) -> KernelTuning:
        """With what the winner's time means at the first case, where the device has peaks to compare with."""
        peaks = self.device.peaks()
        bound = bench.bind(self.cases[0], made.winner.configuration)
        if not isinstance(peaks, Peaks) or isinstance(bound, Finding):
            return made
        inputs = bench.gate.inputs(bound)
        work = None if isinstance(inputs, Unavailable) else work_of(bound, bench.gate.evaluator, inputs)
        artifact = bench.compile(bound)
        held = occupancy_of(self.info, artifact, bound.launches[0]) if isinstance(artifact, Artifact) else None
        return replace(
            made, attained=rates(self.spec, bound, work, made.winner.times[0].seconds, peaks), occupancy=held
        )

    def _verdict(self, outcome: Outcome, configuration: Configuration, seed: int) -> Verdict:
        seconds = time.monotonic() - self.started
        return Verdict(
            self.spec.kernel,
            self.spec.path,
            outcome,
            dict(configuration),
            seed,
            self.info.name,
            self.info.basis,
            seconds=seconds,
            notes=tuple(self.notes),
        )


def _without_value(space: SearchSpace) -> Sequence[str]:
    return [
        f"{note.constraint} has no value for {note.combinations} combinations ({note.reason}): they are ruled out"
        for note in space.without_value
    ]

"""Tuning one kernel: its space searched, the best timed again, the winner verified in full."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

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
from kernel_forge.jobs.tune.conclusion import Judge, NoWinner, conclude
from kernel_forge.jobs.tune.default import is_answering, problem_with_default, refuse_unfit_cases
from kernel_forge.jobs.tune.executor import DeviceGone
from kernel_forge.jobs.tune.local import LocalExecutor, suitable_width
from kernel_forge.jobs.tune.opening import opening
from kernel_forge.jobs.tune.record import SearchRecord, open_record
from kernel_forge.jobs.tune.samples import SAMPLE, ExpectedSamples
from kernel_forge.jobs.tune.search_process import SearchOf, searches
from kernel_forge.jobs.tune.searching import Searching
from kernel_forge.jobs.tune.space import facts_of, ruled_out, search_space
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import Artifact, Device, Ledger
from kernel_forge.processes import freed_memory_kept
from kernel_forge.search import SAMPLERS, SearchSpace
from kernel_forge.source import SourceFile
from kernel_forge.verify import verify
from kernel_forge.verify.gate import Gate

TRIAL_PLAN = TimingPlan(budget=0.25, interval=0.02, min_samples=6, outputs=False, sample=SAMPLE)
FINAL_PLAN = TimingPlan(budget=2.0, interval=0.005, min_samples=15)
EMULATED_PLAN = TimingPlan(budget=0.3, interval=0.05, min_samples=6)
GROUP = 4
"""Trials timed against each other on a GPU; an emulation has nothing to gain from groups."""


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
        with freed_memory_kept(), searches(apart=self.info.basis.startswith("measured")) as search_of:
            return self._tune(subject, platform, seed, search_of)

    def _tune(self, subject: Subject, platform: Platform, seed: int, search_of: SearchOf) -> KernelTuning | Verdict:
        bench = self._bench(seed)
        if self.is_emulated and not self.request.cases:
            self._emulate_smaller(bench)
        refuse_unfit_cases(bench, self.default, self.cases)
        space = search_space(self.spec, self.source, self.cases, self.fixed, bench.limits, self.info.name)
        self.notes += ruled_out(space)
        record = open_record(self.ledger, self.request, subject, platform, self.cases, self.fixed, seed)
        if record.seed != seed:
            bench = self._bench(record.seed)  # the inputs of the search that goes on
        try:
            made = self._tuned(bench, space, record, search_of)
            record.end(made, self.info.description)
            return replace(made, notes=(*self.notes, *record.troubles), run=record.run)
        except NoWinner as ended:
            end = ended.end
            verdict = end if isinstance(end, Verdict) else self._verdict(end, self.default, record.seed)
            if not isinstance(verdict.outcome, Unavailable):  # else it may be gone on with, once the device answers
                record.gave_up(encode(verdict.outcome))
            return replace(verdict, notes=tuple(dict.fromkeys((*verdict.notes, *self.notes, *record.troubles))))
        finally:
            record.release()

    def _bench(self, seed: int) -> Workbench:
        gate = Gate(self.spec, self.device, seed=seed, deadline=time.monotonic() + self.request.wall_limit)
        return Workbench(self.spec, self.source, self.device, self.options, limits_of(self.info), gate)

    def _emulate_smaller(self, bench: Workbench) -> None:
        smaller = affordable_case(bench, self.default)
        if smaller is not None and dict(smaller) != dict(self.cases[0]):
            self.notes.append(f"tuned at {in_words(smaller)}: the first case takes too long to emulate")
            self.cases = (dict(smaller),)

    def _tuned(self, bench: Workbench, space: SearchSpace, record: SearchRecord, search_of: SearchOf) -> KernelTuning:
        gate = gate_case(bench, self.default, self.cases, small=self.is_emulated)
        baseline = self._baseline(bench, space, gate)
        began = time.monotonic()
        searching, ended = self._searched(bench, space, record, baseline, gate, search_of)
        searched = time.monotonic() - began
        self.report(Progress(f"{self.spec.kernel}: timing the best again"))
        judge = Judge(lambda configuration: self._verify(configuration, record.seed), self.default)
        plan = replace(EMULATED_PLAN if self.is_emulated else FINAL_PLAN, energy=self.request.energy)
        found = conclude(bench, searching.trials, baseline, self.cases, plan, judge)
        self.notes += found.notes
        failed = tuple(self._verdict(outcome, c, record.seed) for c, outcome in found.failed)
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
            baseline=found.baseline,
            winner=found.winner,
            verdict=judge.verdict(found.winner.configuration),
            default_verdict=None if baseline is None else judge.verdict(baseline),
            finalists=found.finalists,
            rejected=(*failed, *judge.rejected),
            choices=found.choices,
            resumed=len(record.taken),
            search_seconds=searched,
        )
        return replace(self._with_rates(made, bench), seconds=time.monotonic() - self.started)

    def _baseline(self, bench: Workbench, space: SearchSpace, gate: Sizes | None) -> Configuration | None:
        """The default, or None where it does not launch here. One that is wrong as it stands ends the tuning."""
        self.report(Progress(f"{self.spec.kernel}: checking the default"))
        problem = problem_with_default(bench, space, self.default, self.cases, gate)
        if problem is None:
            return self.default
        if isinstance(problem, LaunchFailed) and problem.kind == "configuration":
            self.notes.append(f"the default does not run here ({problem.message}), so there is nothing to compare with")
            return None
        raise NoWinner(problem)

    def _searched(
        self,
        bench: Workbench,
        space: SearchSpace,
        record: SearchRecord,
        baseline: Configuration | None,
        gate: Sizes | None,
        search_of: SearchOf,
    ) -> tuple[Searching, str]:
        """The search after its end, and why it ended."""
        first = opening(bench, space, self.ledger, self.cases[0], self.default, gate, record.seed)
        group = 1 if self.is_emulated else GROUP
        width = suitable_width(group, learns=SAMPLERS[self.request.sampler].learns)
        samples = ExpectedSamples(bench, TRIAL_PLAN.sample)
        is_there = partial(is_answering, bench, self.default, self.cases[0])
        executor = LocalExecutor(
            bench, self.cases, gate, TRIAL_PLAN, group=group, width=width, samples=samples, is_there=is_there
        )
        try:
            searching = Searching(
                self.spec.kernel,
                search_of(space, self.request.sampler, record.seed, [configuration for configuration, _ in first]),
                executor,
                record,
                self.request.budget,
                self.report,
                baseline,
                self.is_finishing,
                first,
                meanwhile=samples.make,
                in_order=self.is_emulated,
            )
            return searching, searching.run()
        except DeviceGone as gone:
            raise NoWinner(Unavailable(str(gone))) from gone
        finally:
            executor.close()

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

"""The tune job: text -> specs -> each kernel's space searched, its best verified."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import Peaks, TimingPlan
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable, Verdict
from kernel_forge.domain.record import Platform, Subject
from kernel_forge.domain.spec import Configuration, KernelSpec, Sizes
from kernel_forge.domain.tuning import Contender, KernelTuning
from kernel_forge.jobs.circumstances import circumstances
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.compile_options import options_of
from kernel_forge.jobs.configurations import chosen_sizes, fixed_tunables, in_words
from kernel_forge.jobs.rates import limits_of, occupancy_of, rates, work_of
from kernel_forge.jobs.requests import Circumstances, TuneReport, TuneRequest
from kernel_forge.jobs.tune.cases import affordable_case, gate_case
from kernel_forge.jobs.tune.executor import DeviceGone
from kernel_forge.jobs.tune.finals import Judge, choices, finalists, time_again, winner
from kernel_forge.jobs.tune.local import GATE_LIMIT, LocalExecutor
from kernel_forge.jobs.tune.record import SearchRecord, open_record
from kernel_forge.jobs.tune.searching import Searching
from kernel_forge.jobs.tune.space import facts_of, search_space
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import Artifact, Device, DeviceInfo, FindLedger, Ledger
from kernel_forge.search import SAMPLERS, Search, SearchSpace
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import is_legal, read_specs
from kernel_forge.verify import master_seed, verify
from kernel_forge.verify.gate import Gate

TRIAL_PLAN = TimingPlan(budget=0.25, interval=0.02, min_samples=5, outputs=False)
FINAL_PLAN = TimingPlan(budget=2.0, interval=0.005, min_samples=15)
GROUP = 4
"""Trials timed against each other on a GPU; an emulation has nothing to gain from groups."""


def tune_file(
    request: TuneRequest,
    device: Device,
    report: Report,
    find_ledger: FindLedger = lambda _: None,
    tell: Callable[[Circumstances], None] = lambda _: None,
    is_finishing: Callable[[], bool] = lambda: False,
) -> TuneReport:
    """Tune the kernels of a file that have a spec with tunables (or the one asked for).

    ``tell`` gets what is about to be run; each search is written into the ledger while it runs, and goes on with an
    unfinished one found there. ``is_finishing`` tells that somebody wants the result of what was tried so far.

    Raises:
        SourceError: the text is no CUDA text at all.
        UsageError: nothing to tune, an empty space, sizes or values that the spec does not have, an unknown sampler.
    """
    if request.sampler not in SAMPLERS:
        raise UsageError(f"there is no sampler {request.sampler} (samplers: {', '.join(SAMPLERS)})")
    source = parse(request.text, request.path)
    reading = read_specs(source, request.sidecar)
    asked = [spec for spec in reading.specs if request.kernel is None or spec.kernel == request.kernel]
    wanted = [spec for spec in asked if spec.tunables]
    if asked and not wanted:
        names = ", ".join(spec.kernel for spec in asked)
        raise UsageError(f"{names}: no [tune] table in the spec, so there is nothing to tune")
    options = options_of(request)
    seed = master_seed(request.seed)
    undertaken = [(spec, {**spec.default_configuration, **request.configuration}, seed) for spec in wanted]
    told = circumstances(request, source, device.info(), options, undertaken)
    tell(told)
    ledger = find_ledger(request.path)
    results: list[KernelTuning | Verdict] = []
    for spec, undertaking in zip(wanted, told.undertakings, strict=True):
        made = _Tuning(request, spec, source, device, device.info(), options, report, is_finishing, time.monotonic())
        results.append(made.run(ledger, undertaking.subject, told.platform, seed))
    return TuneReport(reading.problems, tuple(results))


@dataclass
class _Tuning:
    """The tuning of one kernel."""

    request: TuneRequest
    spec: KernelSpec
    source: SourceFile
    device: Device
    info: DeviceInfo
    options: CompileOptions
    report: Report
    is_finishing: Callable[[], bool]
    started: float

    def run(self, ledger: Ledger | None, subject: Subject, platform: Platform, seed: int) -> KernelTuning | Verdict:
        """From the space to a verified winner, or why there is none."""
        spec, request = self.spec, self.request
        self.report(Progress(f"preparing {self.info.name}"))
        unusable = Unavailable(self.info.unavailable) if self.info.unavailable else self.device.prepare()
        fixed = fixed_tunables(spec, request.configuration)
        default = {**spec.default_configuration, **fixed}
        cases = tuple(chosen_sizes(spec, asked) for asked in request.cases) or (dict(spec.cases[0]),)
        if unusable is not None:
            return self._verdict(unusable, default, seed)
        notes = [] if self.options.note is None else [self.options.note]
        gate = Gate(spec, self.device, seed=seed, deadline=time.monotonic() + request.wall_limit)
        bench = Workbench(spec, self.source, self.device, self.options, limits_of(self.info), gate)
        if self.info.basis == "emulated" and not request.cases:
            smaller = affordable_case(bench, default)
            if smaller is not None and dict(smaller) != dict(cases[0]):
                notes.append(f"tuned at {in_words(smaller)}: the first case takes too long to emulate")
                cases = (smaller,)
        space = search_space(spec, self.source, cases, fixed, bench.limits, self.info.name)
        record = open_record(ledger, request, subject, platform, cases, fixed, seed)
        if record.seed != seed:  # the inputs of the search that goes on
            gate = Gate(spec, self.device, seed=record.seed, deadline=time.monotonic() + request.wall_limit)
            bench = replace(bench, gate=gate)
        at = gate_case(bench, default, cases, small=self.info.basis == "emulated")
        baseline: Configuration | None = default
        problem = self._problem_with(bench, default, at, cases, space)
        if isinstance(problem, LaunchFailed) and problem.kind == "configuration":
            notes.append(f"the default does not run here ({problem.message}), so there is nothing to compare with")
            baseline = None
        elif problem is not None:
            record.gave_up(encode(problem))
            return self._verdict(problem, default, record.seed)
        return self._search(bench, space, record, baseline, cases, at, notes)

    def _search(
        self,
        bench: Workbench,
        space: SearchSpace,
        record: SearchRecord,
        baseline: Configuration | None,
        cases: Sequence[Sizes],
        at: Sizes | None,
        notes: list[str],
    ) -> KernelTuning | Verdict:
        sampler = SAMPLERS[self.request.sampler](space, record.seed)
        first = [] if baseline is None else [baseline]
        group = 1 if self.info.basis == "emulated" else GROUP
        executor = LocalExecutor(bench, cases, at, TRIAL_PLAN, group=group)
        searching = Searching(
            self.spec.kernel,
            Search(space, sampler, first=first),
            executor,
            record,
            self.request.budget,
            self.report,
            baseline,
            self.is_finishing,
        )
        try:
            ended = searching.run()
        except DeviceGone as gone:
            return self._verdict(Unavailable(str(gone)), baseline or {}, record.seed)
        finally:
            executor.close()
        self.report(Progress(f"{self.spec.kernel}: timing the best again"))
        chosen = finalists(searching.trials, baseline, len(cases))
        if not chosen:
            return self._nothing_timed(searching, record)
        plan = replace(FINAL_PLAN, energy=self.request.energy)
        timing = time_again(bench, chosen, baseline, cases, plan)
        if isinstance(timing, Unavailable):
            return self._verdict(timing, baseline or {}, record.seed)
        judge = Judge(lambda configuration: self._verify(configuration, record.seed))
        of_default = next((outcome for c, outcome in timing.wrong if c == baseline), None)
        best = None if of_default is not None else winner(timing.contenders, baseline, judge)
        if best is None:
            worst = of_default or next((v.outcome for v in judge.rejected), None)
            outcome = worst or Unavailable("none of the best could be timed again")
            record.gave_up(encode(outcome))
            return self._verdict(outcome, baseline or chosen[0], record.seed)
        base = next((c for c in timing.contenders if c.configuration == baseline), None)
        per_case = choices(timing.contenders, base, cases, judge)
        wrong = tuple(self._verdict(outcome, c, record.seed) for c, outcome in timing.wrong)
        notes += [*timing.notes, *(_without_value(space)), *([record.trouble] if record.trouble else [])]
        made = KernelTuning(
            kernel=self.spec.kernel,
            path=self.spec.path,
            device=self.info.name,
            basis=self.info.basis,
            cases=tuple(cases),
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
            notes=tuple(notes),
        )
        made = self._with_rates(made, bench, cases[0], best)
        made = replace(made, seconds=time.monotonic() - self.started)
        record.end(made, self.info.description)
        return made if record.trouble is None else replace(made, notes=(*made.notes, record.trouble))

    def _problem_with(
        self, bench: Workbench, default: Configuration, at: Sizes | None, cases: Sequence[Sizes], space: SearchSpace
    ) -> Outcome | None:
        """What is wrong with the default: a kernel that is wrong as it stands is not worth searching."""
        bounds = [bench.bind(sizes, default) for sizes in cases]
        for bound in bounds:
            if isinstance(bound, Finding):
                return LaunchFailed("configuration", bound.message)
            if not bound.launches:
                raise UsageError(f"{self.spec.kernel} launches nothing at {in_words(bound.sizes)}: nothing to time")
        for sizes in cases:
            if not is_legal(self.spec, sizes, default) or space.index_of(dict(default)) is None:
                shown = in_words({**sizes})
                return LaunchFailed("configuration", f"the constraints do not admit it at {shown}")
        self.report(Progress(f"{self.spec.kernel}: checking the default"))
        bound = bounds[0]
        assert not isinstance(bound, Finding)
        artifact = bench.compile(bound)
        if not isinstance(artifact, Artifact):
            return artifact
        exceeded = bench.exceeded(bound, artifact)
        if exceeded is not None or at is None:
            return exceeded
        gate = bench.expectation(at, default)
        if gate is None or isinstance(gate, Unavailable):
            return gate
        return bench.gate.check(gate[0], artifact, gate[1], GATE_LIMIT)

    def _verify(self, configuration: Configuration, seed: int) -> Verdict:
        self.report(Progress(f"{self.spec.kernel}: verifying {in_words_of(configuration)}"))
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

    def _with_rates(self, made: KernelTuning, bench: Workbench, sizes: Sizes, best: Contender) -> KernelTuning:
        """With what the winner's time means at the first case, where the device has peaks to compare with."""
        peaks = self.device.peaks()
        bound = bench.bind(sizes, best.configuration)
        if not isinstance(peaks, Peaks) or isinstance(bound, Finding):
            return made
        inputs = bench.gate.inputs(bound)
        work = None if isinstance(inputs, Unavailable) else work_of(bound, bench.gate.evaluator, inputs)
        artifact = bench.compile(bound)
        held = occupancy_of(self.info, artifact, bound.launches[0]) if isinstance(artifact, Artifact) else None
        return replace(made, attained=rates(self.spec, bound, work, best.times[0].seconds, peaks), occupancy=held)

    def _nothing_timed(self, searching: Searching, record: SearchRecord) -> Verdict:
        reasons = Counter(t.failure.partition(":")[0] for t in searching.trials if t.failure)
        shown = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3)) or "none was tried"
        outcome = Unavailable(f"no configuration has a time ({shown})")
        record.gave_up(encode(outcome))
        return self._verdict(outcome, self.spec.default_configuration, record.seed)

    def _verdict(self, outcome: Outcome, configuration: Configuration, seed: int) -> Verdict:
        seconds = time.monotonic() - self.started
        name, basis = self.info.name, self.info.basis
        return Verdict(
            self.spec.kernel, self.spec.path, outcome, dict(configuration), seed, name, basis, seconds=seconds
        )


def in_words_of(configuration: Configuration) -> str:
    """``BLOCK = 128, VEC = 4``."""
    return ", ".join(f"{name} = {value}" for name, value in configuration.items())


def _without_value(space: SearchSpace) -> list[str]:
    return [
        f"{note.constraint} has no value for {note.combinations} combinations ({note.reason}): they are ruled out"
        for note in space.without_value
    ]

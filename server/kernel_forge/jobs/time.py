"""The time job: text -> specs -> each kernel checked at one case, then timed there."""

import time
from collections.abc import Callable
from dataclasses import replace

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.measurement import Peaks, Timed
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable, Verdict
from kernel_forge.domain.performance import KernelTiming
from kernel_forge.domain.spec import BufferArg, Configuration, KernelSpec, Sizes
from kernel_forge.jobs.circumstances import circumstances
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.compile_options import options_of
from kernel_forge.jobs.configurations import chosen_configuration, chosen_sizes, in_words
from kernel_forge.jobs.rates import occupancy_of, rates, work_of
from kernel_forge.jobs.requests import Circumstances, TimeReport, TimeRequest
from kernel_forge.ports import Device, Trial
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import BoundCase, bind, read_specs
from kernel_forge.verify import master_seed
from kernel_forge.verify.checked_run import CheckedRun, checked_run
from kernel_forge.verify.limits import ReferenceFailed

# Beyond this the reference and its tolerance, some thirty evaluations in float64, would take longer than all else.
CHECKED_BYTES = 64 << 20


NO_GPU = "the time of an emulation on a CPU says nothing of how fast a GPU would be"


def time_file(
    request: TimeRequest, device: Device, report: Report, tell: Callable[[Circumstances], None] = lambda _: None
) -> TimeReport:
    """Time the kernels of a file that have a spec (or the one asked for), each at its first case or the sizes given.

    ``tell`` gets what is about to be run.

    A kernel that is wrong there has no time: its verdict stands in place of one.

    Raises:
        SourceError: the text is no CUDA text at all.
        UsageError: sizes or a configuration that the spec does not admit, or a compiler flag that is not accepted.
    """
    source = parse(request.text, request.path)
    reading = read_specs(source, request.sidecar)
    wanted = [spec for spec in reading.specs if request.kernel is None or spec.kernel == request.kernel]
    undertaken = [
        (spec, chosen_configuration(spec, request.configuration), master_seed(request.seed)) for spec in wanted
    ]
    options = options_of(request)
    tell(circumstances(request, source, device.info(), options, undertaken))
    results = tuple(
        _time(spec, configuration, seed, source, device, request, options, report)
        for spec, configuration, seed in undertaken
    )
    return TimeReport(reading.problems, results)


def _time(
    spec: KernelSpec,
    configuration: Configuration,
    seed: int,
    source: SourceFile,
    device: Device,
    request: TimeRequest,
    options: CompileOptions,
    report: Report,
) -> KernelTiming | Verdict:
    started = time.monotonic()
    sizes = chosen_sizes(spec, request.sizes)
    info = device.info()

    def verdict(outcome: Outcome) -> Verdict:
        seconds = time.monotonic() - started
        return Verdict(
            spec.kernel, spec.path, outcome, dict(configuration), seed, info.name, info.basis, seconds=seconds
        )

    report(Progress(f"preparing {info.name}"))
    unusable = Unavailable(info.unavailable) if info.unavailable is not None else device.prepare()
    if unusable is not None:
        return verdict(unusable)
    bound = bind(spec, sizes, configuration)
    if isinstance(bound, Finding):
        return verdict(LaunchFailed("configuration", bound.message))
    if not bound.launches:
        raise UsageError(f"{spec.kernel} launches nothing at {in_words(sizes)}, so there is no time to take")
    checked_at = _to_check(spec, sizes, bound, configuration)
    report(Progress(f"{spec.kernel}: checking at {in_words(checked_at.sizes)}"))
    deadline = time.monotonic() + request.time_limit
    checked = checked_run(
        spec,
        source,
        device,
        checked_at,
        seed=seed,
        deadline=deadline,
        include_dirs=options.include_dirs,
        defines=options.defines,
        flags=options.flags,
    )
    if not isinstance(checked, CheckedRun):
        return verdict(checked)
    report(Progress(f"{spec.kernel}: timing at {in_words(sizes)}"))
    try:
        timed_request = checked.request if checked_at is bound else checked.request_at(bound)
    except ReferenceFailed as error:
        return verdict(Unavailable(str(error), error.location, of_spec=True))
    plan = replace(request.plan, outputs=checked_at is bound)
    timings = device.time([Trial(checked.artifact, timed_request)], plan)
    if isinstance(timings, Unavailable):
        return verdict(timings)
    timed = timings.results[0]
    if not isinstance(timed, Timed):
        return verdict(timed)
    if plan.outputs:
        wrong = checked.wrong(timed.contents)
        if wrong is not None:
            return replace(verdict(wrong), notes=("the launches that were timed left this; one by itself was right",))
    peaks = device.peaks()
    found = None
    if isinstance(peaks, Peaks):
        work = work_of(checked_at, checked.evaluator, checked.inputs) if checked_at is bound else None
        found = rates(spec, bound, work, timed.measurement.seconds, peaks)
    counters = device.profile(checked.artifact, timed_request) if request.profile else ()
    return KernelTiming(
        spec.kernel,
        spec.path,
        dict(sizes),
        dict(checked_at.sizes),
        dict(configuration),
        timed.measurement,
        timings.drift,
        info.name,
        occupancy_of(info, checked.artifact, timed_request.launches[0]),
        found,
        peaks if isinstance(peaks, Peaks) else None,
        () if isinstance(counters, Unavailable) else counters,
        counters.reason if isinstance(counters, Unavailable) else None,
        plan.outputs,
        tuple(note for note in (options.note, None if info.basis != "emulated" else NO_GPU) if note is not None),
    )


def _to_check(spec: KernelSpec, sizes: Sizes, bound: BoundCase, configuration: Configuration) -> BoundCase:
    """The case to check before timing: the timed one, or where its reference would take long, the first of the spec."""
    nbytes = sum(bound.count(a.name) * a.dtype.itemsize for a in spec.args if isinstance(a, BufferArg))
    first = bind(spec, spec.cases[0], configuration)
    too_large = nbytes > CHECKED_BYTES and dict(sizes) != dict(spec.cases[0])
    return first if too_large and isinstance(first, BoundCase) else bound

"""The time job: text -> specs -> each kernel checked at one case, then timed there."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.measurement import Peaks, Timed
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable, Verdict
from kernel_forge.domain.performance import Attained, KernelTiming, Occupancy
from kernel_forge.domain.spec import BufferArg, Configuration, KernelSpec, Sizes
from kernel_forge.jobs.circumstances import circumstances
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.compile_options import options_of
from kernel_forge.jobs.configurations import chosen_configuration
from kernel_forge.jobs.requests import Circumstances, TimeReport, TimeRequest
from kernel_forge.perf import (
    Counting,
    Work,
    attained,
    compulsory_bytes,
    occupancy,
)
from kernel_forge.ports import Artifact, Device, DeviceInfo, Trial
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
    sizes = {**spec.cases[0], **_sizes(spec, request.sizes)}
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
        raise UsageError(f"{spec.kernel} launches nothing at {_words(sizes)}, so there is no time to take")
    checked_at = _to_check(spec, sizes, bound, configuration)
    report(Progress(f"{spec.kernel}: checking at {_words(checked_at.sizes)}"))
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
    report(Progress(f"{spec.kernel}: timing at {_words(sizes)}"))
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
    rates = None if isinstance(peaks, Unavailable) else _attained(spec, bound, checked_at, checked, timed, peaks)
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
        _occupancy(info, checked.artifact, timed_request),
        rates,
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


def _sizes(spec: KernelSpec, asked: Mapping[str, int]) -> Sizes:
    for name in asked:
        if name not in spec.sizes:
            known = ", ".join(spec.sizes) or "none"
            raise UsageError(f"{spec.kernel} has no size {name} (sizes: {known})")
    return dict(asked)


def _words(sizes: Sizes) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "its one case"


def _attained(
    spec: KernelSpec, bound: BoundCase, checked_at: BoundCase, checked: CheckedRun, timed: Timed, peaks: Peaks
) -> Attained:
    counts = {a.name: bound.count(a.name) for a in spec.args if isinstance(a, BufferArg)}
    work = Work()
    try:
        checked.evaluator.evaluate(checked_at, {n: Counting.of(a, work) for n, a in checked.inputs.items()})
    except ReferenceFailed:  # the reference wants plain arrays; it held with those
        work.complete = False
    known = work.complete and work.operations and checked_at is bound
    floats = [a.dtype for a in spec.args if isinstance(a, BufferArg) and a.dtype.is_float]
    narrow = bool(floats) and floats[0] in (DType.FLOAT16, DType.BFLOAT16)
    arithmetic = "float64" if DType.FLOAT64 in floats else "float16 tensor" if narrow and work.products else "float32"
    operations = work.operations if known else None
    return attained(timed.measurement.seconds, compulsory_bytes(spec, counts), operations, arithmetic, peaks)


def _occupancy(info: DeviceInfo, artifact: Artifact, request: RunRequest) -> Occupancy | None:
    """Of the first launch, where the device is a GPU that tells its limits."""
    launch = request.launches[0]
    resources = artifact.resources.get(launch.kernel)
    if resources is None or "max threads per multiprocessor" not in info.facts:
        return None
    limits = HardwareLimits.from_facts({k.replace(" ", "_"): v for k, v in info.facts.items()})
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    return occupancy(limits, threads, resources.registers, resources.shared_bytes + launch.shared_bytes)

"""The verify job: text -> specs -> verdicts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kernel_forge.domain.event import Report
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.spec import Configuration, KernelSpec
from kernel_forge.jobs.circumstances import circumstances, python_files
from kernel_forge.jobs.compile_options import options_of
from kernel_forge.jobs.configurations import chosen_configuration
from kernel_forge.jobs.requests import Circumstances, FileReport, VerifyRequest
from kernel_forge.jobs.second_opinion import with_second_opinion
from kernel_forge.ports import Device
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify


def verify_file(
    request: VerifyRequest,
    device: Device,
    report: Report,
    emulator: Device | None = None,
    tell: Callable[[Circumstances], None] = lambda _: None,
) -> FileReport:
    """Read the specs of the file, ``tell`` what is about to be run, and verify each (or the one asked for).

    What passes under sanitizers is verified on ``emulator`` as well, where the device itself is none.

    Raises:
        SourceError: the text is no CUDA text at all.
        UsageError: the configuration asked for is not one that the spec admits, or a compiler flag is not accepted.
    """
    source = parse(request.text, request.path)
    reading = read_specs(source, request.sidecar)
    wanted = [spec for spec in reading.specs if _wanted(spec, request.kernel)]
    configurations = [chosen_configuration(spec, request.configuration) for spec in wanted]
    options = options_of(request)
    undertaken = [(spec, chosen, request.seed) for spec, chosen in zip(wanted, configurations, strict=True)]
    tell(circumstances(request, source, device.info(), options, undertaken))

    def verify_one(spec: KernelSpec, configuration: Configuration, on: Device, time_limit: float) -> Verdict:
        return verify(
            spec,
            source,
            on,
            seed=request.seed,
            configuration=configuration,
            report=report,
            time_limit=time_limit,
            include_dirs=options.include_dirs,
            defines=options.defines,
            flags=options.flags,
            sanitize=request.sanitize,
        )

    verdicts = []
    for spec, configuration in zip(wanted, configurations, strict=True):
        verdict = verify_one(spec, configuration, device, request.time_limit)
        if request.sanitize and emulator is not None and not device.info().has_misuse_checks:
            again = partial(verify_one, spec, configuration)
            verdict = with_second_opinion(verdict, emulator, again, request.time_limit)
        verdicts.append(verdict)
    if options.note is not None:
        verdicts = [replace(v, notes=(*v.notes, options.note)) for v in verdicts]
    return FileReport(reading.problems, tuple(verdicts), any(path for spec in wanted for path in python_files(spec)))


def _wanted(spec: KernelSpec, kernel: str | None) -> bool:
    return kernel is None or spec.kernel == kernel

"""The verify job: text -> specs -> verdicts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kernel_forge.domain.event import Report
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.spec import BufferArg, Configuration, FunctionInit, FunctionReference, KernelSpec
from kernel_forge.jobs.circumstances import circumstances
from kernel_forge.jobs.compile_database import compile_options
from kernel_forge.jobs.compiler_flags import compiler_flags
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
    options = compile_options(request.path)
    flags = compiler_flags(request.flags, options.flags)
    undertaken = [(spec, chosen, request.seed) for spec, chosen in zip(wanted, configurations, strict=True)]
    tell(circumstances(request, source, device.info(), options, flags, undertaken))

    def verify_one(spec: KernelSpec, configuration: Configuration, on: Device, time_limit: float) -> Verdict:
        return verify(
            spec,
            source,
            on,
            seed=request.seed,
            configuration=configuration,
            report=report,
            time_limit=time_limit,
            include_dirs=(*request.include_dirs, *options.include_dirs),
            defines={**options.defines, **request.defines},
            flags=flags,
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
    return FileReport(reading.problems, tuple(verdicts), any(_has_python(spec) for spec in wanted))


def _has_python(spec: KernelSpec) -> bool:
    """Whether verifying ``spec`` runs Python files of the user."""
    references = any(isinstance(r, FunctionReference) for r in spec.references.values())
    return references or any(isinstance(a, BufferArg) and isinstance(a.init, FunctionInit) for a in spec.args)


def _wanted(spec: KernelSpec, kernel: str | None) -> bool:
    return kernel is None or spec.kernel == kernel

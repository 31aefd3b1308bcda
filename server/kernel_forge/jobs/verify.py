"""The verify job: text -> specs -> verdicts."""

from kernel_forge.domain.event import Report
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.ports import Device
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify


def verify_file(request: VerifyRequest, device: Device, report: Report) -> FileReport:
    """Read the specs of the file and verify each (or the one asked for).

    Raises:
        SourceError: the text is no CUDA text at all.
    """
    source = parse(request.text, request.path)
    reading = read_specs(source, request.sidecar)
    verdicts = [
        verify(
            spec,
            source,
            device,
            seed=request.seed,
            configuration={k: v for k, v in request.configuration.items() if k in spec.default_configuration},
            report=report,
            time_limit=request.time_limit,
            include_dirs=request.include_dirs,
            defines=request.defines,
            flags=request.flags,
        )
        for spec in reading.specs
        if _wanted(spec, request.kernel)
    ]
    return FileReport(reading.problems, tuple(verdicts))


def _wanted(spec: KernelSpec, kernel: str | None) -> bool:
    return kernel is None or spec.kernel == kernel

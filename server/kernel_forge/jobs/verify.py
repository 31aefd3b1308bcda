"""The verify job: text -> specs -> verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.event import Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.ports import Device
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify.

    Attributes:
        path: the CUDA file, absolute.
        text: its text (the editor's, not necessarily what is on disk).
        sidecar: path and text of ``name.forge.toml``, where there is one.
        kernel: only the kernel of that name; None for all with a spec.
        device: name of the device.
        seed: None draws a fresh one.
        configuration: values of tunables instead of their defaults.
        time_limit: seconds for one kernel.
    """

    path: str
    text: str
    sidecar: tuple[str, str] | None = None
    kernel: str | None = None
    device: str = "auto"
    seed: int | None = None
    configuration: Mapping[str, int | float | bool] = field(default_factory=dict)
    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    time_limit: float = 120.0


@dataclass(frozen=True)
class FileReport:
    """What a verify job found. ``specs`` are summaries for hovers: kernel -> text lines."""

    problems: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]


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

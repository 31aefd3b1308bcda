"""What is asked of a job and what comes back: plain values, so that an owner need not import what does the work."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Verdict


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
    """What a verify job found: every problem of the specs, and a verdict per kernel verified."""

    problems: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]

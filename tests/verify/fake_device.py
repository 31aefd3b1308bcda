"""A device whose kernels are NumPy functions, and a short way to verify one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernel_forge.domain.launch import BufferRef, CompileRequest, RunRequest, poison
from kernel_forge.domain.outcome import CompileFailed, MemoryFault, Ran, RunOutcome, Unavailable, Verdict
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.ports import Artifact, DeviceInfo
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify

Kernel = Callable[..., None]


class FakeDevice:
    """Runs ``kernel(*args)``: flat arrays for pointers, numbers for scalars; one function for every launch.

    A kernel that takes ``request`` as its keyword argument gets the RunRequest, to act on its schedule.
    """

    def __init__(
        self, kernel: Kernel, *, basis: str = "fake", seconds: float = 0.0, wants_request: bool = False
    ) -> None:
        self.kernel, self.basis, self.seconds, self.wants_request = kernel, basis, seconds, wants_request
        self.requests: list[RunRequest] = []

    def info(self) -> DeviceInfo:
        return DeviceInfo("fake", "NumPy functions", self.basis, has_schedules=True)

    def prepare(self) -> Unavailable | None:
        return None

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        return Artifact("fake", request.kernels)

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        self.requests.append(request)
        memory: dict[str, np.ndarray[Any, Any]] = {}
        for b in request.buffers:
            fresh = poison(b.dtype, b.nbytes // b.dtype.itemsize, request.poison_seed)
            memory[b.name] = fresh.copy() if b.data is None else np.array(b.data)
        with np.errstate(all="ignore"):
            for launch in request.launches:
                args = [memory[a.name] if isinstance(a, BufferRef) else a.value for a in launch.args]
                outcome = self.kernel(*args, **({"request": request} if self.wants_request else {}))
                if outcome is not None:
                    return outcome  # type: ignore[unreachable]
        for b in request.buffers:
            if not b.writable and b.data is not None and memory[b.name].tobytes() != np.array(b.data).tobytes():
                return MemoryFault("read-only", f"{b.name} is an input", buffer=b.name, offset=0)
        return Ran({b.name: memory[b.name] for b in request.buffers if b.writable}, seconds=self.seconds)


def read(signature: str, block: str, path: str = "fake.cu", grid: int = 1) -> tuple[KernelSpec, SourceFile]:
    """The spec and source of ``__global__ void k(signature)`` with a spec block."""
    lines = [
        "kernel-forge",
        'kernel = "k"',
        *block.strip().splitlines(),
        "",
        "[launch]",
        f"grid = {grid}",
        "block = 32",
        "///",
    ]
    text = "// /// " + "\n// ".join(lines) + f"\n__global__ void k({signature}) {{}}\n"
    source = parse(text, path)
    reading = read_specs(source, None)
    assert not reading.problems, [p.message for p in reading.problems]
    return reading.specs[0], source


def check(
    signature: str,
    block: str,
    kernel: Kernel,
    *,
    path: Path | str = "fake.cu",
    seed: int = 0,
    grid: int = 1,
    **more: Any,
) -> Verdict:
    """Verify ``kernel`` against the block, launched on ``grid`` blocks of 32 threads."""
    spec, source = read(signature, block, str(path), grid)
    device = more.pop("device", None) or FakeDevice(kernel)
    return verify(spec, source, device, seed=seed, **more)

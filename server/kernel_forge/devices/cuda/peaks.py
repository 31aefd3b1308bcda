"""The peaks of a GPU: measured with kernels of ours, once per GPU and driver, kept in the cache."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, Scalar
from kernel_forge.domain.measurement import Peaks, Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.ports import Artifact, Trial

SOURCE = Path(__file__).with_name("peaks.cu")
KERNELS = ("kf_peak_copy", "kf_peak_float32", "kf_peak_float64", "kf_peak_tensor")
PLAN = TimingPlan(budget=3.0, interval=0.005, outputs=False)
_COPY_BYTES = 1 << 30
_ROUNDS = 4096
_THREADS = 256
_BLOCKS_PER_MULTIPROCESSOR = 8
# Operations per thread and round, see peaks.cu.
_ARITHMETIC = {
    "kf_peak_float32": ("float32", 16.0),
    "kf_peak_float64": ("float64", 16.0),
    "kf_peak_tensor": ("float16 tensor", 4 * 2 * 16**3 / 32),
}
Time = Callable[[Sequence[Trial], TimingPlan], Timings | Unavailable]


def kept_peaks(folder: Path, facts: Mapping[str, Any]) -> Path:
    """The file that keeps the peaks of the GPU with these facts."""
    identity = json.dumps([facts.get(k) for k in ("name", "driver_cuda", "memory_bytes", "multiprocessors")])
    digest = hashlib.sha256((identity + SOURCE.read_text(encoding="utf-8")).encode()).hexdigest()
    return folder / f"{digest[:20]}.json"


def read_peaks(file: Path) -> Peaks | None:
    """What is kept, if it is whole."""
    try:
        return Peaks(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_peaks(file: Path, peaks: Peaks) -> None:
    """Keep ``peaks``; a cache that cannot be written costs a measurement the next time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(peaks)), encoding="utf-8")
    except OSError:
        return


def measure_peaks(
    time: Time, artifact: Artifact, facts: Mapping[str, Any], basis: str
) -> tuple[Peaks, bool] | Unavailable:
    """Time the kernels of peaks.cu; also whether the GPU was steady meanwhile: what a busy one did is no peak."""
    blocks = _BLOCKS_PER_MULTIPROCESSOR * int(facts["multiprocessors"])
    nbytes = min(_COPY_BYTES, int(facts["memory_bytes"]) // 16 // 16 * 16)
    # Which grid copies fastest differs from GPU to GPU: a few blocks that walk, or one step for every thread.
    grids = (blocks, 4 * blocks, -(-nbytes // 16 // _THREADS))
    copies = [_copy(artifact, nbytes, grid) for grid in grids]
    timings = time([*copies, *(_arithmetic(artifact, k, blocks) for k in _ARITHMETIC)], PLAN)
    if isinstance(timings, Unavailable):
        return timings
    seconds: list[float] = []
    for kernel, result in zip((KERNELS[0],) * len(grids) + KERNELS[1:], timings.results, strict=True):
        if not isinstance(result, Timed):
            return Unavailable(f"{kernel} could not be timed: {result}")
        seconds.append(result.measurement.seconds)
    work = blocks * _THREADS * _ROUNDS
    rates = {n: ops * work / t for (n, ops), t in zip(_ARITHMETIC.values(), seconds[len(grids) :], strict=True)}
    return Peaks(2 * nbytes / min(seconds[: len(grids)]), rates, basis), timings.is_steady


def _copy(artifact: Artifact, nbytes: int, grid: int) -> Trial:
    buffers = (Buffer("from", DType.FLOAT32, nbytes), Buffer("to", DType.FLOAT32, nbytes))
    args = (BufferRef("from"), BufferRef("to"), Scalar(DType.INT64, nbytes // 16))
    launch = Launch("kf_peak_copy", args, (grid, 1, 1), (_THREADS, 1, 1))
    return Trial(artifact, RunRequest(buffers, (launch,)))


def _arithmetic(artifact: Artifact, kernel: str, blocks: int) -> Trial:
    args = (BufferRef("out"), Scalar(DType.FLOAT32, 0.999), Scalar(DType.INT32, _ROUNDS))
    launch = Launch(kernel, args, (blocks, 1, 1), (_THREADS, 1, 1))
    return Trial(artifact, RunRequest((Buffer("out", DType.FLOAT32, 4),), (launch,)))

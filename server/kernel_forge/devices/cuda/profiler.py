"""Hardware counters of an execution, read with ncu."""

import csv
import math
from collections.abc import Iterable

from kernel_forge.devices.cuda.artifacts import load_code
from kernel_forge.devices.cuda.asking import ask
from kernel_forge.devices.cuda.outcomes import understood
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.wire import encode_runs
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.performance import Counters
from kernel_forge.ports import Artifact

# ncu's metric -> our field. In base units: bytes, nanoseconds, percent.
METRICS = {
    "gpu__time_duration.sum": "nanoseconds",
    "dram__bytes_read.sum": "memory_read_bytes",
    "dram__bytes_write.sum": "memory_written_bytes",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory_percent",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessor_percent",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_percent",
    "lts__t_sector_hit_rate.pct": "l2_hit_percent",
    "l1tex__data_bank_conflicts_pipe_lsu.sum": "bank_conflicts",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": "load_sector_percent",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "active_lanes",
}
SETUP_SECONDS = 120.0
MISSING = (
    "ncu was not found on the GPU's machine: it comes with the CUDA toolkit (Nsight Compute); KERNEL_FORGE_NCU names it"
)
FORBIDDEN = (
    "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): an administrator can permit it, see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


def profile(pool: WorkerPool, artifact: Artifact, request: RunRequest) -> tuple[Counters, ...] | Unavailable:
    """The counters of every launch of ``request``, in order."""
    loaded = load_code(artifact)
    if isinstance(loaded, Unavailable):
        return loaded
    header, payload = encode_runs([(loaded[0], request)])
    job = {"task": "profile", "metrics": list(METRICS), **header}
    limit = request.time_limit + SETUP_SECONDS
    answer = ask(pool, job, payload, limit, doing="while profiling", missing=MISSING)
    if isinstance(answer, Unavailable):
        return answer
    report, kernels = str(answer.header.get("report")).splitlines(), [x.kernel for x in request.launches]
    return understood(lambda: read_counters(report, kernels), "while profiling")


def read_counters(lines: Iterable[str], kernels: list[str]) -> tuple[Counters, ...] | Unavailable:
    """The counters in ncu's report, launch by launch; ``kernels`` are the launches as the request names them."""
    kept = list(lines)
    if any("ERR_NVGPUCTRPERM" in line for line in kept):
        return Unavailable(FORBIDDEN)
    start = next((i for i, line in enumerate(kept) if line.startswith('"ID"')), None)
    if start is None:
        said = next((line for line in kept if "==ERROR==" in line), "it wrote no counters")
        return Unavailable(f"ncu: {said.removeprefix('==ERROR==').strip()}")
    launches: dict[str, dict[str, float | None]] = {}
    for row in csv.DictReader(kept[start:]):
        field = METRICS.get(row.get("Metric Name") or "")
        if field is not None:
            launches.setdefault(row["ID"], {})[field] = _number(row["Metric Value"] or "")
    values = list(launches.values())
    if len(values) != len(kernels) or any(v.keys() != set(METRICS.values()) for v in values):
        return Unavailable(f"ncu told of {len(values)} launches where there were {len(kernels)}, or not all counters")
    return tuple(Counters(kernel, **found) for kernel, found in zip(kernels, values, strict=True))


def _number(text: str) -> float | None:
    """A value of ncu's; None for ``n/a`` and the like."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None

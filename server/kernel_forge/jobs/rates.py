"""What a measured time means for one kernel: rates against the device's peaks, and occupancy."""

from collections.abc import Mapping

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.hardware import GpuFacts, HardwareLimits
from kernel_forge.domain.launch import Launch
from kernel_forge.domain.measurement import Peaks
from kernel_forge.domain.performance import Attained, Occupancy
from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.perf import Counting, Work, attained, compulsory_bytes, occupancy
from kernel_forge.ports import Artifact, DeviceInfo
from kernel_forge.spec import BoundCase
from kernel_forge.verify.limits import ReferenceFailed
from kernel_forge.verify.references import Evaluator

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def work_of(bound: BoundCase, evaluator: Evaluator, inputs: Mapping[str, Array]) -> Work:
    """What the reference does at a case, counted while it is evaluated on ``inputs``."""
    work = Work()
    try:
        evaluator.evaluate(bound, {n: Counting.of(a, work) for n, a in inputs.items()})
    except ReferenceFailed:  # the reference wants plain arrays; it held with those
        work.complete = False
    return work


def rates(spec: KernelSpec, bound: BoundCase, work: Work | None, seconds: float, peaks: Peaks) -> Attained:
    """Rates of an execution at ``bound``; ``work`` None where it was not counted at this case."""
    counts = {a.name: bound.count(a.name) for a in spec.args if isinstance(a, BufferArg)}
    floats = [a.dtype for a in spec.args if isinstance(a, BufferArg) and a.dtype.is_float]
    narrow = bool(floats) and floats[0] in (DType.FLOAT16, DType.BFLOAT16)
    products = work is not None and work.products
    arithmetic = "float64" if DType.FLOAT64 in floats else "float16 tensor" if narrow and products else "float32"
    operations = work.operations if work is not None and work.complete and work.operations else None
    return attained(seconds, compulsory_bytes(spec, counts), operations, arithmetic, peaks)


def limits_of(info: DeviceInfo) -> HardwareLimits | None:
    """The limits that a GPU tells of itself; None for a device without multiprocessors."""
    gpu = gpu_of(info)
    return None if gpu is None else gpu.limits


def gpu_of(info: DeviceInfo) -> GpuFacts | None:
    """What a GPU tells of itself; None for a device without multiprocessors."""
    if "max threads per multiprocessor" not in info.facts:
        return None
    return GpuFacts.from_facts({k.replace(" ", "_"): v for k, v in info.facts.items()})


def occupancy_of(info: DeviceInfo, artifact: Artifact, launch: Launch) -> Occupancy | None:
    """Of one launch, where the device is a GPU that tells its limits."""
    resources = artifact.resources.get(launch.kernel)
    limits = limits_of(info)
    if resources is None or limits is None:
        return None
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    return occupancy(limits, threads, resources.registers, resources.shared_bytes + launch.shared_bytes)

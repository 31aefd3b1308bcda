"""Which cases are too large for the device and the time that is left."""

import time
from dataclasses import dataclass

from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.ports import DeviceInfo
from kernel_forge.spec import BoundCase
from kernel_forge.verify.check_case import OUT_OF_TIME
from kernel_forge.verify.planning import PlannedCase
from kernel_forge.verify.runs import largest_extent, thread_count

EMULATED_CASE_BYTES = 256 << 20
LARGE_RUN_LIMIT = 15.0


@dataclass(frozen=True)
class Measured:
    """The last run that took measurable time."""

    seconds: float
    threads: int
    extent: int


def _bytes(bound: BoundCase, spec: KernelSpec) -> int:
    return sum(bound.count(a.name) * a.dtype.itemsize for a in spec.args if isinstance(a, BufferArg))


def too_large(
    spec: KernelSpec, info: DeviceInfo, case: PlannedCase, measured: Measured | None, deadline: float
) -> str | None:
    """Why ``case`` is left out, if it is; ``deadline`` of ``time.monotonic``."""
    left = deadline - time.monotonic()
    if left <= 0:
        return OUT_OF_TIME
    if info.basis != "emulated":
        return None
    size = _bytes(case.bound, spec)
    if size > EMULATED_CASE_BYTES:
        return f"{size >> 20} MiB of buffers; emulation is limited to {EMULATED_CASE_BYTES >> 20} MiB"
    if measured is not None:
        predicted = measured.seconds * thread_count(case.bound) / max(1, measured.threads)
        if predicted > min(LARGE_RUN_LIMIT, left):
            return f"about {predicted:.0f} s to emulate, judged by smaller cases; verify it on a GPU"
    return None


def explained_by_size(case: PlannedCase, measured: Measured | None, limit: float) -> bool:
    """Whether a time-out can be the size's fault: smaller cases ended, and their time grows to it."""
    if measured is None:
        return False
    threads = thread_count(case.bound) / max(1, measured.threads)
    return measured.seconds * threads * largest_extent(case.bound) / max(1, measured.extent) > limit / 4

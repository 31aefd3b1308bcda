"""How fast a kernel is, and how near to what its device can do."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.measurement import Measurement, Peaks


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``blocks`` per multiprocessor, their ``warps`` as a ``share`` of what it can hold, and what limits them:
    threads, blocks, registers or shared memory."""

    blocks: int
    warps: int
    share: float
    limited_by: str


@dataclass(frozen=True, slots=True)
class Attained:
    """Rates of one measurement.

    Attributes:
        bytes_per_second: compulsory traffic over time.
        bandwidth_share: of the device's copy bandwidth, as a fraction; above 1 where data came from a cache, or
            where much more is read than written.
        operations_per_second: operations of the reference over time; None where they could not be counted.
        arithmetic_share: of the peak of ``arithmetic``, as a fraction.
        arithmetic: which peak that is, e.g. ``float32``.
        bound: ``memory`` or ``compute``: which limit of the roofline lies lower at this arithmetic intensity; None
            where the operations are not known.
        share: of that limit: 1 is on the roof.
    """

    bytes_per_second: float
    bandwidth_share: float
    operations_per_second: float | None
    arithmetic_share: float | None
    arithmetic: str | None
    bound: str | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Counters:
    """Hardware counters of one launch, under a profiler: its time there is not the kernel's own. None where this GPU
    does not have a counter, or had nothing to count.

    Attributes:
        memory_percent, multiprocessor_percent: throughput as a share of what the hardware sustains.
        occupancy_percent: warps that were resident, of those that could be.
        l2_hit_percent: sectors found in the level-2 cache.
        bank_conflicts: extra passes through shared memory.
        load_sector_percent: bytes used of each 32-byte sector that global loads fetched; 100 is coalesced.
        active_lanes: of 32, on average per instruction; less is divergence.
    """

    kernel: str
    nanoseconds: float | None
    memory_read_bytes: float | None
    memory_written_bytes: float | None
    memory_percent: float | None
    multiprocessor_percent: float | None
    occupancy_percent: float | None
    l2_hit_percent: float | None
    bank_conflicts: float | None
    load_sector_percent: float | None
    active_lanes: float | None


@dataclass(frozen=True)
class KernelTiming:
    """The time of one kernel at one case.

    Attributes:
        checked_at: the sizes at which the result was compared before: those timed, unless these are very large.
        drift: of the control kernel (None: not known), see :class:`~kernel_forge.domain.measurement.Timings`.
        occupancy: of the first launch; None on a device without multiprocessors.
        attained: rates against ``peaks``; None where the device has none.
        counters: of every launch, where they were asked for; ``no_counters`` says why there are none.
        result_checked: the result of the timed launches themselves was compared, and is right.
        notes: things every surface must show.
    """

    kernel: str
    path: str
    sizes: Mapping[str, int]
    checked_at: Mapping[str, int]
    configuration: Mapping[str, int | float | bool]
    measurement: Measurement
    drift: float | None
    device: str
    occupancy: Occupancy | None = None
    attained: Attained | None = None
    peaks: Peaks | None = None
    counters: tuple[Counters, ...] = ()
    no_counters: str | None = None
    result_checked: bool = False
    notes: tuple[str, ...] = ()

"""What a time means: rates attained, against what the device can do (Williams, Waterman and Patterson, *Roofline: An
Insightful Visual Performance Model for Multicore Architectures*, CACM 52(4), 2009).

The traffic is compulsory traffic: every input read once, every output written once. A kernel that reads twice what it
needs moves more than that, so its share of the bandwidth is understated by design: what is missing is the gap.
"""

from kernel_forge.domain.measurement import Peaks
from kernel_forge.domain.performance import Attained
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role

_PASSES = {Role.IN: 1, Role.OUT: 1, Role.INOUT: 2, Role.SCRATCH: 0}


def compulsory_bytes(spec: KernelSpec, counts: dict[str, int]) -> int:
    """Bytes that must move between memory and chip; ``counts`` are elements per buffer."""
    return sum(
        _PASSES[a.role] * counts[a.name] * a.dtype.itemsize
        for a in spec.args
        if isinstance(a, BufferArg) and not a.is_symbol
    )


def attained(seconds: float, traffic: int, operations: int | None, arithmetic: str, peaks: Peaks) -> Attained:
    """Rates of an execution of ``seconds`` that must move ``traffic`` bytes and does ``operations``.

    ``arithmetic`` names the peak to compare with, a key of ``peaks.operations``. Without known operations there is no
    roof to compare with: which one is the lower depends on them.
    """
    bandwidth = traffic / seconds
    bandwidth_share = bandwidth / peaks.copy_bytes_per_second
    peak = peaks.operations_per_second.get(arithmetic)
    if operations is None or peak is None:
        return Attained(bandwidth, bandwidth_share, None, None, None, None, None)
    rate = operations / seconds
    share = rate / peak
    bound = "compute" if share > bandwidth_share else "memory"
    return Attained(bandwidth, bandwidth_share, rate, share, arithmetic, bound, max(share, bandwidth_share))

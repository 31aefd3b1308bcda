"""How promising launches are on one GPU, before anything was compiled or timed.

The promise orders configurations; it predicts no time. It is a product of factors in (0, 1], each of which says what
share of the multiprocessors' work a shape of launch can use at best:

- *lanes*: of the last warp of a block (CUDA C++ Best Practices Guide, "Thread and Block Heuristics");
- *sectors*: a row of a block along x that is shorter than a 32-byte sector leaves part of it unused (same guide,
  "Coalesced Access to Global Memory"); the root, as caches give some of it back;
- *balance*: blocks come in waves, the last of which is seldom full (NVIDIA Deep Learning Performance Guide, "Wave
  Quantization");
- *latency*: values in flight on a multiprocessor, by Little's law: bandwidth times latency of memory, or what its
  own pipelines need (Volkov, *Understanding Latency Hiding on GPUs*, 2016). Occupancy counts up to there;
- *overlap*: a block alone on its multiprocessor leaves it idle at every barrier;
- *reuse*: what a thread does once (indices, loads that its results share) is divided by the results that it holds; left
  of the ridge of the roofline, where memory is the limit, in proportion less (Williams, Waterman and Patterson, 2009);
- *registers*: above 255 per thread they spill, and each is then stored and loaded.

All that differs between GPUs comes from :class:`~kernel_forge.domain.hardware.GpuFacts`: there is no code per GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.perf.occupancy import WARP, occupancy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 1e-6
"""The promise of what cannot be launched."""

_MEMORY_LATENCY = 5e-7
"""Seconds from a load to its value under load: 0.4 to 0.8 microseconds on every GPU from Volta on, as published
microbenchmarks have it; what changes between generations is the bandwidth."""
_VALUES_FOR_PIPELINES = 4 * WARP * 16
"""Four schedulers, the lanes of a warp, and sixteen cycles from an instruction to the next that needs its result: about
4 for arithmetic, about 30 for shared memory."""
_RESULTS_IN_FLIGHT = 0.5
"""Exponent: of the results that a thread holds not all are independent at any time; eight count as about three."""
_BYTES_PER_VALUE = 4
_SECTOR_VALUES = 8
_REGISTERS_OF_ANY = 24
_REGISTERS_PER_RESULT = 1.5
_MOST_REGISTERS = 255
_ALONE = 0.3
"""What a lone block loses: 1 / (1 + 0.3)."""
_RIDGE = 20.0
"""Operations per byte where the roofline bends, where its peaks are not known: 10 to 40 for float32 from Volta on."""
_ONCE = 4.0
"""What a thread does once, in results: a thread of four results spends half of its time on them."""


@dataclass(frozen=True, slots=True)
class LaunchShapes:
    """One launch in several configurations; every column has shape ``(configurations,)``.

    Attributes:
        width, threads: of a block: extent along x, and in all.
        blocks: of the grid.
        shared_bytes: per block, static and dynamic.
        results: that a thread holds at once (32 bits each), at least 1: what it unrolls, not what it loops over.
        registers: per thread; None before a compiler has said it, when it is estimated from the results.
    """

    width: Ints
    threads: Ints
    blocks: Ints
    shared_bytes: Ints
    results: Floats
    registers: Ints | None = None


def promise(shapes: LaunchShapes, gpu: GpuFacts, intensity: float | None = None) -> Floats:
    """The promise of each configuration in (0, 1], :data:`LEAST` for what does not fit; shape ``(configurations,)``.

    ``intensity`` is that of the kernel, in operations per byte of compulsory traffic; None where it is not known.
    """
    found: Floats = np.prod(list(factors(shapes, gpu, intensity).values()), axis=0)
    return np.maximum(found, LEAST)


def factors(shapes: LaunchShapes, gpu: GpuFacts, intensity: float | None = None) -> Mapping[str, Floats]:
    """The factors of the promise by name, each of shape ``(configurations,)``; ``fits`` is 0 or 1."""
    threads, blocks = shapes.threads.astype(float), shapes.blocks.astype(float)
    wanted = _REGISTERS_OF_ANY + np.ceil(_REGISTERS_PER_RESULT * shapes.results)
    registers = wanted if shapes.registers is None else shapes.registers.astype(float)
    held = np.minimum(registers, _MOST_REGISTERS).astype(np.int64)
    resident = _resident_blocks(gpu, shapes.threads, held, shapes.shared_bytes)
    fits = (resident >= 1) & (shapes.threads >= 1) & (shapes.blocks >= 1)
    resident, threads, blocks = (np.maximum(column, 1.0) for column in (resident, threads, blocks))
    each = blocks / gpu.multiprocessors
    resident = np.minimum(resident, np.ceil(each))
    waves = each / resident
    share = _share_of_roof(gpu, intensity)
    values = resident * threads * shapes.results**_RESULTS_IN_FLIGHT
    return {
        "fits": fits.astype(float),
        "lanes": threads / (np.ceil(threads / WARP) * WARP),
        "sectors": np.minimum(1.0, np.maximum(shapes.width, 1) / _SECTOR_VALUES) ** 0.5,
        "balance": waves / np.ceil(waves),
        "latency": np.minimum(1.0, values / _values_needed(gpu, share)),
        "overlap": resident / (resident + _ALONE),
        "reuse": (shapes.results / (shapes.results + _ONCE)) ** share,
        "registers": np.minimum(1.0, _MOST_REGISTERS / registers) ** 2,
    }


def _values_needed(gpu: GpuFacts, share: float) -> float:
    """Values in flight on one multiprocessor that hide the latencies; pipelines count by the ``share`` of the roof."""
    bandwidth = gpu.bytes_per_second or 0.0
    needed = bandwidth * _MEMORY_LATENCY / gpu.multiprocessors / _BYTES_PER_VALUE
    return max(1.0, share * _VALUES_FOR_PIPELINES, needed)


def _share_of_roof(gpu: GpuFacts, intensity: float | None) -> float:
    """How far up the slope of the roofline a kernel of that intensity stands: 1 from the ridge on, or not known."""
    if intensity is None:
        return 1.0
    bandwidth, peak = gpu.bytes_per_second, gpu.operations_per_second
    return min(1.0, intensity / (peak / bandwidth if peak and bandwidth else _RIDGE))


def _resident_blocks(gpu: GpuFacts, threads: Ints, registers: Ints, shared: Ints) -> Floats:
    """Blocks that fit on a multiprocessor, 0 where a block exceeds a limit; shape ``(configurations,)``."""
    rows, where = np.unique(np.column_stack([threads, registers, shared]), axis=0, return_inverse=True)
    limits = gpu.limits
    found = [
        float(occupancy(limits, t, r, s).blocks)
        if 1 <= t <= limits.threads_per_block and 0 <= s <= limits.shared_bytes_per_block
        else 0.0
        for t, r, s in rows.tolist()
    ]
    return np.array(found)[where.reshape(-1)]

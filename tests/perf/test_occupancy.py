"""Blocks per multiprocessor. The right values are worked out from the tables of the CUDA C++ guide; on a GPU the driver
is asked as well (tests/gpu)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.knowledge import limits_of
from kernel_forge.perf import occupancy

H100, V100 = limits_of((9, 0)), limits_of((7, 0))


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks", "limited_by"),
    [
        (1024, 32, 0, 2, "threads"),
        (32, 16, 0, 32, "blocks"),
        (256, 64, 0, 4, "registers"),  # 64 * 32 = 2048 a warp: 32 warps of 2048 registers
        (256, 65, 0, 3, "registers"),  # 2080 round up to 2304 a warp: 28 warps
        (128, 32, 100_000, 2, "shared memory"),  # 100000 + 1024 rounded to 101120: two in 233472
        (256, 255, 0, 1, "registers"),
        (64, 18, 5000, 32, "threads"),  # as cuOccupancyMaxActiveBlocksPerMultiprocessor says on an H200
    ],
)
def test_on_capability_9_0(threads: int, registers: int, shared: int, blocks: int, limited_by: str) -> None:
    made = occupancy(H100, threads, registers, shared)
    assert (made.blocks, made.limited_by) == (blocks, limited_by)
    assert made.warps == blocks * -(-threads // 32)
    assert made.share == made.warps / 64


def test_older_ones_keep_no_shared_memory_for_themselves() -> None:
    assert occupancy(V100, 128, 32, 49152).blocks == 2


def test_limits_come_from_facts() -> None:
    facts = {
        "capability": "9.0",
        "max_threads_per_multiprocessor": 2048,
        "max_blocks_per_multiprocessor": "32",
        "registers_per_multiprocessor": 65536,
        "shared_bytes_per_multiprocessor": 233472,
        "max_threads_per_block": 1024,
        "registers_per_block": 65536,
        "shared_bytes_per_block_opt_in": 232448,
    }
    assert HardwareLimits.from_facts(facts) == H100


@given(st.integers(1, 1024), st.integers(1, 255), st.integers(0, 227 * 1024))
def test_more_of_anything_never_fits_better(threads: int, registers: int, shared: int) -> None:
    blocks = occupancy(H100, threads, registers, shared).blocks
    assert 0 <= blocks <= 32
    assert occupancy(H100, min(1024, threads + 32), registers, shared).blocks <= blocks
    assert occupancy(H100, threads, min(255, registers + 8), shared).blocks <= blocks
    assert occupancy(H100, threads, registers, min(227 * 1024, shared + 512)).blocks <= blocks

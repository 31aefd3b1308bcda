"""The promise of launches: every factor worked out by hand for GPUs whose data sheets are public."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.knowledge import limits_of
from kernel_forge.perf.promise import LEAST, LaunchShapes, factors, promise

A4000 = GpuFacts(limits_of((8, 6)), 48, 448e9)
A6000 = GpuFacts(limits_of((8, 6)), 84, 768e9)
H200 = GpuFacts(limits_of((9, 0)), 132, 4.8e12)


def shapes(
    threads: int = 256,
    blocks: int = 288,
    width: int | None = None,
    shared: int = 0,
    results: float = 1.0,
    registers: int | None = None,
) -> LaunchShapes:
    def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([value])

    return LaunchShapes(
        column(threads if width is None else width),
        column(threads),
        column(blocks),
        column(shared),
        np.array([results]),
        None if registers is None else column(registers),
    )


def factor(name: str, gpu: GpuFacts, launch: LaunchShapes, intensity: float | None = None) -> float:
    return float(factors(launch, gpu, intensity)[name][0])


def test_the_promise_is_the_product_of_the_factors() -> None:
    # 1536 / 256: six blocks on a multiprocessor, one wave of 288 blocks; 1536 of 2048 values in flight; one result
    # beside four for what is done once.
    assert promise(shapes(), A4000)[0] == pytest.approx(1 * 0.75 * (6 / 6.3) * (1 / 5))


def test_half_a_warp_is_lost_in_a_block_of_one_and_a_half() -> None:
    assert factor("lanes", A4000, shapes(threads=48)) == 0.75


def test_short_rows_leave_sectors_unused() -> None:
    # Two floats are a quarter of 32 bytes; of that the root.
    assert factor("sectors", A4000, shapes(width=2)) == 0.5
    assert factor("sectors", A4000, shapes(width=8)) == 1.0


@pytest.mark.parametrize(
    ("gpu", "blocks", "balance"),
    [
        (A4000, 96, 1.0),  # two on each of 48
        (A4000, 49, 49 / 96),  # one multiprocessor has two, the others wait for it
        (A6000, 96, 96 / 168),
        (A4000, 24, 0.5),  # half of the multiprocessors have nothing to do
        (A4000, 6 * 48 + 1, (289 / 288) / 2),  # one block in a second wave
    ],
)
def test_the_last_wave_is_seldom_full(gpu: GpuFacts, blocks: int, balance: float) -> None:
    assert factor("balance", gpu, shapes(blocks=blocks)) == pytest.approx(balance)


def test_littles_law_wants_more_in_flight_on_a_gpu_with_more_bandwidth() -> None:
    # 4.8 TB/s x 0.5 us / 132 / 4 bytes = 4545 values on a multiprocessor; eight blocks of 256 hold 2048.
    assert factor("latency", H200, shapes(blocks=10**6)) == pytest.approx(2048 / 4545.45, rel=1e-4)
    # Threads of sixteen results hold four times as much: enough.
    assert factor("latency", H200, shapes(blocks=10**6, results=16.0, registers=32)) == 1.0
    # Without a bandwidth only the pipelines are to be filled: 4 schedulers x 32 lanes x 16 cycles.
    assert factor("latency", GpuFacts(limits_of((9, 0)), 132), shapes(blocks=10**6)) == 1.0


def test_a_kernel_that_waits_for_memory_need_not_fill_the_pipelines() -> None:
    # 448 GB/s x 0.5 us / 48 / 4 bytes = 1167 values; 1536 threads hold more.
    assert factor("latency", A4000, shapes(), 0.1) == 1.0
    assert factor("latency", A4000, shapes(), 15.0) == 1.0  # three quarters of 2048
    assert factor("latency", A4000, shapes(), 20.0) == 0.75


def test_shared_memory_that_fills_one_multiprocessor_leaves_room_on_another() -> None:
    hungry = shapes(blocks=10**6, shared=60_000)
    # 100 KiB hold one such block, 228 KiB three.
    assert factor("overlap", A4000, hungry) == pytest.approx(1 / 1.3)
    assert factor("overlap", H200, hungry) == pytest.approx(3 / 3.3)


def test_what_is_done_once_is_shared_by_the_results_of_a_thread() -> None:
    assert factor("reuse", A4000, shapes(results=4.0)) == 0.5
    assert factor("reuse", A4000, shapes(results=16.0)) == 0.8


def test_left_of_the_ridge_reuse_counts_less() -> None:
    gpu = GpuFacts(limits_of((8, 6)), 48, 448e9, None, 448e9 * 40)  # the ridge is at 40 operations per byte
    launch = shapes(results=4.0)
    assert factor("reuse", gpu, launch, 10.0) == pytest.approx(0.5**0.25)
    assert factor("reuse", gpu, launch, 80.0) == 0.5
    assert factor("reuse", gpu, launch, None) == 0.5
    assert factor("reuse", A4000, launch, 10.0) == pytest.approx(0.5**0.5)  # no peak is known: a ridge at 20


def test_registers_beyond_255_spill() -> None:
    # 24 + 1.5 x 256 = 408 are estimated.
    assert factor("registers", A4000, shapes(results=256.0)) == pytest.approx((255 / 408) ** 2)
    assert factor("registers", A4000, shapes(results=64.0)) == 1.0


def test_registers_that_a_compiler_told_take_the_place_of_the_estimate() -> None:
    # 128 registers: 65536 / 128 / 32 = 16 warps, two blocks of 256; the estimate for one result allows six.
    many, few = shapes(blocks=10**6, registers=128), shapes(blocks=10**6)
    assert factor("overlap", A4000, many) == pytest.approx(2 / 2.3)
    assert factor("overlap", A4000, few) == pytest.approx(6 / 6.3)


@pytest.mark.parametrize(
    "launch",
    [
        shapes(threads=1025),
        shapes(threads=0),
        shapes(blocks=0),
        shapes(shared=101_377),  # 99 KiB are 101376
        shapes(threads=1024, results=48.0),  # 96 registers for each of 1024 threads
    ],
)
def test_what_does_not_fit_has_the_least_promise(launch: LaunchShapes) -> None:
    assert promise(launch, A4000)[0] == LEAST


def test_one_row_does_not_change_another() -> None:
    one, other = shapes(threads=96, results=3.0, shared=5000), shapes(threads=512, blocks=77)
    both = LaunchShapes(
        *(np.concatenate([getattr(one, n), getattr(other, n)]) for n in LaunchShapes.__slots__ if n != "registers")
    )
    assert promise(both, H200).tolist() == [promise(one, H200)[0], promise(other, H200)[0]]


@given(
    st.integers(0, 4096),
    st.integers(0, 2**31),
    st.integers(0, 1 << 20),
    st.floats(1, 512),
    st.sampled_from([A4000, A6000, H200]),
)
def test_it_is_a_share(threads: int, blocks: int, shared: int, results: float, gpu: GpuFacts) -> None:
    found = promise(shapes(threads, blocks, None, shared, results), gpu)[0]
    assert LEAST <= found <= 1

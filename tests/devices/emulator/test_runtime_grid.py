"""Cooperative launches: the barrier of the whole grid."""

import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from kernel_forge.domain.outcome import BarrierDivergence, LaunchFailed
from tests.devices.emulator.launches import GROUPS, contents, outcome

# y[b] = x of the next block, written before the barrier. `EXIT` is what some threads do first.
NEIGHBOUR = (
    GROUPS
    + """__global__ void k(int* x, int* y) {
  EXIT
  if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x + 1;
  cg::this_grid().sync();
  if (threadIdx.x == 0) y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
}
"""
)


def zeros(n: int) -> dict[str, np.ndarray]:
    return {"x": np.zeros(n, np.int32), "y": np.zeros(n, np.int32)}


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("workers", [1, 3])
def test_threads_but_the_first_may_have_exited(schedule: Schedule, workers: int) -> None:
    text = NEIGHBOUR.replace("EXIT", "if (threadIdx.x % 5) return;")
    for seed in range(3):
        got = contents(
            text, zeros(40), grid=40, block=64, workers=workers, cooperative=True, schedule=schedule, schedule_seed=seed
        )
        assert np.array_equal(got["y"], np.roll(np.arange(1, 41), -1))


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("gone", ["threadIdx.x == 0", "blockIdx.x == 3"])
def test_a_block_without_its_first_thread_never_arrives(gone: str, schedule: Schedule) -> None:
    # CUDA's grid barrier arrives through thread (0,0,0) of each block (cooperative_groups/details/sync.h).
    ended = outcome(
        NEIGHBOUR.replace("EXIT", f"if ({gone}) return;"), zeros(8), grid=8, cooperative=True, schedule=schedule
    )
    assert isinstance(ended, BarrierDivergence)
    assert ended.kind == "deadlock"
    assert ended.locations[0].range.start.line == 5


@pytest.mark.parametrize(("blocks", "threads"), [(2000, 32), (160, 256)])
def test_many_blocks_at_once(blocks: int, threads: int) -> None:
    text = NEIGHBOUR.replace("EXIT", "")
    got = contents(text, zeros(blocks), grid=blocks, block=threads, workers=2, cooperative=True, time_limit=30)
    assert np.array_equal(got["y"], np.roll(np.arange(1, blocks + 1), -1))


def test_more_blocks_than_any_gpu_holds() -> None:
    ended = outcome(NEIGHBOUR.replace("EXIT", ""), zeros(400), grid=400, block=1024, cooperative=True)
    assert isinstance(ended, LaunchFailed)
    assert ended.kind == "configuration"


def test_blocks_leave_the_barrier_in_the_order_of_the_schedule() -> None:
    # The last block to write y[0] after the barrier is the last of the schedule.
    text = GROUPS + "__global__ void k(int* y) { cg::this_grid().sync(); if (threadIdx.x == 0) y[0] = blockIdx.x; }"
    last = {
        schedule: contents(text, {"y": np.zeros(1, np.int32)}, grid=9, cooperative=True, schedule=schedule)["y"][0]
        for schedule in (Schedule.FORWARD, Schedule.REVERSE)
    }
    assert last == {Schedule.FORWARD: 8, Schedule.REVERSE: 0}

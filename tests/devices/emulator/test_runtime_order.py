"""The schedules: in which order lanes, threads and blocks go on."""

import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from tests.devices.emulator.launches import contents

MEETINGS = {
    "__syncwarp": "__syncwarp();",
    "a shuffle": "__shfl_sync(0xffffffffu, 1, 0);",
    "a vote": "__ballot_sync(0xffffffffu, 1);",
    "__activemask": "__activemask();",
    "__syncthreads": "__syncthreads();",
}


def last_lane(meeting: str, schedule: Schedule, seed: int = 0) -> int:
    """The lane whose unordered write after ``meeting`` comes last."""
    text = f"__global__ void k(int* y) {{ {MEETINGS[meeting]} y[0] = threadIdx.x; }}"
    return int(contents(text, {"y": np.zeros(1, np.int32)}, schedule=schedule, schedule_seed=seed)["y"][0])


@pytest.mark.parametrize("meeting", MEETINGS)
def test_lanes_go_on_in_the_order_of_the_schedule(meeting: str) -> None:
    assert last_lane(meeting, Schedule.FORWARD) == 31
    assert last_lane(meeting, Schedule.REVERSE) == 0
    assert len({last_lane(meeting, Schedule.RANDOM, seed) for seed in range(6)}) >= 3


@pytest.mark.parametrize("blocks", [1, 2, 3, 16, 17, 1000])
def test_a_random_order_runs_every_block_once(blocks: int) -> None:
    text = "__global__ void k(int* runs) { if (threadIdx.x == 0) atomicAdd(&runs[blockIdx.x], 1); }"
    for seed in range(3):
        got = contents(
            text, {"runs": np.zeros(blocks, np.int32)}, grid=blocks, schedule=Schedule.RANDOM, schedule_seed=seed
        )
        assert np.array_equal(got["runs"], np.ones(blocks))


@pytest.mark.parametrize("blocks", [1000, (1 << 22) + 5])
def test_a_random_order_is_no_order(blocks: int) -> None:
    # `order[i]` is the i-th block to begin, of the first hundred.
    text = "__global__ void k(int* n, int* order) { int i = atomicAdd(n, 1); if (i < 100) order[i] = blockIdx.x; }"
    buffers = {"n": np.zeros(1, np.int32), "order": np.zeros(100, np.int32)}
    one, other = (
        contents(text, buffers, grid=blocks, block=1, schedule=Schedule.RANDOM, schedule_seed=seed, time_limit=60)
        for seed in (1, 2)
    )
    steps = np.diff(one["order"].astype(np.int64))
    assert one["n"][0] == blocks
    assert len(set(steps)) > 50  # neither up nor down nor by one stride
    assert not np.array_equal(one["order"], other["order"])
    assert one["order"].max() > blocks // 2

"""Kernels that wait for memory to change: other lanes, other threads, other blocks."""

import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from kernel_forge.domain.outcome import TimedOut
from tests.devices.emulator.launches import contents, outcome

# A running sum from block to block, in the order of blockIdx, without a ticket. `WAIT` waits for flag[b - 1].
CHAIN = """
__global__ void k(const int* x, volatile int* y, int* flag) {
  int b = blockIdx.x;
  __shared__ int before;
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  if (b > 0) { WAIT if (threadIdx.x == 0) before = y[b - 1]; }
  __syncthreads();
  if (threadIdx.x == 0) { y[b] = before + x[b]; __threadfence(); ((volatile int*)flag)[b] = 1; }
}
"""
WAITS = {
    "a plain load": "if (threadIdx.x == 0) while (((volatile int*)flag)[b - 1] == 0) {}",
    "an atomic": "if (threadIdx.x == 0) while (atomicAdd(&flag[b - 1], 0) == 0) {}",
    "a fence": "if (threadIdx.x == 0) while (((volatile int*)flag)[b - 1] == 0) __threadfence();",
    "every thread": "while (atomicAdd(&flag[b - 1], 0) == 0) {}",
    "a vote": "while (__any_sync(0xffffffffu, ((volatile int*)flag)[b - 1] == 0)) {}",
    "a barrier": "while (__syncthreads_or(((volatile int*)flag)[b - 1] == 0)) {}",
}


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("wait", WAITS)
def test_blocks_that_wait_for_the_block_before_them(wait: str, schedule: Schedule) -> None:
    n = 200
    x = np.arange(n, dtype=np.int32)
    buffers = {"x": x, "y": np.zeros(n, np.int32), "flag": np.zeros(n, np.int32)}
    for workers in (1, 2):
        got = contents(
            CHAIN.replace("WAIT", WAITS[wait]), buffers, grid=n, workers=workers, schedule=schedule, schedule_seed=3
        )
        assert np.array_equal(got["y"], np.cumsum(x))


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("load", ["atomicAdd(count, 0)", "*(volatile int*)count"])
def test_a_barrier_of_all_blocks_written_by_hand(load: str, schedule: Schedule) -> None:
    text = f"""
    __global__ void k(int* x, int* y, int* count) {{
      x[blockIdx.x] = blockIdx.x + 1;
      __threadfence();
      if (threadIdx.x == 0) {{ atomicAdd(count, 1); while ({load} < gridDim.x) {{}} }}
      __syncthreads();
      y[blockIdx.x] = ((volatile int*)x)[(blockIdx.x + 1) % gridDim.x];
    }}
    """
    n = 24
    buffers = {name: np.zeros(n, np.int32) for name in ("x", "y", "count")}
    got = contents(text, buffers, grid=n, schedule=schedule, schedule_seed=1)
    assert np.array_equal(got["y"], np.roll(np.arange(1, n + 1), -1))


def test_waiting_for_nobody_is_a_timeout_at_its_line() -> None:
    text = "__global__ void k(int* y) {\n  while (atomicAdd(y, 0) == 0) {}\n}\n"
    ended = outcome(text, {"y": np.zeros(1, np.int32)}, grid=3, time_limit=0.5)
    assert isinstance(ended, TimedOut)


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("load", ["atomicAdd(flag, 0)", "*(volatile int*)flag"])
def test_the_active_mask_while_other_lanes_wait(load: str, schedule: Schedule) -> None:
    text = f"""
    __global__ void k(unsigned* y, int* flag) {{
      if (threadIdx.x < 16) {{
        while ({load} == 0) {{}}
      }} else {{
        unsigned mask = __activemask();
        if (threadIdx.x == 31) {{ y[0] = mask; atomicExch(flag, 1); }}
      }}
    }}
    """
    buffers = {"y": np.zeros(1, np.uint32), "flag": np.zeros(1, np.int32)}
    got = contents(text, buffers, schedule=schedule)
    # The lanes that execute the call together; the other half of the warp is in its loop.
    assert got["y"][0] == 0xFFFF0000


def test_a_thread_that_computes_for_long_is_not_disturbed() -> None:
    # A linear congruential sequence, long enough to be interrupted, checked against Python's integers.
    text = """
    __global__ void k(unsigned* y) {
      unsigned v = threadIdx.x;
      for (int i = 0; i < 100000000; i++) v = v * 1664525u + 1013904223u;
      y[threadIdx.x] = v;
    }
    """
    got = contents(text, {"y": np.zeros(3, np.uint32)}, block=3)
    multiplier, increment, steps = 1, 0, 100_000_000
    a, c = 1664525, 1013904223
    while steps:  # the sequence's closed form, by squaring
        if steps & 1:
            multiplier, increment = a * multiplier % 2**32, (a * increment + c) % 2**32
        a, c, steps = a * a % 2**32, (a * c + c) % 2**32, steps >> 1
    assert [int(v) for v in got["y"]] == [(multiplier * t + increment) % 2**32 for t in range(3)]

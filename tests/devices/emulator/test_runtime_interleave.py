"""Updates without atomics get lost in random order; right kernels never notice the interruptions."""

import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from tests.devices.emulator.launches import Array, contents

BETWEEN_BLOCKS = """
__global__ void k(const int* x, TYPE* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  UPDATE
}
"""
IN_A_BLOCK = """
__global__ void k(const int* x, TYPE* y) {
  __shared__ TYPE s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  S_UPDATE
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&y[threadIdx.x], s[threadIdx.x]);
}
"""
PLAIN = {
    "y[x[i]] += 1;": "s[x[i]] += 1;",
    "y[x[i]]++;": "s[x[i]]++;",
    "y[x[i]] = y[x[i]] + 1;": "s[x[i]] = s[x[i]] + 1;",
}


def histograms(text: str, kind: type[np.generic], grid: int, block: int, seeds: int = 4) -> tuple[Array, list[Array]]:
    """The right histogram of 16 bins, and those of random orders with one worker."""
    x = np.random.default_rng(1).integers(0, 16, grid * block).astype(np.int32)
    got = [
        contents(
            text,
            {"x": x, "y": np.zeros(16, kind)},
            inputs=("x",),
            grid=grid,
            block=block,
            schedule=Schedule.RANDOM,
            schedule_seed=seed,
        )["y"]
        for seed in range(seeds)
    ]
    return np.bincount(x, minlength=16), got


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("update", PLAIN)
def test_plain_updates_by_several_blocks_get_lost(update: str, kind: str) -> None:
    text = BETWEEN_BLOCKS.replace("TYPE", kind).replace("UPDATE", update)
    right, got = histograms(text, np.int32 if kind == "int" else np.float32, 40, 64)
    for y in got:
        assert (y <= right).all()
        assert (y < right).any()


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("update", PLAIN)
def test_plain_updates_of_shared_memory_get_lost(update: str, kind: str) -> None:
    text = IN_A_BLOCK.replace("TYPE", kind).replace("S_UPDATE", PLAIN[update])
    right, got = histograms(text, np.int32 if kind == "int" else np.float32, 1, 256)
    assert any((y < right).any() for y in got)


@pytest.mark.parametrize("text", [BETWEEN_BLOCKS, IN_A_BLOCK])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_atomic_updates_do_not(text: str, kind: str) -> None:
    text = text.replace("S_UPDATE", "atomicAdd(&s[x[i]], 1);").replace("UPDATE", "atomicAdd(&y[x[i]], 1);")
    right, got = histograms(text.replace("TYPE", kind), np.int32 if kind == "int" else np.float32, 40, 256, seeds=8)
    for y in got:
        assert np.array_equal(y, right)


def test_the_same_seed_loses_the_same_updates() -> None:
    text = BETWEEN_BLOCKS.replace("TYPE", "int").replace("UPDATE", "y[x[i]] += 1;")
    _, one = histograms(text, np.int32, 40, 64)
    _, other = histograms(text, np.int32, 40, 64)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


def test_a_last_block_that_sums_up_sees_every_block() -> None:
    # As in CUDA's threadFenceReduction sample: partial sums, a fence, and a counter that tells who is last.
    text = """
    __global__ void k(const int* x, int* partial, unsigned* count, int* y) {
      __shared__ int s[64];
      __shared__ bool last;
      int t = threadIdx.x;
      s[t] = x[blockIdx.x * 64 + t];
      __syncthreads();
      for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
      if (t == 0) {
        ((volatile int*)partial)[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(count, gridDim.x) == gridDim.x - 1;
      }
      __syncthreads();
      if (last && t == 0) {
        int sum = 0;
        for (int b = 0; b < gridDim.x; b++) sum += ((volatile int*)partial)[b];
        y[0] = sum;
      }
    }
    """
    x = np.arange(64 * 50, dtype=np.int32)
    for seed in range(8):
        buffers = {
            "x": x,
            "partial": np.zeros(50, np.int32),
            "count": np.zeros(1, np.uint32),
            "y": np.zeros(1, np.int32),
        }
        got = contents(text, buffers, grid=50, block=64, schedule=Schedule.RANDOM, schedule_seed=seed)
        assert got["y"][0] == x.sum()

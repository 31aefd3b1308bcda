"""What uninitialised shared memory holds."""

from functools import cache

import numpy as np

from tests.devices.emulator.launches import Array, contents

TEXT = """
__global__ void k(unsigned short* y) {
  __shared__ unsigned short s[64];
  for (int i = threadIdx.x; i < 64; i += 32) y[i] = s[i];
}
"""


@cache
def poison_of(seed: int) -> Array:
    return contents(TEXT, {"y": np.zeros(64, np.uint16)}, poison_seed=seed)["y"]


def test_seeds_differ_in_every_half() -> None:
    for seed in range(0, 60, 3):
        for other in (seed + 1, seed + 2, seed + 30):
            assert (poison_of(seed) != poison_of(other)).all(), (seed, other)


def test_even_seeds_are_nan_and_odd_seeds_large() -> None:
    for seed in range(0, 60, 3):
        bits = poison_of(seed)
        halves = bits.view(np.float16)
        floats = bits.view(np.float32)
        bfloats = (bits.astype(np.uint32) << 16).view(np.float32)
        for values in (halves, floats, bfloats):
            assert np.isnan(values).all() if seed % 2 == 0 else (values > 5e3).all() and np.isfinite(values).all()

"""How much shared memory a block can have (CUDA C++ guide, technical specifications)."""

import numpy as np
import pytest

from kernel_forge.domain.outcome import LaunchFailed
from tests.devices.emulator import shim
from tests.devices.emulator.launches import contents

TEXT = """
template <int N> __device__ float first(float v) {
  __shared__ float s[N];
  s[threadIdx.x] = v;
  __syncthreads();
  return s[0];
}
__global__ void k(float* y) {
  __shared__ float a[FLOATS];
  a[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = a[31 - threadIdx.x] + MORE;
}
"""


def text(floats: int, more: str = "0") -> str:
    return TEXT.replace("FLOATS", str(floats)).replace("MORE", more)


def test_static_shared_memory_may_fill_48_kib() -> None:
    y = np.arange(32, dtype=np.float32)
    assert (contents(text(12288), {"y": y})["y"] == y[::-1]).all()


@pytest.mark.parametrize(("floats", "more"), [(12289, "0"), (12288, "first<32>(0)"), (6144, "first<6145>(0)")])
def test_more_static_shared_memory_is_refused_as_ptxas_does(floats: int, more: str) -> None:
    ended = shim.outcome(text(floats, more), {"y": np.zeros(32, np.float32)})  # no front end, which refuses it first
    assert isinstance(ended, LaunchFailed)
    assert ended.kind == "configuration"
    assert "static shared memory" in ended.message
    assert "extern __shared__" in ended.message

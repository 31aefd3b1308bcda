"""Local memory of the threads: as much as CUDA gives them, and no silent overflow."""

import numpy as np
import pytest

from kernel_forge.devices.emulator import job
from kernel_forge.domain.outcome import MemoryFault, Unavailable
from tests.devices.emulator.launches import contents, outcome


def test_local_arrays_up_to_the_limit_of_cuda() -> None:
    # 512 KiB less what else a thread keeps (CUDA C++ guide, technical specifications: local memory per thread).
    text = """
    __global__ void k(int* y) {
      int a[127 * 1024];
      for (int i = 0; i < 127 * 1024; i++) a[i] = i + threadIdx.x;
      __syncthreads();
      int sum = 0;
      for (int i = 0; i < 127 * 1024; i += 1024) sum += a[i];
      y[threadIdx.x] = sum;
    }
    """
    got = contents(text, {"y": np.zeros(8, np.int32)}, block=8)
    expected = [sum(i + t for i in range(0, 127 * 1024, 1024)) for t in range(8)]
    assert list(got["y"]) == expected


@pytest.mark.parametrize("kib", [1, 60, 400])
def test_recursion_without_end_is_a_stack_overflow_at_its_line(kib: int) -> None:
    text = f"""__device__ __noinline__ int deep(int n, int* y) {{
  int a[{kib} * 256];
  for (int i = 0; i < {kib} * 256; i += 64)  // from the far end: nothing in between is touched first
    a[i] = n;
  if (n == 1000000) return 0;
  return deep(n + 1, a) + a[n % ({kib} * 256)] + y[0];
}}
__global__ void k(int* y) {{
  __syncthreads();
  y[threadIdx.x] = deep(threadIdx.x, y);
}}
"""
    ended = outcome(text, {"y": np.zeros(64, np.int32)}, block=64)
    assert isinstance(ended, MemoryFault), ended
    assert ended.kind == "stack-overflow"
    assert ended.location is not None
    assert ended.location.range.start.line in range(6)
    assert ended.thread is not None


def test_more_memory_than_there_is_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MEMORY_BEYOND_BUFFERS", 64 << 20)
    text = """
    __global__ void k(int* y) {
      volatile int a[100 * 1024];
      for (int i = 0; i < 100 * 1024; i++) a[i] = i;
      __syncthreads();
      y[threadIdx.x] = a[threadIdx.x];
    }
    """
    ended = outcome(text, {"y": np.zeros(1024, np.int32)}, block=1024)
    assert isinstance(ended, Unavailable), ended
    assert "64 MiB" in ended.reason

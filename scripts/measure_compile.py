"""``scripts/bench compile``: 64 configurations compiled for a GPU, one after the other, side by side, and again.

Needs no GPU; NVRTC or nvcc must be there.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernel_forge.devices.cuda import CudaDevice, local_worker
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.ports import Artifact

SOURCE = """
template <int UNROLL> __device__ float chain(const float* x, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += BLOCK) {
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) s = s * x[(i + k) % n] + sqrtf(x[i]);
  }
  return s;
}
__global__ void k(const float* x, float* y, int n) {
  __shared__ float tile[BLOCK];
  tile[threadIdx.x] = chain<DEPTH>(x, n);
  __syncthreads();
  y[blockIdx.x * BLOCK + threadIdx.x] = tile[BLOCK - 1 - threadIdx.x];
}
"""


def requests() -> list[CompileRequest]:
    return [
        CompileRequest("/bench/compile.cu", SOURCE, ("k",), defines={"BLOCK": str(block), "DEPTH": str(depth)})
        for block in (32, 64, 96, 128, 192, 256, 384, 512)
        for depth in (1, 2, 3, 4, 6, 8, 12, 16)
    ]


def seconds(folder: Path, threads: int) -> tuple[float, int]:
    """Time for all of them into ``folder``, and how many were really compiled."""
    device = CudaDevice("cuda", folder, local_worker(0))
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        made = list(pool.map(lambda r: device.compile_for(r, "sm_90a"), requests()))
    took = time.perf_counter() - begin
    bad = next((m for m in made if not isinstance(m, Artifact)), None)
    if bad is not None:
        sys.exit(f"it does not compile: {bad}")
    return took, device.compilations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        serial, _ = seconds(Path(one), 1)
        parallel, compiled = seconds(Path(two), cores)
        warm, again = seconds(Path(two), cores)
    found = {
        "cores": cores,
        "configurations": len(requests()),
        "serial_s": serial,
        "parallel_s": parallel,
        "ratio": serial / parallel,
        "compiled": compiled,
        "warm_s": warm,
        "compiled_again": again,
    }
    print(json.dumps(found, indent=2) if options.json else "\n".join(f"{k:16} {v:.4g}" for k, v in found.items()))


if __name__ == "__main__":
    main()

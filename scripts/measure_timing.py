"""How good are the times? Repeats in fresh processes, Triton's do_bench beside, A/A and planted slowdowns.

Needs a GPU; the comparison with do_bench needs torch, triton and cupy. Prints a table and, with --json, the numbers.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from kernel_forge.devices.cuda import CudaDevice, local_worker
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest, Scalar
from kernel_forge.domain.measurement import Timed, TimingPlan
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.ports import Artifact, Trial

SOURCE = Path(__file__).resolve().parent.parent / "tests" / "gpu" / "timing_kernels.cu"
KERNELS = ("copy", "sum", "matmul")
ELEMENTS = 1 << 28
MATRIX = 2048


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--once", action="store_true", help="print the medians of one process as JSON")
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        device = CudaDevice("cuda", Path(folder), local_worker(0))
        if device.info().unavailable:
            sys.exit(f"no GPU: {device.info().unavailable}")
        if options.once:
            print(json.dumps({k: v for k, (v, _) in medians(device).items()}))
        else:
            result = {
                "device": device.info().basis,
                "repeats": repeats(),
                "do_bench": against_do_bench(device),
                "comparisons": comparisons(device, options.tries),
            }
            if options.json:
                Path(options.json).write_text(json.dumps(result, indent=2))
        device.close()


def compiled(device: CudaDevice) -> Artifact:
    made = device.compile(CompileRequest(str(SOURCE), SOURCE.read_text(), KERNELS))
    assert isinstance(made, Artifact), made
    return made


def request(kernel: str, elements: int = ELEMENTS) -> RunRequest:
    rng = np.random.default_rng(1)
    f32 = DType.FLOAT32
    if kernel == "matmul":
        size = 4 * MATRIX * MATRIX
        a, b = (rng.standard_normal(MATRIX * MATRIX, dtype=np.float32) for _ in "ab")
        buffers = (Buffer("a", f32, size, a, False), Buffer("b", f32, size, b, False), Buffer("c", f32, size))
        args = (BufferRef("a"), BufferRef("b"), BufferRef("c"), Scalar(DType.INT32, MATRIX))
        return RunRequest(buffers, (Launch(kernel, args, (MATRIX // 32, MATRIX // 32, 1), (32, 8, 1)),))
    x = rng.standard_normal(elements, dtype=np.float32)
    inputs = Buffer("x", f32, 4 * elements, x, False)
    if kernel == "copy":
        args = (BufferRef("x"), BufferRef("y"), Scalar(DType.INT32, elements // 4))
        launch = Launch(kernel, args, (-(-elements // 4 // 256), 1, 1), (256, 1, 1))
        return RunRequest((inputs, Buffer("y", f32, 4 * elements)), (launch,))
    args = (BufferRef("x"), BufferRef("total"), Scalar(DType.INT32, elements))
    return RunRequest((inputs, Buffer("total", f32, 4)), (Launch(kernel, args, (1056, 1, 1), (256, 1, 1)),))


def timed(device: CudaDevice, requests: list[RunRequest], plan: TimingPlan) -> tuple[list[Timed], float]:
    made = compiled(device)
    timings = device.time([Trial(made, r) for r in requests], plan)
    if isinstance(timings, Unavailable):
        sys.exit(timings.reason)
    results = [r for r in timings.results if isinstance(r, Timed)]
    if len(results) < len(requests):
        sys.exit(f"a trial failed: {timings.results}")
    return results, timings.drift


def medians(device: CudaDevice) -> dict[str, tuple[float, float]]:
    found = {}
    for kernel in KERNELS:
        (result,), drift = timed(device, [request(kernel)], TimingPlan(budget=2.0))
        found[kernel] = (result.measurement.seconds, drift)
    return found


def repeats() -> dict[str, list[float]]:
    """Medians in 7 fresh processes; the spread is (largest - smallest) / median."""
    runs = []
    for _ in range(7):
        done = subprocess.run([sys.executable, __file__, "--once"], capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    table = {k: [r[k] for r in runs] for k in KERNELS}
    for kernel, values in table.items():
        spread = (max(values) - min(values)) / statistics.median(values)
        print(f"7 processes  {kernel:8} median {statistics.median(values) * 1e6:9.2f} us  spread {100 * spread:.2f} %")
    return table


def against_do_bench(device: CudaDevice) -> dict[str, list[float]]:
    try:
        import cupy
        import torch
        import triton
    except ImportError as error:
        print(f"do_bench: not run, {error.name} is not installed")
        return {}
    torch.cuda.init()
    module = cupy.RawModule(code=SOURCE.read_text(), options=("--std=c++17",))
    table = {}
    for kernel in KERNELS:
        run = request(kernel)
        arrays = {
            b.name: cupy.zeros(b.nbytes // 4, np.float32) if b.data is None else cupy.asarray(b.data)
            for b in run.buffers
        }
        (launch,) = run.launches
        args = [arrays[a.name] if isinstance(a, BufferRef) else np.int32(a.value) for a in launch.args]
        function = module.get_function(kernel)
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream:
            theirs = triton.testing.do_bench(
                lambda f=function, g=launch, a=args: f(g.grid, g.block, tuple(a)), return_mode="median", rep=1000
            )
        del arrays, args
        cupy.get_default_memory_pool().free_all_blocks()
        (result,), _ = timed(device, [run], TimingPlan(budget=2.0))
        ours = result.measurement.seconds
        table[kernel] = [ours, theirs * 1e-3]
        print(
            f"do_bench     {kernel:8} ours {ours * 1e6:9.2f} us  do_bench {theirs * 1e3:9.2f} us  "
            f"ratio {ours / theirs * 1e3:.4f}"
        )
    return table


def comparisons(device: CudaDevice, tries: int) -> dict[str, int]:
    """A/A at a threshold of 2 %, and a copy with 5 % more elements against the copy."""
    small = 1 << 23
    plan = TimingPlan(budget=0.3, min_samples=15)
    same, slower = request("copy", small), request("copy", 4 * round(small * 1.05 / 4))
    false_alarms = caught = 0
    planted = max(1, tries // 4)
    for number in range(tries + planted):
        pair = [same, same if number < tries else slower]
        results, _ = timed(device, pair, plan)
        ratio = results[1].measurement.seconds / results[0].measurement.seconds
        if number < tries:
            false_alarms += abs(ratio - 1) > 0.02
        else:
            caught += ratio > 1.02
    print(f"A/A          {false_alarms} false alarms at 2 % in {tries} tries")
    print(f"5 % slower   caught {caught} of {planted}")
    return {"tries": tries, "false_alarms": false_alarms, "planted": planted, "caught": caught}


if __name__ == "__main__":
    random.seed()
    main()

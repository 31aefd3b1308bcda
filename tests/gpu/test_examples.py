"""Every example kernel on the GPU: the verdicts of the emulator, and times that make sense."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_forge import wiring
from kernel_forge.devices.cuda import CudaDevice
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.outcome import Passed
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from kernel_forge.knowledge import known_capabilities, limits_of
from kernel_forge.perf import occupancy

pytestmark = pytest.mark.gpu
KERNELS = Path(__file__).resolve().parent.parent / "kernels"


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    device = wiring.device("cuda")
    if device.info().unavailable is not None:
        pytest.skip(f"no GPU: {device.info().unavailable}")
    assert isinstance(device, CudaDevice)
    return device


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cu")), ids=lambda p: p.stem)
def test_an_example_is_verified_here_too(gpu: CudaDevice, path: Path) -> None:
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), beside.read_text(encoding="utf-8")) if beside.is_file() else None
    request = VerifyRequest(str(path), path.read_text(encoding="utf-8"), sidecar, device="cuda")
    report = verify_file(request, gpu, lambda _: None)
    assert report.verdicts
    for verdict in report.verdicts:
        assert isinstance(verdict.outcome, Passed), verdict
        assert verdict.basis.startswith("measured on ")


def test_a_remote_gpu_is_a_worker_behind_a_command(
    gpu: CudaDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local pipe in place of ssh."""
    config = tmp_path / "config.toml"
    words = f"cat | {sys.executable} -P -m kernel_forge worker --gpu 0 | cat"
    config.write_text(f"[devices.far]\ncommand = ['sh', '-c', '{words}']\n")
    monkeypatch.setenv("KERNEL_FORGE_CONFIG", str(config))
    path = KERNELS / "saxpy.cu"
    far = wiring.device("far")
    report = verify_file(VerifyRequest(str(path), path.read_text(), device="far"), far, lambda _: None)
    assert isinstance(report.verdicts[0].outcome, Passed), report.verdicts[0]
    assert report.verdicts[0].device == "far"
    assert isinstance(far, CudaDevice)
    far.close()


def command(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "kernel_forge", *words, "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_time_of_a_large_copy_like_kernel_is_near_the_bandwidth(gpu: CudaDevice) -> None:
    made = command("time", str(KERNELS / "saxpy.cu"), "--size", f"n={1 << 26}")["files"][0]["timings"][0]
    assert made["measurement"]["basis"].startswith("measured on ")
    assert 0.5 < made["attained"]["bandwidth_share"] < 1.2
    assert made["attained"]["bound"] == "memory"
    low, high = made["measurement"]["interval"]
    assert low <= made["measurement"]["seconds"] <= high


def test_counters_tell_the_traffic_where_they_may_be_read(gpu: CudaDevice) -> None:
    n = 1 << 24
    made = command("time", str(KERNELS / "saxpy.cu"), "--size", f"n={n}", "--profile")["files"][0]["timings"][0]
    if made["no_counters"]:
        pytest.skip(made["no_counters"])
    (counters,) = made["counters"]
    assert 0.8 < counters["memory_read_bytes"] / (2 * 4 * n) < 1.2
    assert 30 < counters["active_lanes"] <= 32
    assert counters["load_sector_percent"] > 90


def test_a_launch_of_almost_nothing_is_launch_bound(gpu: CudaDevice) -> None:
    made = command("time", str(KERNELS / "saxpy.cu"), "--size", "n=32")["files"][0]["timings"][0]
    assert made["measurement"]["launch_bound"]


_ASK = """
import json, sys
import pycuda.autoinit, pycuda.driver as cuda
function = cuda.module_from_buffer(open(sys.argv[1], "rb").read()).get_function(sys.argv[2])
import ctypes
library = ctypes.CDLL("libcuda.so.1")
found = []
for threads, shared in json.loads(sys.argv[3]):
    count = ctypes.c_int()
    handle = ctypes.c_void_p()
    module = ctypes.c_void_p()
    assert library.cuModuleLoad(ctypes.byref(module), sys.argv[1].encode()) == 0
    assert library.cuModuleGetFunction(ctypes.byref(handle), module, sys.argv[2].encode()) == 0
    library.cuFuncSetAttribute(handle, 8, shared)
    status = library.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(count), handle, ctypes.c_int(threads), ctypes.c_size_t(shared)
    )
    assert status == 0, status
    found.append(count.value)
print(json.dumps([function.num_regs, found]))
"""


def test_occupancy_is_what_the_driver_says(gpu: CudaDevice, tmp_path: Path) -> None:
    from kernel_forge.devices.cuda.artifacts import load_code
    from kernel_forge.domain.launch import CompileRequest
    from kernel_forge.ports import Artifact

    limits = HardwareLimits.from_facts(gpu.facts())
    shapes = [(32, 0), (33, 0), (64, 5000), (128, 30_000), (256, 100_000), (512, 0), (1000, 1), (1024, 220_000)]
    for bound in (0, 32, 64, 100):
        locals_ = " ".join(f"float v{i} = x[i + {i}];" for i in range(bound))
        total = " + ".join(f"v{i} * v{i}" for i in range(bound)) or "0.0f"
        loop = f"for (int i = 0; i < n; ++i) {{ {locals_} s = s * ({total}) + x[s > 0]; }}"
        text = f'extern "C" __global__ void k(const float* x, float* y, int n) {{ float s = 0; {loop} y[0] = s; }}'
        made = gpu.compile(CompileRequest("/tests/occupancy.cu", text, ("k",)))
        assert isinstance(made, Artifact), made
        loaded = load_code(made)
        assert isinstance(loaded, tuple)
        image = tmp_path / "k.cubin"
        image.write_bytes(bytes(loaded[0].image))
        done = subprocess.run(
            [sys.executable, "-c", _ASK, str(image), loaded[0].entries["k"], json.dumps(shapes)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        registers, blocks = json.loads(done.stdout)
        assert made.resources["k"].registers == registers
        ours = [occupancy(limits, threads, registers, shared).blocks for threads, shared in shapes]
        assert ours == blocks, (registers, shapes)


def test_the_hardware_table_is_what_the_driver_says(gpu: CudaDevice) -> None:
    said = HardwareLimits.from_facts(gpu.facts())
    if said.capability not in known_capabilities():
        pytest.skip(f"the table does not have {said.capability}")
    assert limits_of(said.capability) == said

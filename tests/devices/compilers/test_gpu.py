"""Machine code without a GPU: linker names, resources and messages, the same from NVRTC and nvcc."""

from pathlib import Path

import pytest

from kernel_forge.devices.compilers.gpu.assembler_log import read_resources
from kernel_forge.devices.compilers.gpu.compiler import GpuCompiler
from kernel_forge.devices.cuda import CudaDevice
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, Unavailable
from kernel_forge.domain.resources import Resources
from kernel_forge.ports import Artifact

TEXT = """template <int N, typename T> __global__ void reversed(const T* x, T* y) {
  __shared__ T s[N];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[N - 1 - threadIdx.x];
}
namespace inner { __constant__ float factor[4]; __global__ void plain(float* y) { *y = factor[0]; } }
extern "C" __global__ void named(float* y) { *y = 1; }
"""


@pytest.fixture(params=["nvrtc", "nvcc"])
def device(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    monkeypatch.delenv("KERNEL_FORGE_CUDA_COMPILER", raising=False)
    compiler = GpuCompiler(request.param)
    if compiler.unavailable:
        pytest.skip(f"{request.param} is not installed")
    return CudaDevice("cuda", tmp_path, ("false",), compiler=compiler)


def request(text: str, *kernels: str, symbols: tuple[str, ...] = ()) -> CompileRequest:
    return CompileRequest("/tests/gpu.cu", text, kernels, symbols)


def test_names_and_resources(device: CudaDevice) -> None:
    asked = request(TEXT, "reversed<256, float>", "inner::plain", "named", symbols=("inner::factor",))
    made = device.compile_for(asked, "sm_90")
    assert isinstance(made, Artifact), made
    assert not made.from_cache
    # 256 floats of shared memory; no kernel here needs a stack.
    assert made.resources["reversed<256, float>"].shared_bytes == 1024
    assert made.resources["named"].stack_bytes == 0
    assert all(0 < r.registers <= 32 and r.architecture == "sm_90" for r in made.resources.values())
    again = device.compile_for(asked, "sm_90")
    assert isinstance(again, Artifact) and again.from_cache and again.resources == made.resources
    assert device.compilations == 1


def test_an_error_at_its_range(device: CudaDevice) -> None:
    failed = device.compile_for(request("__global__ void k(float* y) {\n  y[0] = nothing;\n}\n", "k"), "sm_90")
    assert isinstance(failed, CompileFailed)
    error = next(m for m in failed.messages if m.severity == "error")
    assert "nothing" in error.message
    assert error.location is not None and error.location.path == "/tests/gpu.cu"
    place = error.location.range
    assert (place.start.line, place.start.column, place.end.column) == (1, 9, 16)


@pytest.mark.parametrize("architecture", ["sm_20", "sm_999a"])
def test_a_gpu_that_the_compiler_does_not_know_is_no_fault_of_the_code(device: CudaDevice, architecture: str) -> None:
    made = device.compile_for(request(TEXT, "named"), architecture)
    assert isinstance(made, Unavailable), made
    assert "does not compile for this GPU" in made.reason


@pytest.mark.parametrize(
    ("defines", "value"),
    [
        ({"V": "min(1.f,2.f)"}, "V"),
        ({"V(a,b)": "(a + b)"}, "V(1, 2)"),
        ({"V": 'sizeof("a b\\"c")'}, "V"),
        ({"A": "1", "V": "A"}, "V"),
    ],
)
def test_macros_of_any_text(device: CudaDevice, defines: dict[str, str], value: str) -> None:
    text = f"__global__ void k(float* y) {{ *y = {value}; }}\n"
    made = device.compile_for(CompileRequest("/tests/gpu.cu", text, ("k",), defines=defines), "sm_90")
    assert isinstance(made, Artifact), made


@pytest.mark.parametrize("folder", ['a"b', "a\nb"])
def test_a_path_that_no_compiler_can_read_is_told(device: CudaDevice, folder: str) -> None:
    for path, include_dirs in ((f"/{folder}/k.cu", ()), ("/tests/k.cu", (f"/{folder}",))):
        made = device.compile_for(CompileRequest(path, TEXT, ("named",), include_dirs=include_dirs), "sm_90")
        assert isinstance(made, Unavailable)
        assert "a quote or a line break" in made.reason


def test_a_folder_that_is_no_utf_8_is_no_crash(device: CudaDevice) -> None:
    made = device.compile_for(CompileRequest("/\udcff/k.cu", TEXT, ("named",)), "sm_90")
    assert isinstance(made, Artifact | Unavailable)


def test_spills_and_stack_are_read() -> None:
    log = (
        "ptxas info    : Compiling entry function '_Z3bigPf' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Z3bigPf\n"
        "    256 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 72 registers, used 1 barriers, 256 bytes cumulative stack size, 400 bytes smem\n"
    )
    assert read_resources(log) == {"_Z3bigPf": Resources(72, 400, 256, 12, 16, "sm_90a")}

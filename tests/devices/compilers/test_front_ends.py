"""NVRTC and nvcc themselves, where they are installed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_forge.devices.compilers import nvrtc
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.nvcc import find_nvcc
from kernel_forge.devices.compilers.nvrtc import Nvrtc
from kernel_forge.devices.compilers.nvrtc_library import find_nvrtc
from kernel_forge.devices.compilers.opinion import DeviceCode, FrontEnd, Opinion
from kernel_forge.domain.launch import CompileRequest

PATHS = find_nvrtc()
NVCC = find_nvcc()
needs_nvrtc = pytest.mark.skipif(PATHS is None, reason="NVRTC is not installed")
BOTH = [
    pytest.param(None if PATHS is None else Nvrtc(PATHS), id="nvrtc", marks=needs_nvrtc),
    pytest.param(NVCC, id="nvcc", marks=pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")),
]


def ask(
    front_end: FrontEnd, text: str, dropped: tuple[str, ...] = (), kernels: tuple[str, ...] = ("k",), **headers: str
) -> Opinion:
    """The opinion on a file ``/w/a.cu`` that includes ``headers`` (name without ``.h``)."""
    files = {"0_a.cu": f'#line 1 "/w/a.cu"\n{text}'}
    sources = {"/w/a.cu": UserFile("a.cu", text)}
    for number, (name, content) in enumerate(headers.items(), 1):
        files[f"{number}_{name}.h"] = f'#line 1 "/w/{name}.h"\n{content}'
        sources[f"/w/{name}.h"] = UserFile(f"{name}.h", content)
    running = front_end.start(CompileRequest("/w/a.cu", text, kernels), DeviceCode(files, sources, dropped))
    return running.result()


def kernel(code: str) -> str:
    return f"__global__ void k(float* y) {{\n  {code}\n}}\n"


@pytest.mark.parametrize("front_end", BOTH)
def test_an_opinion_at_exact_ranges(front_end: FrontEnd) -> None:
    text = '#include "1_h.h"\n' + kernel("int unused; y[0] = nonesuch + twice(y[1], y);")
    opinion = ask(front_end, text, h="template <class T, class U> __device__ T twice(T a, U b) { return a + b; }\n")
    assert not opinion.accepted and opinion.inconclusive is None
    found = {
        (m.severity, m.location.path, m.location.range.start.line, m.location.range.start.column)
        for m in opinion.messages
        if m.location is not None
    }
    line = text.split("\n")[2]
    assert ("error", "a.cu", 2, line.index("nonesuch")) in found
    assert ("warning", "a.cu", 2, line.index("unused")) in found
    assert any(m.severity == "error" and m.location is not None and m.location.path == "h.h" for m in opinion.messages)


@pytest.mark.parametrize("front_end", BOTH)
def test_valid_code_with_headers_that_are_not_installed(front_end: FrontEnd) -> None:
    opinion = ask(
        front_end, "#include <mpi.h>\n#include <nccl/deep.h>\n" + kernel("y[0] = 1;"), ("mpi.h", "nccl/deep.h")
    )
    assert opinion == Opinion(True, ())


@pytest.mark.parametrize("front_end", BOTH)
def test_a_template_is_judged_for_its_arguments(front_end: FrontEnd) -> None:
    text = "namespace n {\ntemplate <class T> __global__ void k(T* y) {\n  y[0] = *y[1];\n}\n}\n"
    assert ask(front_end, text, kernels=("n::k<float*>",)).inconclusive is None
    opinion = ask(front_end, text, kernels=("n::k<float>",))
    error = next(m for m in opinion.messages if m.severity == "error")
    assert not opinion.accepted and opinion.inconclusive is None
    assert error.location is not None and error.location.range.start.line == 2
    assert ask(front_end, text.replace("*y[1]", "y[1]"), kernels=("n::k<float>",)).accepted


@needs_nvrtc
@pytest.mark.parametrize(
    "code",
    ["y[0] = std::max(1, 2);", "k<<<1, 1>>>(y);"],
)
def test_what_nvrtc_lacks_is_not_the_users_mistake(code: str) -> None:
    assert PATHS is not None
    opinion = ask(Nvrtc(PATHS), "#include <algorithm>\n" + kernel(code))
    assert opinion.inconclusive is not None and opinion.repeatable
    if NVCC is not None:
        assert ask(NVCC, "#include <algorithm>\n" + kernel(code)).accepted


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_nvcc_knows_that_a_host_function_is_none_of_the_device() -> None:
    assert NVCC is not None
    opinion = ask(NVCC, "#include <cstdio>\n" + kernel('fopen("x", "w");'))
    assert not opinion.accepted and opinion.inconclusive is None


@needs_nvrtc
def test_the_nvrtc_child_ends_with_the_one_who_asks() -> None:
    """Its parent is killed while the child still waits for its job."""
    code = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen({nvrtc.CHILD_COMMAND!r}, stdin=subprocess.PIPE)\n"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = Path("/proc", parent.stdout.readline().strip())
    deadline = time.monotonic() + 20
    # Wait until it has asked for it: it then sleeps in a read of its standard input.
    while "nvrtc_child" not in _command(child) or json.loads(f'"{_state(child)}"') != "S":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)
    parent.kill()
    parent.communicate()
    while _state(child) not in ("", "Z"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _command(process: Path) -> str:
    return (process / "cmdline").read_text() if process.exists() else ""


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@needs_nvrtc
@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        (
            "__global__ void __launch_bounds__(128)\nk(float* y) {\n  __shared__ float s[3][8192];\n"
            "  s[0][threadIdx.x] = y[0]; __syncthreads(); y[0] = s[2][threadIdx.y];\n}\n",
            "too much shared data: 98304 bytes, a GPU has room for 49152",
            1,
            0,
        ),
        (
            "const int n = 20000;\n  __constant__ float c[n];\n" + kernel("y[0] = c[threadIdx.x];"),
            "too much global constant data: 80000 bytes, a GPU has room for 65536",
            1,
            2,
        ),
    ],
)
def test_limits_that_only_the_assembler_knows_are_errors(text: str, message: str, line: int, column: int) -> None:
    """CUDA C++ Programming Guide, technical specifications: 64 KB of constant memory, 48 KB of static shared."""
    assert PATHS is not None
    opinion = ask(Nvrtc(PATHS), text)
    assert not opinion.accepted and opinion.inconclusive is None
    (error,) = [m for m in opinion.messages if m.severity == "error"]
    assert error.message == message
    assert error.location is not None and error.location.path == "a.cu"
    assert (error.location.range.start.line, error.location.range.start.column) == (line, column)


@needs_nvrtc
@pytest.mark.parametrize(
    "text",
    [
        kernel('asm volatile("wgmma.fence.sync.aligned;");'),  # sm_90a has it, sm_90 has not
        "extern __device__ float elsewhere(float);\n" + kernel("y[0] = elsewhere(y[0]);"),
    ],
)
def test_other_errors_of_the_assembler_do_not_make_code_invalid(text: str) -> None:
    assert PATHS is not None
    opinion = ask(Nvrtc(PATHS), text)
    assert opinion.accepted and opinion.inconclusive is None

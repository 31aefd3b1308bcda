"""What every device must do, whatever it runs on: subclass, and give a ``device`` fixture."""

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest, Scalar, poison
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CompileFailed,
    LaunchFailed,
    MemoryFault,
    Ran,
    RunOutcome,
    TimedOut,
    Unavailable,
)
from kernel_forge.ports import Artifact, Device

N = 64


def run(device: Device, text: str, *, block: int = N, readonly: bool = False, **more: object) -> RunOutcome:
    """Run ``k(float* x)`` on ``N`` elements, 0, 1, 2, ..."""
    artifact = device.compile(CompileRequest("/k/k.cu", text, ("k",)))
    assert isinstance(artifact, Artifact), artifact
    x = Buffer("x", DType.FLOAT32, N * 4, np.arange(N, dtype=np.float32), writable=not readonly)
    launch = Launch("k", (BufferRef("x"),), (1, 1, 1), (block, 1, 1), cluster=more.pop("cluster", None))  # type: ignore[arg-type]
    return device.run(artifact, RunRequest((x,), (launch,), **more))  # type: ignore[arg-type]


class DeviceSuite:
    def test_saxpy_and_an_unwritten_rest(self, device: Device) -> None:
        text = (
            "__global__ void k(int n, float a, const float* x, float* y)"
            "{ int i = threadIdx.x; if (i < n) y[i] = a * x[i]; }"
        )
        artifact = device.compile(CompileRequest("/k/k.cu", text, ("k",)))
        assert isinstance(artifact, Artifact), artifact
        x = np.arange(N, dtype=np.float32)
        args = (Scalar(DType.INT32, N - 1), Scalar(DType.FLOAT32, 2.0), BufferRef("x"), BufferRef("y"))
        buffers = (Buffer("x", DType.FLOAT32, N * 4, x, False), Buffer("y", DType.FLOAT32, N * 4))
        got = device.run(artifact, RunRequest(buffers, (Launch("k", args, (1, 1, 1), (N, 1, 1)),)))
        assert isinstance(got, Ran), got
        assert np.array_equal(got.contents["y"][:-1], 2 * x[:-1])
        assert got.contents["y"][-1:].tobytes() == poison(DType.FLOAT32, 1, 0).tobytes()
        again = device.compile(CompileRequest("/k/k.cu", text, ("k",)))
        assert isinstance(again, Artifact) and again.from_cache

    def test_block_reduction(self, device: Device) -> None:
        got = run(
            device,
            "__global__ void k(float* x) { __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();"
            " for (int h = 32; h; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); } if (!t) x[0] = s[0]; }",
        )
        assert isinstance(got, Ran) and got.contents["x"][0] == N * (N - 1) / 2

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            ("x[threadIdx.x + 1] = 0;", "out-of-bounds"),
            ("x = nullptr; x[0] = 0;", "null"),
            ("*(float4*)(x + 1) = make_float4(0, 0, 0, 0);", "misaligned"),
        ],
    )
    def test_memory_faults(self, device: Device, body: str, kind: str) -> None:
        got = run(device, f"__global__ void k(float* x) {{\n{body}\n}}")
        assert isinstance(got, MemoryFault) and got.kind == kind, got

    def test_write_to_read_only(self, device: Device) -> None:
        got = run(device, "__global__ void k(float* x) { x[0] = 9; }", readonly=True)
        assert isinstance(got, MemoryFault) and got.kind == "read-only", got

    def test_barrier_divergence(self, device: Device) -> None:
        text = (
            "__global__ void k(float* x) {\nif (threadIdx.x < 9)\n__syncthreads();\n"
            "else {\nx[0] = 2;\n__syncthreads(); }\nx[0] = 1; }"
        )
        got = run(device, text)
        assert isinstance(got, BarrierDivergence) and got.kind == "barrier", got

    def test_endless_loop(self, device: Device) -> None:
        text = "__global__ void k(float* x) {\nvolatile int i = 0;\nwhile (i >= 0) i = 1;\n}"
        got = run(device, text, time_limit=0.5)
        assert isinstance(got, TimedOut) and got.location is not None, got

    def test_assert_and_printf(self, device: Device) -> None:
        got = run(device, "#include <cassert>\n__global__ void k(float* x) { assert(x[0] > 5); }")
        assert isinstance(got, LaunchFailed) and got.kind == "assert", got
        got = run(device, '#include <cstdio>\n__global__ void k(float* x) { printf("%d\\n", 7); }', block=1)
        assert isinstance(got, Ran) and got.text == "7\n", got

    def test_endless_printf(self, device: Device) -> None:
        got = run(device, '__global__ void k(float* x) { for (;;) printf("no end"); }', block=1, output_limit=4096)
        assert isinstance(got, LaunchFailed) and got.kind == "output-limit", got

    def test_cluster_is_not_dropped(self, device: Device) -> None:
        got = run(device, "__global__ void k(float* x) { x[0] = 1; }", cluster=(2, 1, 1))
        assert isinstance(got, Unavailable), got

    def test_compile_errors(self, device: Device) -> None:
        for text in (
            "__global__ void k(float* x) {\n  x[0] = nope;\n}",
            '#include "missing.h"\n__global__ void k() {}',
        ):
            got = device.compile(CompileRequest("/k/k.cu", text, ("k",)))
            assert isinstance(got, CompileFailed) and got.messages, got

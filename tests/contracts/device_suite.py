"""The contract of :class:`kernel_forge.ports.Device`, as tests that any device can be put through.

Subclass :class:`DeviceSuite` with a ``device`` fixture.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import (
    Buffer,
    BufferRef,
    CompileRequest,
    Launch,
    RunRequest,
    Scalar,
    Schedule,
    Watch,
    poison,
)
from kernel_forge.domain.measurement import EARLY_SAMPLES, Measurement, Timed, TimingPlan, Timings, sampled
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
from kernel_forge.ports import Artifact, Device, Trial

F32, I32 = DType.FLOAT32, DType.INT32
PATH = "/tests/suite.cu"


def compiled(
    device: Device, text: str, *kernels: str, symbols: tuple[str, ...] = (), include_dirs: tuple[str, ...] = ()
) -> Artifact:
    made = device.compile(CompileRequest(PATH, text, kernels or ("k",), symbols, include_dirs=include_dirs))
    assert isinstance(made, Artifact), made
    return made


def launch(kernel: str, *args: BufferRef | Scalar, grid: int = 1, block: int = 32, **more: Any) -> Launch:
    return Launch(kernel, args, (grid, 1, 1), (block, 1, 1), **more)


def ref(name: str) -> BufferRef:
    return BufferRef(name)


def run(
    device: Device,
    text: str,
    data: np.ndarray[Any, Any] | None = None,
    n: int = 100,
    include_dirs: tuple[str, ...] = (),
    **more: Any,
) -> RunOutcome:
    """Run ``k(const float* x, float* y, int n)`` with one thread per element and 64 per block."""
    x = np.arange(n, dtype=np.float32) if data is None else data
    buffers = (Buffer("x", F32, 4 * n, x, writable=False), Buffer("y", F32, 4 * n))
    made = launch("k", ref("x"), ref("y"), Scalar(I32, n), grid=(n + 63) // 64, block=64)
    return device.run(compiled(device, text, include_dirs=include_dirs), RunRequest(buffers, (made,), **more))


def body(code: str) -> str:
    return (
        "__global__ void k(const float* x, float* y, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  {code}\n}}\n"
    )


class DeviceSuite:
    """Every device passes this."""

    def test_an_elementwise_kernel(self, device: Device) -> None:
        outcome = run(device, body("if (i < n) y[i] = 2.0f * x[i];"))
        assert isinstance(outcome, Ran)
        assert np.array_equal(outcome.contents["y"], 2 * np.arange(100, dtype=np.float32))

    def test_a_block_reduction_in_every_schedule(self, device: Device) -> None:
        code = (
            "__shared__ float s[64]; s[threadIdx.x] = i < n ? x[i] : 0.0f; __syncthreads();"
            "for (int o = 32; o > 0; o /= 2) {"
            " if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }"
            "if (threadIdx.x == 0) y[blockIdx.x] = s[0];"
        )
        for schedule in Schedule:
            outcome = run(device, body(code), schedule=schedule, schedule_seed=3)
            assert isinstance(outcome, Ran)
            # 0 + ... + 63 and 64 + ... + 99, by Gauss.
            assert list(outcome.contents["y"][:2]) == [2016.0, 2934.0]

    @pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.BOOL])
    def test_every_element_type(self, device: Device, dtype: DType) -> None:
        name = {
            "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
            "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
            "int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long",
        }[dtype.value]  # fmt: skip
        text = (
            "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
            f"__global__ void k(const {name}* x, {name}* y, {name} a) {{ y[threadIdx.x] = x[threadIdx.x] + a; }}"
        )
        x = np.arange(32).astype(dtype.numpy)
        size = 32 * dtype.itemsize
        buffers = (Buffer("x", dtype, size, x, writable=False), Buffer("y", dtype, size))
        request = RunRequest(buffers, (launch("k", ref("x"), ref("y"), Scalar(dtype, 3)),))
        outcome = device.run(compiled(device, text), request)
        assert isinstance(outcome, Ran)
        assert np.array_equal(outcome.contents["y"].astype(np.float64), np.arange(32) + 3.0)

    def test_symbols_and_several_launches(self, device: Device) -> None:
        text = (
            "__constant__ float c[2];\n"
            "__global__ void first(const float* x, float* t) { t[threadIdx.x] = c[0] * x[threadIdx.x]; }\n"
            "__global__ void second(const float* t, float* y) { y[threadIdx.x] = t[31 - threadIdx.x] + c[1]; }\n"
        )
        x = np.arange(32, dtype=np.float32)
        buffers = (
            Buffer("x", F32, 128, x, writable=False),
            Buffer("t", F32, 128),
            Buffer("y", F32, 128),
            Buffer("c", F32, 8, np.array([2, 5], np.float32), writable=False, symbol=True),
        )
        launches = (launch("first", ref("x"), ref("t")), launch("second", ref("t"), ref("y")))
        made = compiled(device, text, "first", "second", symbols=("c",))
        outcome = device.run(made, RunRequest(buffers, launches))
        assert isinstance(outcome, Ran)
        assert np.array_equal(outcome.contents["y"], 2 * x[::-1] + 5)

    @pytest.mark.parametrize("schedule", Schedule)
    def test_streams_run_beside_each_other_between_launches_of_the_default_stream(
        self, device: Device, schedule: Schedule
    ) -> None:
        text = (
            "__global__ void twice(float* v) { v[threadIdx.x] *= 2; }\n"
            "__global__ void more(float* v) { v[threadIdx.x] += 1; }\n"
            "__global__ void sum(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }\n"
        )
        v = np.arange(32, dtype=np.float32)
        buffers = (Buffer("a", F32, 128, v), Buffer("b", F32, 128, v))
        launches = [
            *(launch(k, ref(b), stream=b) for k, b in [("twice", "a"), ("more", "b"), ("more", "a"), ("twice", "b")]),
            launch("sum", ref("a"), ref("b")),
            launch("twice", ref("b"), stream="a"),
            launch("more", ref("a"), stream="b"),
        ]
        made = compiled(device, text, "twice", "more", "sum")
        outcome = device.run(made, RunRequest(buffers, tuple(launches), schedule=schedule, schedule_seed=5))
        assert isinstance(outcome, Ran)
        # By hand: a = 2v + 1, b = 2(v + 1), then a += b, b doubled, a one more.
        assert np.array_equal(outcome.contents["a"], 4 * v + 4)
        assert np.array_equal(outcome.contents["b"], 4 * v + 4)

    def test_shared_memory_holds_poison_that_differs_from_run_to_run(self, device: Device) -> None:
        text = (
            "__global__ void k(const float* x, float* y, int n) { __shared__ float s[512];\n"
            "  if (n < 0) s[threadIdx.x] = x[0];\n  y[threadIdx.x] = s[threadIdx.x + 300]; }"
        )
        seen = []
        for seed in (0, 1):
            outcome = run(device, text, n=64, poison_seed=seed)
            assert isinstance(outcome, Ran)
            seen.append(outcome.contents["y"])
        assert np.isnan(seen[0]).all()
        assert (np.abs(seen[1]) > 1e5).all()

    def test_what_is_not_written_keeps_its_poison(self, device: Device) -> None:
        outcome = run(device, body("if (i < n - 1) y[i] = x[i];"), poison_seed=7)
        assert isinstance(outcome, Ran)
        assert outcome.contents["y"][-1:].tobytes() == poison(F32, 1, 7).tobytes()

    @pytest.mark.parametrize(
        ("code", "kind", "n"),
        [
            ("y[i] = x[i];", "out-of-bounds", 100),
            ("if (i <= n) y[i] = 1.0f;", "guard-band", 99),
            ("float* p = (float*)(unsigned long long)(n - 100); p[i] = 1.0f;", "null", 100),
            ("if (i < 8) { float4 v = *(const float4*)(x + 1); y[i] = v.x + v.y + v.z + v.w; }", "misaligned", 100),
            ("const_cast<float*>(x)[0] = y[0];", "read-only", 100),
            ("__shared__ float s[64]; s[threadIdx.x + 1] = 1.0f; y[0] = s[1];", "out-of-bounds", 100),
        ],
    )
    def test_memory_faults(self, device: Device, code: str, kind: str, n: int) -> None:
        outcome = run(device, body(code), n=n)
        assert isinstance(outcome, MemoryFault), outcome
        # Hardware does not tell address 0 from any other that belongs to nothing.
        accepted = {kind} if device.info().has_places else {kind, "out-of-bounds"} if kind == "null" else {kind}
        assert outcome.kind in accepted
        if kind != "guard-band" and device.info().has_places:
            assert outcome.location is not None and outcome.location.range.start.line == 2
            assert outcome.thread is not None

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            ("if (threadIdx.x < 40) {\n __syncthreads(); } else {\n __syncthreads(); } y[0] = x[0];", "barrier"),
            (
                "if (threadIdx.x % 32 < 16) y[i % n] = __shfl_sync(0xffffffffu, x[0], 20); else __syncthreads();",
                "warp-mask",
            ),
            ("if (threadIdx.x >= 8) y[i % n] = __shfl_sync(0x000000ffu, x[0], 0);", "warp-mask"),
        ],
    )
    def test_misused_barriers_and_masks(self, device: Device, code: str, kind: str) -> None:
        if not device.info().has_misuse_checks:
            pytest.skip("this device does not look for misused barriers")
        outcome = run(device, body(code))
        assert isinstance(outcome, BarrierDivergence), outcome
        assert outcome.kind == kind
        assert outcome.locations

    def test_an_endless_loop_ends_at_its_line(self, device: Device) -> None:
        outcome = run(device, body("while (true) y[0] = x[0];"), time_limit=2.0)
        assert isinstance(outcome, TimedOut)
        if not device.info().has_places:
            return
        assert outcome.location is not None and outcome.location.range.start.line == 2

    def test_assert_and_printf(self, device: Device) -> None:
        failed = run(device, "#include <cassert>\n" + body("assert(i < 3); y[i] = 0;"))
        assert isinstance(failed, LaunchFailed) and failed.kind == "assert" and "i < 3" in failed.message
        spoke = run(device, "#include <cstdio>\n" + body('if (i == 5) printf("i=%d x=%g\\n", i, x[i]);'))
        assert isinstance(spoke, Ran) and spoke.text == "i=5 x=5\n"
        endless = run(device, body('while (true) printf("again and again\\n");'), time_limit=2.0)
        # A GPU's printf writes into a ring: there is never too much of it, only no end.
        assert isinstance(endless, TimedOut) or (isinstance(endless, LaunchFailed) and endless.kind == "output-limit")

    @pytest.mark.parametrize("change", [{"grid": 0}, {"block": 2048}, {"shared_bytes": 1 << 20}])
    def test_launches_no_gpu_accepts(self, device: Device, change: dict[str, int]) -> None:
        made = compiled(device, "__global__ void k(float* y) { y[0] = 1; }")
        request = RunRequest((Buffer("y", F32, 4),), (launch("k", ref("y"), **change),))  # type: ignore[arg-type]
        outcome = device.run(made, request)
        assert isinstance(outcome, LaunchFailed) and outcome.kind == "configuration"

    def test_what_it_lacks_is_unavailable(self, device: Device) -> None:
        ptx = run(device, body('int v; asm volatile("mov.u32 %0, %%laneid;" : "=r"(v)); if (i < n) y[i] = v;'))
        made = compiled(device, "__global__ void k(float* y) { y[0] = 1; }")
        cluster = device.run(
            made, RunRequest((Buffer("y", F32, 4),), (launch("k", ref("y"), grid=2, cluster=(2, 1, 1)),))
        )
        for outcome in (ptx, cluster):
            assert isinstance(outcome, Unavailable | Ran)

    def test_a_compile_error_at_its_range(self, device: Device) -> None:
        failed = device.compile(CompileRequest(PATH, body("y[i] = undeclared + x[i];"), ("k",)))
        assert isinstance(failed, CompileFailed)
        error = next(m for m in failed.messages if m.severity == "error")
        assert error.location is not None
        place = error.location.range
        assert (place.start.line, place.start.column, place.end.column) == (2, 9, 19)

    def test_a_missing_header_is_a_compile_error(self, device: Device) -> None:
        failed = device.compile(CompileRequest(PATH, '#include "nowhere.h"\n' + body("y[i] = 0;"), ("k",)))
        assert isinstance(failed, CompileFailed)
        assert any("nowhere.h" in m.message for m in failed.messages)

    def test_who_wrote_an_element(self, device: Device) -> None:
        if not device.info().has_watch:
            pytest.skip("this device cannot watch")
        outcome = run(device, body("if (i < n) y[n - 1 - i] = x[i];"), watch=Watch("y", 4 * 10, 4))
        assert isinstance(outcome, Ran) and outcome.watch_hit is not None
        # y[10] is written by i = 89: block 1, thread 25.
        assert (outcome.watch_hit.thread.block[0], outcome.watch_hit.thread.thread[0]) == (1, 25)
        assert outcome.watch_hit.location is not None and outcome.watch_hit.location.range.start.line == 2

    def test_several_threads_at_once_and_the_cache(self, device: Device) -> None:
        text = body("if (i < n) y[i] = x[i] + 1.0f;")
        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(lambda _: run(device, text), range(8)))
        assert all(isinstance(o, Ran) and o.contents["y"][3] == 4.0 for o in outcomes)
        assert compiled(device, text).from_cache

    def test_a_hopeless_trial_is_timed_in_haste(self, device: Device) -> None:
        """The loop of the second trial is 2000 times as long, so that it is slower on any device."""
        text = (
            "__global__ void k(float* y, int rounds) {\n"
            "  float v = y[threadIdx.x];\n"
            "  for (int i = 0; i < rounds; ++i) v = v * 0.5f + 1.0f;\n"
            "  y[threadIdx.x] = v; }\n"
        )
        made = compiled(device, text)
        y = np.zeros(32, np.float32)

        def trial(rounds: int) -> Trial:
            launches = (launch("k", ref("y"), Scalar(I32, rounds)),)
            return Trial(made, RunRequest((Buffer("y", F32, 128, y),), launches, time_limit=5.0))

        def timed(plan: TimingPlan) -> list[Measurement]:
            timings = device.time([trial(100), trial(200_000)], plan)
            assert isinstance(timings, Timings), timings
            assert all(isinstance(r, Timed) for r in timings.results), timings
            return [r.measurement for r in timings.results if isinstance(r, Timed)]

        plan = TimingPlan(budget=1.0, interval=0.5, min_samples=6, outputs=False)
        fast, slow = timed(plan)
        assert not fast.early and not slow.early
        limit = (fast.seconds * slow.seconds) ** 0.5
        fast, slow = timed(replace(plan, hopeless=limit))
        assert (fast.early, slow.early) == (False, True)
        assert slow.samples <= EARLY_SAMPLES and slow.seconds > limit
        assert fast.samples >= 6 and fast.seconds < limit

    def test_a_sample_of_what_the_first_execution_left(self, device: Device) -> None:
        """The second trial writes nothing, and must not be taken for one that wrote what the first did."""
        text = (
            "__global__ void k(const float* x, float* y, float* z, int n, int writes) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (writes && i < n) { y[i] = 2.0f * x[i]; z[i] += x[i]; } }\n"
        )
        made = compiled(device, text)
        n, most = 3000, 700
        x, z = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        for array in (x, z):
            array.setflags(write=False)

        def trial(writes: int) -> Trial:
            args = (ref("x"), ref("y"), ref("z"), Scalar(I32, n), Scalar(I32, writes))
            launches = (Launch("k", args, (24, 1, 1), (128, 1, 1)),)
            buffers = (
                Buffer("x", F32, x.nbytes, x, writable=False),
                Buffer("y", F32, x.nbytes),
                Buffer("z", F32, z.nbytes, z),
            )
            return Trial(made, RunRequest(buffers, launches, time_limit=5.0))

        plan = TimingPlan(budget=0.5, interval=0.5, min_samples=3, outputs=False, sample=most)
        timings = device.time([trial(1), trial(0)], plan)
        assert isinstance(timings, Timings), timings
        wrote, idle = timings.results
        assert isinstance(wrote, Timed) and isinstance(idle, Timed), timings
        chosen = sampled(n, most)
        assert np.array_equal(wrote.contents["y"], 2.0 * x[chosen])
        assert np.array_equal(wrote.contents["z"], 1.0 + x[chosen])
        assert not (idle.contents["y"] == 2.0 * x[chosen]).any()
        assert np.array_equal(idle.contents["z"], z[chosen])
        assert len(wrote.contents["y"]) <= most

    def test_energy_or_the_reason_why_there_is_none(self, device: Device) -> None:
        y = np.zeros(1 << 12, np.float32)
        made = compiled(device, "__global__ void k(float* y) { y[threadIdx.x] = 1.0f; }")
        request = RunRequest((Buffer("y", F32, y.nbytes, y),), (launch("k", ref("y")),))
        timings = device.time([Trial(made, request)], TimingPlan(budget=0.1, outputs=False, energy=True))
        assert isinstance(timings, Timings) and isinstance(timings.results[0], Timed), timings
        assert (timings.results[0].joules is None) == (timings.no_energy is not None)
        timings = device.time([Trial(made, request)], TimingPlan(budget=0.1, outputs=False))
        assert isinstance(timings, Timings) and isinstance(timings.results[0], Timed), timings
        assert timings.results[0].joules is None and timings.no_energy is None

    def test_a_header_that_only_a_macro_names_is_read_each_time(self, device: Device, tmp_path: Path) -> None:
        text = '#define H "factor.h"\n#include H\n' + body("if (i < n) y[i] = FACTOR * x[i];")
        for factor in (2.0, 3.0):
            (tmp_path / "factor.h").write_text(f"#define FACTOR {factor}f\n")
            outcome = run(device, text, include_dirs=(str(tmp_path),))
            assert isinstance(outcome, Ran) and outcome.contents["y"][3] == factor * 3.0

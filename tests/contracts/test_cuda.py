"""The GPU keeps the contract of a device."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from kernel_forge.devices.cuda import CudaDevice, local_worker
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, RunRequest, Scalar
from kernel_forge.domain.measurement import Timed, TimingPlan
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    LaunchFailed,
    MemoryFault,
    RaceFound,
    Ran,
    TimedOut,
    Unavailable,
)
from kernel_forge.domain.texture import Filter, Memory, Sampling, Texture
from kernel_forge.ports import Trial
from kernel_forge.source import parse
from tests.contracts.device_suite import DeviceSuite, body, compiled, launch, ref, run
from tests.contracts.texture_suite import TextureSuite

pytestmark = pytest.mark.gpu
COPY = body("if (i < n) y[i] = x[i];")


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CudaDevice]:
    made = CudaDevice(
        "cuda", tmp_path_factory.mktemp("cache"), local_worker(0), lambda text: parse(text, "").host_ranges
    )
    if made.info().unavailable:
        pytest.skip(f"no GPU: {made.info().unavailable}")
    yield made
    made.close()


class TestCudaTextures(TextureSuite):
    """See :class:`TextureSuite`."""

    def test_a_texture_is_timed(self, device: CudaDevice) -> None:
        text = (
            "__global__ void k(cudaTextureObject_t t, float* y, int n) {\n"
            "  int x = blockIdx.x * 32 + threadIdx.x;\n"
            "  for (int i = 0; i < n; ++i) y[i * n + x] = tex2D<float>(t, x + 0.5f, i + 0.5f); }\n"
        )
        n = 1024
        texels = np.arange(n * n, dtype=np.float32)
        texture = Texture((n, n), 1, Sampling(Filter.LINEAR))
        buffers = (
            Buffer("t", DType.FLOAT32, texels.nbytes, texels, writable=False, texture=texture),
            Buffer("y", DType.FLOAT32, texels.nbytes),
        )
        request = RunRequest(buffers, (launch("k", ref("t"), ref("y"), Scalar(DType.INT32, n), grid=n // 32),))
        timings = device.time([Trial(compiled(device, text), request)], TimingPlan(budget=0.5))
        assert not isinstance(timings, Unavailable), timings
        timed = timings.results[0]
        assert isinstance(timed, Timed), timed
        assert np.array_equal(timed.contents["y"], texels)

    def test_a_sanitizer_finds_nothing_in_fetches(self, device: CudaDevice) -> None:
        if device.info().sanitizer is not None:
            pytest.skip(str(device.info().sanitizer))
        text = (
            "__global__ void k(cudaTextureObject_t t, cudaTextureObject_t m, float* y) {\n"
            "  y[threadIdx.x] = tex1D<float>(t, threadIdx.x + 0.5f) + tex1Dfetch<float>(m, threadIdx.x); }\n"
        )
        x = np.ones(32, np.float32)
        linear = Texture((32,), 1, Sampling(memory=Memory.LINEAR))
        buffers = (
            Buffer("t", DType.FLOAT32, 128, x, writable=False, texture=Texture((32,))),
            Buffer("m", DType.FLOAT32, 128, x, writable=False, texture=linear),
            Buffer("y", DType.FLOAT32, 128),
        )
        request = RunRequest(buffers, (launch("k", ref("t"), ref("m"), ref("y")),), time_limit=60.0)
        assert device.sanitize(compiled(device, text), request) == ()


class TestCuda(DeviceSuite):
    """See :class:`DeviceSuite`."""

    def test_a_killed_worker_costs_one_run(self, device: CudaDevice) -> None:
        assert isinstance(run(device, body("if (i < n) y[i] = x[i];")), Ran)
        worker = device.pool._worker
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        after = [run(device, body("if (i < n) y[i] = x[i];")) for _ in range(2)]
        assert isinstance(after[1], Ran)

    def test_memory_that_is_not_there(self, device: CudaDevice) -> None:
        made = compiled(device, "__global__ void k(float* y) { y[0] = 1; }")
        total = int(device.facts()["memory_bytes"])
        y = Buffer("y", DType.UINT8, 4)
        huge = Buffer("huge", DType.UINT8, 4)
        # Not filled from here: the size alone is announced, so build the request with poison.
        outcome = device.run(made, RunRequest((y, Buffer("huge", DType.UINT8, total)), (launch("k", ref("y")),)))
        assert isinstance(outcome, Unavailable), outcome
        assert "memory" in outcome.reason
        again = device.run(made, RunRequest((y, huge), (launch("k", ref("y")),)))
        assert isinstance(again, Ran)

    def test_large_dynamic_shared_memory(self, device: CudaDevice) -> None:
        text = (
            "extern __shared__ float s[];\n__global__ void k(float* y) { for (int i = threadIdx.x; i < 25000; i += 32) "
            "s[i] = i; __syncthreads(); y[threadIdx.x] = s[24999 - threadIdx.x]; }"
        )
        made = compiled(device, text)
        request = RunRequest((Buffer("y", DType.FLOAT32, 128),), (launch("k", ref("y"), shared_bytes=100000),))
        outcome = device.run(made, request)
        assert isinstance(outcome, Ran), outcome
        assert np.array_equal(outcome.contents["y"], 24999 - np.arange(32, dtype=np.float32))

    def test_grid_sync(self, device: CudaDevice) -> None:
        text = (
            "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
            "__global__ void k(const float* x, float* t, float* y, int n) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " t[i] = 2 * x[i]; cg::this_grid().sync(); y[i] = t[n - 1 - i]; }"
        )
        x = np.arange(1024, dtype=np.float32)
        buffers = (
            Buffer("x", DType.FLOAT32, 4096, x, writable=False),
            Buffer("t", DType.FLOAT32, 4096),
            Buffer("y", DType.FLOAT32, 4096),
        )
        made = launch("k", ref("x"), ref("t"), ref("y"), Scalar(DType.INT32, 1024), grid=8, block=128, cooperative=True)
        outcome = device.run(compiled(device, text), RunRequest(buffers, (made,)))
        assert isinstance(outcome, Ran), outcome
        assert np.array_equal(outcome.contents["y"], 2 * x[::-1])

    def test_clusters_share_memory(self, device: CudaDevice) -> None:
        text = (
            "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
            "__global__ void k(float* y) { __shared__ float s[32]; auto c = cg::this_cluster(); s[threadIdx.x] = 100 * "
            "c.block_rank() + threadIdx.x; c.sync(); y[blockIdx.x * 32 + threadIdx.x] = "
            "c.map_shared_rank(s, 1 - c.block_rank())[threadIdx.x]; c.sync(); }"
        )
        made = compiled(device, text)
        if int(str(device.facts()["capability"]).split(".")[0]) < 9:
            pytest.skip("clusters need compute capability 9.0")
        request = RunRequest((Buffer("y", DType.FLOAT32, 256),), (launch("k", ref("y"), grid=2, cluster=(2, 1, 1)),))
        outcome = device.run(made, request)
        assert isinstance(outcome, Ran), outcome
        lanes = np.arange(32, dtype=np.float32)
        assert np.array_equal(outcome.contents["y"], np.concatenate([100 + lanes, lanes]))

    def test_resources_of_the_assembler(self, device: CudaDevice) -> None:
        made = compiled(
            device,
            "__global__ void k(float* y) { __shared__ float s[100]; s[threadIdx.x] = y[0];"
            " __syncthreads(); y[1] = s[5]; }",
        )
        assert made.resources["k"].shared_bytes == 400
        assert 0 < made.resources["k"].registers < 32

    @pytest.mark.parametrize(
        ("text", "tool", "kind", "line"),
        [
            (body("if (i <= n) y[i] = x[i];"), "memcheck", MemoryFault, 1),
            (body("__shared__ float s[64];\n s[i + n] = x[i];\n y[i] = s[0];"), "memcheck", MemoryFault, 2),
            (body("*(float2*)(y + 1) = make_float2(i, 2);"), "memcheck", MemoryFault, 1),
            (body("if (x[0] < 1e9f)\n __trap();"), "memcheck", LaunchFailed, 2),
            (body("__shared__ float s[64];\n s[i % 64] = x[i];\n y[i] = s[63 - i % 64];"), "racecheck", RaceFound, 2),
            (body("if (i < 5)\n y[i] = y[i + 1] + x[0];"), "initcheck", MemoryFault, 2),
            (body("if (i < 40)\n __syncthreads();\n y[i] = 1;"), "synccheck", BarrierDivergence, 2),
        ],
    )
    def test_a_sanitizer_finds_the_line(self, device: CudaDevice, text: str, tool: str, kind: type, line: int) -> None:
        if device.info().sanitizer is not None:
            pytest.skip(str(device.info().sanitizer))
        made = compiled(device, text)
        x = np.arange(64, dtype=np.float32)
        buffers = (Buffer("x", DType.FLOAT32, 256, x, writable=False), Buffer("y", DType.FLOAT32, 256))
        wide = launch("k", ref("x"), ref("y"), Scalar(DType.INT32, 64), grid=1, block=64 if "<= n" not in text else 96)
        found = device.sanitize(made, RunRequest(buffers, (wide,), time_limit=20), (tool,))
        assert not isinstance(found, Unavailable), found
        assert isinstance(found[0], kind), found
        place = found[0].locations[0] if isinstance(found[0], RaceFound | BarrierDivergence) else found[0].location
        assert place is not None
        assert place.range.start.line == 1 + line  # two lines come before the code

    def test_sanitizers_find_nothing_in_a_right_kernel(self, device: CudaDevice) -> None:
        if device.info().sanitizer is not None:
            pytest.skip(str(device.info().sanitizer))
        text = body(
            "__shared__ float s[64]; s[i % 64] = i < n ? x[i] : 0; __syncthreads(); if (i < n) y[i] = s[63 - i];"
        )
        x = np.arange(64, dtype=np.float32)
        buffers = (Buffer("x", DType.FLOAT32, 256, x, writable=False), Buffer("y", DType.FLOAT32, 256))
        right = launch("k", ref("x"), ref("y"), Scalar(DType.INT32, 64), block=64)
        assert device.sanitize(compiled(device, text), RunRequest(buffers, (right,), time_limit=20)) == ()
        endless = compiled(device, body("while (true) y[i] = x[i];"))
        stuck = device.sanitize(endless, RunRequest(buffers, (right,), time_limit=2), ("memcheck",))
        assert isinstance(stuck, Unavailable)

    def test_a_storm_of_faults_leaves_nothing_behind(self, device: CudaDevice) -> None:
        right = body("if (i < n) y[i] = x[i];")
        kinds = {
            "right": (right, Ran),
            "fault": (body("y[i + (1 << 28)] = x[i];"), MemoryFault),
            "hang": (body("while (true) y[0] = x[0];"), TimedOut),
            # The driver reports a trap and an access outside shared memory with the same error.
            "trap": (body("__trap();"), (LaunchFailed, MemoryFault)),
        }
        for kind in ["right", "fault", "right", "hang", "right", "trap", "right"]:
            text, expected = kinds[kind]
            outcome = run(device, text, time_limit=3.0)
            assert isinstance(outcome, expected), (kind, outcome)

    def test_timing_of_a_copy(self, device: CudaDevice) -> None:
        n = 1 << 26
        made = compiled(device, COPY)
        x = np.ones(n, np.float32)
        buffers = (Buffer("x", DType.FLOAT32, 4 * n, x, writable=False), Buffer("y", DType.FLOAT32, 4 * n))
        request = RunRequest(
            buffers, (launch("k", ref("x"), ref("y"), Scalar(DType.INT32, n), grid=n // 256, block=256),)
        )
        timings = device.time([Trial(made, request)], TimingPlan(budget=1.0))
        assert not isinstance(timings, Unavailable), timings
        timed = timings.results[0]
        assert isinstance(timed, Timed), timed
        assert np.array_equal(timed.contents["y"], x)
        found = timed.measurement
        assert found.low <= found.seconds <= found.high
        # 512 MiB cannot be moved faster than any memory today, nor slower than a hundredth of it.
        assert 2 * 4 * n / 20e12 < found.seconds < 2 * 4 * n / 50e9

"""Asynchronous copies, cuda::barrier, cuda::pipeline, cuda::atomic: right programs run, a missing wait shows."""

# CUDA text keeps its own line breaks.
# ruff: noqa: E501

import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from kernel_forge.domain.outcome import LaunchFailed, Ran, TimedOut, Unavailable
from tests.devices.emulator.shim import outcome, run

X = np.arange(1, 257, dtype=np.float32)

PRIMITIVES = """#include <cuda_pipeline_primitives.h>
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], &x[t], 4);
  __pipeline_commit();
  for (int step = 0; step < 4; ++step) {
    if (step < 3) __pipeline_memcpy_async(&s[(step + 1) % 2][t], &x[(step + 1) * 64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    y[step * 64 + t] = 2 * s[step % 2][63 - t];
    __syncthreads();
  }
}
"""
GROUPS = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[4][64];
  cg::thread_block block = cg::this_thread_block();
  for (int i = 0; i < 3; ++i) cg::memcpy_async(block, s[i], x + 64 * i, sizeof(float) * 64);
  cg::memcpy_async(block, s[3], 64, x + 192, 64);
  cg::wait_prior<3>(block);
  y[threadIdx.x] = 2 * s[0][63 - threadIdx.x];
  cg::wait(block);
  for (int i = 1; i < 4; ++i) y[64 * i + threadIdx.x] = 2 * s[i][63 - threadIdx.x];
}
"""
BARRIER = """#include <cuda/barrier>
#include <cooperative_groups.h>
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[64];
  __shared__ barrier bar;
  auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  for (int i = 0; i < 4; ++i) {
    cuda::memcpy_async(block, s, x + 64 * i, cuda::aligned_size_t<16>(sizeof(s)), bar);
    barrier::arrival_token token = bar.arrive();
    bar.wait(cuda::std::move(token));
    y[64 * i + threadIdx.x] = 2 * s[63 - threadIdx.x];
    bar.arrive_and_wait();
  }
}
"""
THREAD_PIPELINE = """#include <cuda/pipeline>
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[2][64];
  int t = threadIdx.x;
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  pipe.producer_acquire(); cuda::memcpy_async(&s[0][t], &x[t], sizeof(float), pipe); pipe.producer_commit();
  for (int i = 0; i < 4; ++i) {
    if (i < 3) { pipe.producer_acquire(); cuda::memcpy_async(&s[(i + 1) % 2][t], &x[64 * (i + 1) + t], sizeof(float), pipe); pipe.producer_commit(); }
    pipe.consumer_wait();
    __syncthreads();
    y[64 * i + t] = 2 * s[i % 2][63 - t];
    __syncthreads();
    pipe.consumer_release();
  }
}
"""
BLOCK_PIPELINE = """#include <cuda/pipeline>
#include <cooperative_groups.h>
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int i = 0, fetch = 0; i < 4; ++i) {
    for (; fetch < 4 && fetch < i + 2; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetch % 2], x + 64 * fetch, cuda::aligned_size_t<4>(sizeof(float) * 64), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    y[64 * i + threadIdx.x] = 2 * s[i % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
}
"""
ROLES = """#include <cuda/pipeline>
#include <cooperative_groups.h>
__global__ void k(const float* x, float* y) {
  __shared__ alignas(16) float s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state, 32);
  int t = threadIdx.x;
  for (int i = 0; i < 4; ++i)
    if (t < 32) {
      pipe.producer_acquire();
      for (int j = t; j < 64; j += 32) cuda::memcpy_async(&s[i % 2][j], &x[64 * i + j], sizeof(float), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      for (int j = t - 32; j < 64; j += 32) y[64 * i + j] = 2 * s[i % 2][63 - j];
      pipe.consumer_release();
    }
}
"""
SPLIT = """#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>
__global__ void k(const float* x, float* y) {
  __shared__ float s[256];
  __shared__ __mbarrier_t bar;
  int t = threadIdx.x;
  if (t == 0) __mbarrier_init(&bar, 64);
  __syncthreads();
  for (int i = 0; i < 4; ++i) __pipeline_memcpy_async(&s[64 * i + t], &x[64 * i + t], 4);
  __pipeline_arrive_on(&bar);
  __mbarrier_token_t token = __mbarrier_arrive(&bar);
  while (!__mbarrier_test_wait(&bar, token)) {}
  for (int i = 0; i < 4; ++i) y[64 * i + t] = 2 * s[64 * i + 63 - t];
}
"""
PROGRAMS = {
    "primitives": PRIMITIVES, "groups": GROUPS, "barrier": BARRIER, "thread pipeline": THREAD_PIPELINE,
    "block pipeline": BLOCK_PIPELINE, "roles": ROLES, "split": SPLIT,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_tiles_arrive(name: str) -> None:
    want = 2 * X.reshape(4, 64)[:, ::-1].ravel()
    for schedule in Schedule:
        y = run(PROGRAMS[name], {"x": X, "y": np.zeros(256, np.float32)}, block=64, schedule=schedule)["y"]
        assert np.array_equal(y, want), schedule


@pytest.mark.parametrize(
    ("name", "wait", "instead"),
    [
        ("primitives", "__pipeline_wait_prior(1);", ""),
        ("primitives", "__pipeline_wait_prior(1);", "__pipeline_wait_prior(2);"),
        ("groups", "cg::wait(block);", "block.sync();"),
        ("groups", "cg::wait_prior<3>(block);", "cg::wait_prior<4>(block);"),
        ("thread pipeline", "pipe.consumer_wait();", ""),
        ("block pipeline", "pipe.consumer_wait();", ""),
        ("barrier", "bar.wait(cuda::std::move(token));", ""),
    ],
)
def test_a_missing_wait_shows(name: str, wait: str, instead: str) -> None:
    text = PROGRAMS[name].replace(wait, instead)
    assert text != PROGRAMS[name]
    y = run(text, {"x": X, "y": np.zeros(256, np.float32)}, block=64)["y"]
    assert not np.array_equal(y, 2 * X.reshape(4, 64)[:, ::-1].ravel())


def test_copies_of_an_earlier_block_do_not_arrive_in_a_later_one() -> None:
    # Every block leaves a copy unfinished; shared memory starts as poison again in the next one.
    text = """#include <cuda_pipeline_primitives.h>
__global__ void k(const float* x, float* y) {
  __shared__ float s[32]; int t = threadIdx.x;
  if (blockIdx.x % 2 == 0) { __pipeline_memcpy_async(&s[t], &x[t], 4); __pipeline_commit(); y[32 * blockIdx.x + t] = 1; }
  else { s[t] = 5; __pipeline_wait_prior(0); y[32 * blockIdx.x + t] = s[t]; }
}
"""
    y = run(text, {"x": X, "y": np.zeros(256, np.float32)}, grid=8)["y"].reshape(8, 32)
    assert (y[1::2] == 5).all() and (y[::2] == 1).all()


def test_misused_copies_and_barriers() -> None:
    buffers = {"x": X, "y": np.zeros(256, np.float32)}
    head = "#include <cuda_pipeline_primitives.h>\n#include <cuda/barrier>\n__global__ void k(const float* x, float* y) {\n"
    crooked = outcome(
        head + "  __shared__ alignas(16) float s[8];\n  __pipeline_memcpy_async(&s[1], x, 16);\n}\n", buffers
    )
    assert isinstance(crooked, LaunchFailed) and "aligned" in crooked.message
    assert crooked.location is not None and crooked.location.range.start.line == 4
    bar = "  __shared__ cuda::barrier<cuda::thread_scope_block> b;\n  if (threadIdx.x == 0) init(&b, 8);\n  __syncthreads();\n"
    many = outcome(head + bar + "  (void)b.arrive(9);\n}\n", buffers)
    assert isinstance(many, LaunchFailed) and "arrivals" in many.message
    never = outcome(head + bar.replace("8", "64") + "  b.arrive_and_wait();\n}\n", buffers, time_limit=1)
    assert isinstance(never, TimedOut), never


def test_barriers_complete_drop_and_flip_parity() -> None:
    text = """#include <cuda/barrier>
struct Count { int* n; __device__ void operator()() noexcept { ++*n; } };
__global__ void k(int* out) {
  __shared__ int n; __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ cuda::barrier<cuda::thread_scope_block, Count> c; int t = threadIdx.x;
  if (t == 0) { n = 0; init(&b, 64); init(&c, 64, Count{&n}); }
  __syncthreads();
  for (int i = 0; i < 5; ++i) c.arrive_and_wait();
  out[t] = n;
  if (t >= 32) b.arrive_and_drop();
  else { b.arrive_and_wait(); auto token = b.arrive(); b.wait(cuda::std::move(token)); (void)b.arrive(); b.wait_parity(0); out[64 + t] = 1; }
}
"""
    out = run(text, {"out": np.zeros(96, np.int32)}, block=64)["out"]
    assert out.tolist() == [5] * 64 + [1] * 32


ATOMICS = """#include <cuda/atomic>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
#include <cuda/std/array>
#include <cuda/std/utility>
#include <cuda/cmath>
__device__ cuda::atomic<int, cuda::thread_scope_device> counter;
__global__ void k(int* i, float* f, unsigned long long* w, int* out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> a(i[0]);
  a.fetch_add(t, cuda::memory_order_relaxed); a++; a -= 1;
  cuda::atomic_ref<int, cuda::thread_scope_system>(i[1]).fetch_max(t);
  cuda::atomic_ref<int, cuda::thread_scope_block>(i[2]).fetch_min(-t);
  cuda::atomic_ref<float, cuda::thread_scope_device>(f[0]).fetch_add(0.5f);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(w[0]).fetch_or(1ull << t % 64);
  int expected = 0;
  if (cuda::atomic_ref<int, cuda::thread_scope_device>(i[3]).compare_exchange_strong(expected, 9, cuda::memory_order_acq_rel)) i[4] = 1;
  counter.fetch_add(1, cuda::std::memory_order_relaxed);
  __shared__ cuda::atomic<int, cuda::thread_scope_block> flag; __shared__ int data;
  if (threadIdx.x == 0) new (&flag) cuda::atomic<int, cuda::thread_scope_block>(0);
  __syncthreads();
  if (threadIdx.x == 63) { data = 42; flag.store(1, cuda::std::memory_order_release); }
  else { while (flag.load(cuda::std::memory_order_acquire) == 0) {} if (data != 42) i[5] = 1; }
  if (t == 0) {
    cuda::std::array<int, 3> v{1, 2, 3}; auto p = cuda::std::make_pair(4, 5.0f);
    out[0] = cuda::std::numeric_limits<int>::max(); out[1] = cuda::std::is_same<int, cuda::std::remove_const_t<const int>>::value;
    out[2] = v[2] + p.first; out[3] = cuda::ceil_div(10, 4); out[4] = cuda::std::is_same_v<float, double>;
  }
}
"""


def test_atomics_and_the_standard_library() -> None:
    buffers = {
        "i": np.zeros(6, np.int32),
        "f": np.zeros(1, np.float32),
        "w": np.zeros(1, np.uint64),
        "out": np.zeros(5, np.int32),
    }
    for schedule in Schedule:
        after = run(ATOMICS, buffers, grid=16, block=64, schedule=schedule)
        assert after["i"].tolist() == [1024 * 1023 // 2, 1023, -1023, 9, 1, 0]
        assert after["f"][0] == 512 and int(after["w"][0]) == 2**64 - 1
        assert after["out"].tolist() == [2**31 - 1, 1, 7, 3, 0]


@pytest.mark.parametrize(
    ("include", "use", "word"),
    [
        ("#include <cooperative_groups.h>", "cooperative_groups::this_cluster().sync();", "clusters"),
        ("", "y[0] = tex2D<float>((cudaTextureObject_t)5, 0.5f, 0.5f);", "tex2D"),
        ("", "surf2Dwrite(1.0f, (cudaSurfaceObject_t)5, 0, 0);", "surf2Dwrite"),
        ("", "y[0] = __isShared(x);", "__isShared"),
        ("", "y[0] = __isGlobal(x);", "__isGlobal"),
        ("#include <cuda/barrier>", "__shared__ cuda::barrier<cuda::thread_scope_block> b; (void)cuda::device::barrier_arrive_tx(b, 1, 16);", "barrier_arrive_tx"),
        ("#include <mma.h>", "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 8, 8, 128, int> f; nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 8, 8, 128, nvcuda::wmma::experimental::precision::b1, nvcuda::wmma::row_major> g;", "experimental"),
    ],
)  # fmt: skip
def test_what_is_not_emulated_is_unavailable_with_its_line(include: str, use: str, word: str) -> None:
    text = f"{include}\n__global__ void k(const float* x, float* y) {{\n  {use}\n}}\n"
    ended = outcome(text, {"x": X, "y": np.zeros(4, np.float32)})
    assert not isinstance(ended, Ran)
    assert isinstance(ended, Unavailable), ended
    assert word in ended.reason
    assert ended.location is not None and ended.location.range.start.line == 2

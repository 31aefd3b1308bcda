"""cub's block and warp collectives and warp matrix multiplication, against NumPy."""

# CUDA text keeps its own line breaks.
# ruff: noqa: E501

import ml_dtypes
import numpy as np
import pytest

from kernel_forge.domain.launch import Schedule
from kernel_forge.domain.outcome import BarrierDivergence, LaunchFailed
from tests.devices.emulator.shim import outcome, run

CUB = """#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
struct Before { int value; __device__ int operator()(int total) { int old = value; value += total; return old; } };
__global__ void k(const int* x, int* out, int* once) {
  using Reduce = cub::BlockReduce<int, 128>; using Scan = cub::BlockScan<int, 128>;
  using WarpR = cub::WarpReduce<int>; using WarpR8 = cub::WarpReduce<int, 8>; using WarpS = cub::WarpScan<int>;
  using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>; using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_STRIPED>;
  __shared__ union { Reduce::TempStorage r; Scan::TempStorage s; Load::TempStorage l; Store::TempStorage t; } temp;
  __shared__ WarpR::TempStorage wr[4]; __shared__ WarpR8::TempStorage w8[16]; __shared__ WarpS::TempStorage ws[4];
  int t = threadIdx.x, v = x[t], a, total; int items[4], result[4];
  auto put = [&](int row, int value) { out[row * 128 + t] = value; };
  int r = Reduce(temp.r).Sum(v); if (t == 0) once[0] = r; __syncthreads();
  r = Reduce(temp.r).Reduce(v, cuda::maximum<>{}); if (t == 0) once[1] = r; __syncthreads();
  r = Reduce(temp.r).Sum(v, 100); if (t == 0) once[2] = r; __syncthreads();
  Load(temp.l).Load(x, items); __syncthreads();
  r = Reduce(temp.r).Sum(items); if (t == 0) once[3] = r; __syncthreads();
  r = Reduce(temp.r).Reduce(items, cuda::minimum<>{}); if (t == 0) once[4] = r; __syncthreads();
  Scan(temp.s).InclusiveSum(v, a); put(0, a); __syncthreads();
  Scan(temp.s).ExclusiveSum(v, a, total); put(1, a); put(2, total); __syncthreads();
  Scan(temp.s).InclusiveScan(v, a, cuda::maximum<>{}); put(3, a); __syncthreads();
  Scan(temp.s).ExclusiveScan(v, a, -7, cuda::maximum<>{}, total); put(4, a); put(5, total); __syncthreads();
  Scan(temp.s).InclusiveSum(items, result); for (int i = 0; i < 4; ++i) out[6 * 128 + 4 * t + i] = result[i]; __syncthreads();
  Scan(temp.s).ExclusiveSum(items, result); for (int i = 0; i < 4; ++i) out[10 * 128 + 4 * t + i] = result[i]; __syncthreads();
  Before before{1000};
  Scan(temp.s).ExclusiveSum(v, a, before); put(14, a); __syncthreads();
  Scan(temp.s).ExclusiveSum(v, a, before); put(15, a); __syncthreads();
  r = WarpR(wr[t / 32]).Sum(v); if (t % 32 == 0) once[8 + t / 32] = r;
  r = WarpR8(w8[t / 8]).Reduce(v, cuda::maximum<>{}); if (t % 8 == 0) once[16 + t / 8] = r;
  r = WarpR(wr[t / 32]).Sum(v, 5); if (t % 32 == 0) once[12 + t / 32] = r;
  WarpS(ws[t / 32]).InclusiveSum(v, a); put(16, a); WarpS(ws[t / 32]).ExclusiveSum(v, a, total); put(17, a); put(18, total);
  WarpS(ws[t / 32]).ExclusiveScan(v, a, -7, cuda::maximum<>{}); put(19, a); put(20, WarpS(ws[t / 32]).Broadcast(v, 3));
  Store(temp.t).Store(out + 21 * 128, items, 300);
}
"""


@pytest.mark.parametrize("schedule", [Schedule.FORWARD, Schedule.REVERSE])
def test_cub(schedule: Schedule) -> None:
    x = np.random.default_rng(3).integers(-50, 50, 512).astype(np.int32)
    after = run(
        CUB,
        {"x": x, "out": np.full(25 * 128, -1, np.int32), "once": np.zeros(32, np.int32)},
        block=128,
        schedule=schedule,
    )
    v, once, out = x[:128], after["once"], after["out"].reshape(25, 128)
    sums = np.cumsum(v)
    assert once[:5].tolist() == [v.sum(), v.max(), v[:100].sum(), x.sum(), x.min()]
    warps = v.reshape(4, 32)
    assert once[8:12].tolist() == warps.sum(1).tolist() and once[12:16].tolist() == warps[:, :5].sum(1).tolist()
    assert once[16:32].tolist() == v.reshape(16, 8).max(1).tolist()
    before = np.maximum.accumulate(np.concatenate([[-7], v]))[:-1]
    rows = {0: sums, 1: sums - v, 2: np.full(128, v.sum()), 3: np.maximum.accumulate(v), 4: before, 5: np.full(128, v.max()),
            14: sums - v + 1000, 15: sums - v + 1000 + v.sum(), 16: np.cumsum(warps, 1).ravel(),
            17: (np.cumsum(warps, 1) - warps).ravel(), 18: np.repeat(warps.sum(1), 32), 20: np.repeat(warps[:, 3], 32),
            19: np.concatenate([np.maximum.accumulate(np.concatenate([[-7], w]))[:-1] for w in warps])}  # fmt: skip
    for row, want in rows.items():
        assert out[row].tolist() == want.tolist(), row
    assert out[6:10].ravel().tolist() == np.cumsum(x).tolist()
    assert out[10:14].ravel().tolist() == (np.cumsum(x) - x).tolist()
    # Striped: item i of thread t goes to i * 128 + t, up to 300 items.
    striped = x.reshape(128, 4).T.ravel()
    assert out[21:].ravel().tolist() == [*striped[:300].tolist(), *[-1] * 212]


def test_reusing_the_storage_without_a_barrier_shows() -> None:
    text = """#include <cub/block/block_scan.cuh>
__global__ void k(const int* x, int* out) {
  using Scan = cub::BlockScan<int, 128>; __shared__ Scan::TempStorage s; int a, b;
  Scan(s).InclusiveSum(x[threadIdx.x], a);
  Scan(s).InclusiveSum(2 * x[threadIdx.x], b);
  out[threadIdx.x] = a + b;
}
"""
    x = np.arange(128, dtype=np.int32)
    out = run(text, {"x": x, "out": np.zeros(128, np.int32)}, block=128)["out"]
    assert out.tolist() != (3 * np.cumsum(x)).tolist()


MATRIX = """#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
__global__ void k(const half* a, const half* b, const __nv_bfloat16* p, const __nv_bfloat16* q, const signed char* i, const signed char* j,
                  const float* f, const float* g, const double* d, const double* e, float* c, half* h, float* o, int* n, float* t, double* w) {
  { wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A; wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> B;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> C; wmma::fill_fragment(C, 0.0f);
    for (int k = 0; k < 32; k += 16) { wmma::load_matrix_sync(A, a + k, 32); wmma::load_matrix_sync(B, b + k, 32); wmma::mma_sync(C, A, B, C); }
    for (int x = 0; x < C.num_elements; ++x) C.x[x] = 2.0f * C.x[x] + 1.0f;
    wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> A; wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> B;
    wmma::fragment<wmma::accumulator, 32, 8, 16, half> C; wmma::load_matrix_sync(C, h, 32, wmma::mem_col_major);
    wmma::load_matrix_sync(A, a, 32); wmma::load_matrix_sync(B, b, 8); for (int x = 0; x < A.num_elements; ++x) A.x[x] = A.x[x] * __float2half(2.0f);
    wmma::mma_sync(C, A, B, C); wmma::store_matrix_sync(h, C, 32, wmma::mem_col_major); }
  { wmma::fragment<wmma::matrix_a, 8, 32, 16, __nv_bfloat16, wmma::row_major> A; wmma::fragment<wmma::matrix_b, 8, 32, 16, __nv_bfloat16, wmma::row_major> B;
    wmma::fragment<wmma::accumulator, 8, 32, 16, float> C; wmma::fill_fragment(C, 0.5f); wmma::load_matrix_sync(A, p, 16); wmma::load_matrix_sync(B, q, 32);
    wmma::mma_sync(C, A, B, C); wmma::store_matrix_sync(o, C, 32, wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> A; wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> B;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> C; wmma::fill_fragment(C, 2147483000); wmma::load_matrix_sync(A, i, 16); wmma::load_matrix_sync(B, j, 16);
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> D; wmma::mma_sync(D, A, B, C, true); wmma::store_matrix_sync(n, D, 16, wmma::mem_row_major);
    wmma::mma_sync(D, A, B, C); wmma::store_matrix_sync(n + 256, D, 16, wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> A; wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> B;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> C; wmma::fill_fragment(C, 0.0f); wmma::load_matrix_sync(A, f, 8); wmma::load_matrix_sync(B, g, 8);
    for (int x = 0; x < A.num_elements; ++x) A.x[x] = wmma::__float_to_tf32(A.x[x]);
    wmma::mma_sync(C, A, B, C); wmma::store_matrix_sync(t, C, 16, wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> A; wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> B;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> C; wmma::fill_fragment(C, 0.0); wmma::load_matrix_sync(A, d, 4); wmma::load_matrix_sync(B, e, 4);
    wmma::mma_sync(C, A, B, C); wmma::store_matrix_sync(w, C, 8, wmma::mem_row_major); }
}
"""


def test_warp_matrix_multiplication() -> None:
    rng = np.random.default_rng(4)
    # Small whole numbers: every sum is exact in every type.
    a, b = (rng.integers(-4, 5, 512).astype(np.float16) for _ in range(2))
    p, q = (rng.integers(-4, 5, n).astype(ml_dtypes.bfloat16) for n in (128, 512))
    i, j = (rng.integers(-128, 128, 256).astype(np.int8) for _ in range(2))
    f, g = (rng.normal(size=128).astype(np.float32) for _ in range(2))
    d, e = rng.normal(size=32), rng.normal(size=32)
    h = rng.integers(-4, 5, 256).astype(np.float16)
    made = {
        "c": np.zeros(256, np.float32),
        "h": h,
        "o": np.zeros(256, np.float32),
        "n": np.zeros(512, np.int32),
        "t": np.zeros(256, np.float32),
        "w": np.zeros(64),
    }
    after = run(MATRIX, {"a": a, "b": b, "p": p, "q": q, "i": i, "j": j, "f": f, "g": g, "d": d, "e": e, **made})
    wide = lambda v, *shape: v.astype(np.float64).reshape(shape)  # noqa: E731
    assert np.array_equal(after["c"].reshape(16, 16), 2 * wide(a, 16, 32) @ wide(b, 16, 32).T + 1)
    # A is 32 x 16 by columns, doubled; B 16 x 8 by rows; C and the result 32 x 8 by columns.
    product = 2 * wide(a, 16, 32).T @ wide(b[:128], 16, 8) + wide(h, 8, 32).T
    assert np.array_equal(after["h"].reshape(8, 32).T, product)
    assert np.array_equal(after["o"].reshape(8, 32), wide(p, 8, 16) @ wide(q, 16, 32) + 0.5)
    whole = i.astype(np.int64).reshape(16, 16) @ j.astype(np.int64).reshape(16, 16).T + 2147483000
    assert np.array_equal(after["n"][:256].reshape(16, 16), np.clip(whole, -(2**31), 2**31 - 1))
    assert np.array_equal(after["n"][256:].reshape(16, 16), whole.astype(np.int32))
    bits = lambda v, add: ((v.view(np.uint32) + np.uint32(add)) & np.uint32(0xFFFFE000)).view(np.float32)  # noqa: E731
    tf32 = wide(bits(f, 0x1000), 16, 8) @ wide(bits(g, 0), 16, 8).T  # A rounded, B cut off
    assert np.allclose(after["t"].reshape(16, 16), tf32, rtol=1e-6, atol=1e-6)
    assert np.allclose(after["w"].reshape(8, 8), d.reshape(8, 4) @ e.reshape(8, 4).T, rtol=1e-14, atol=1e-14)


def test_misused_matrices() -> None:
    head = (
        "#include <mma.h>\nusing namespace nvcuda;\n__global__ void k(const half* a, float* c) {\n"
        "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A;\n"
    )
    buffers = {"a": np.ones(512, np.float16), "c": np.zeros(256, np.float32)}
    part = outcome(head + "  if (threadIdx.x < 16)\n    wmma::load_matrix_sync(A, a, 16);\n  c[0] = 1;\n}\n", buffers)
    # The other lanes have exited, which a full mask allows; but lanes that never come while they live do not.
    waits = outcome(
        head + "  if (threadIdx.x < 16)\n    wmma::load_matrix_sync(A, a, 16);\n  __syncthreads();\n}\n", buffers
    )
    assert not isinstance(part, LaunchFailed)
    assert isinstance(waits, BarrierDivergence), waits
    crooked = outcome(head + "  wmma::load_matrix_sync(A, a + 1, 16);\n}\n", buffers)
    assert isinstance(crooked, LaunchFailed) and "aligned to 16 bytes" in crooked.message
    assert crooked.location is not None and crooked.location.range.start.line == 4

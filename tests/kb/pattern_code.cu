// Kernels around the code of the pages in kb/patterns: a line of "// page: NAME" stands for that page's code.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

// /// kernel-forge
// kernel = "vectorised"
// reference = "x * s"
// cases = [{ n = 1003 }]
// args = { x = { shape = ["n"] }, y = { shape = ["n"], role = "out" }, s = 1.5 }
// launch = { grid = 2, block = 64 }
// ///
__global__ void vectorised(const float* x, float* y, float s, int n) {
// page: vectorised-access
}

// /// kernel-forge
// kernel = "tiled"
// reference = "A @ B"
// cases = [{ M = 37, N = 20, K = 50 }]
// launch = { grid = ["max(1, cdiv(N, 8))", "max(1, cdiv(M, 8))"], block = [8, 8] }
// [args]
// A = { shape = ["M", "K"] }
// B = { shape = ["K", "N"] }
// C = { shape = ["M", "N"], role = "out" }
// ///
#define TILE 8
__global__ void tiled(const float* A, const float* B, float* C, int M, int N, int K) {
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
// page: shared-memory-tiling
  if (row < M && col < N) C[row * N + col] = sum;
}

// page: warp-shuffle-reduction

// /// kernel-forge
// kernel = "block_sums"
// reference = "x.sum(axis=1)"
// cases = [{ rows = 3, columns = 300 }]
// args = { x = { shape = ["rows", "columns"] }, y = { shape = ["rows"], role = "out" } }
// launch = { grid = "max(1, rows)", block = 96 }
// ///
__global__ void block_sums(const float* x, float* y, int rows, int columns) {
  float sum = 0.0f;
  if (blockIdx.x < rows)
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += x[blockIdx.x * columns + c];
  sum = block_sum(sum);
  if (threadIdx.x == 0 && blockIdx.x < rows) y[blockIdx.x] = sum;
}

// /// kernel-forge
// kernel = "unrolled"
// reference = { y = "np.array([x.sum()])" }
// cases = [{ n = 1003 }]
// args = { x = { shape = ["n"] }, y = { shape = [1], role = "out" } }
// launch = { grid = 1, block = 32 }
// ///
#define UNROLL 4
__global__ void unrolled(const float* x, float* y, int n) {
  int first = threadIdx.x, stride = 32;
// page: loop-unrolling
  float sum = warp_sum(s[0] + s[1] + s[2] + s[3]);
  if (threadIdx.x == 0) y[0] = sum;
}

// /// kernel-forge
// kernel = "last_block"
// reference = { y = "np.array([x.sum()])", count = "np.zeros_like(count)" }
// cases = [{ n = 1003 }]
// launch = { grid = 4, block = 64 }
// [args]
// x = { shape = ["n"] }
// partial = { shape = [4], role = "scratch" }
// count = { shape = [1], role = "inout", init = { kind = "constant", value = 0 } }
// y = { shape = [1], role = "out" }
// ///
__global__ void last_block(const float* x, float* partial, unsigned* count, float* y, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = block_sum(sum);
// page: last-block-finishes
  if (is_last && threadIdx.x == 0) {
    const volatile float* all = partial;
    float total = 0.0f;
    for (int b = 0; b < gridDim.x; ++b) total += all[b];
    y[0] = total;
    *count = 0;
  }
}

// page: online-softmax

// /// kernel-forge
// kernel = "softmax_rows"
// reference = "np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)"
// cases = [{ rows = 3, columns = 70 }]
// where = ["columns > 0"]
// args = { x = { shape = ["rows", "columns"] }, y = { shape = ["rows", "columns"], role = "out" } }
// launch = { grid = "max(1, rows)", block = 32 }
// ///
__global__ void softmax_rows(const float* x, float* y, int rows, int columns) {
  if (blockIdx.x >= rows) return;
  const float* row = x + blockIdx.x * columns;
  float m = -INFINITY, s = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 32) join(m, s, row[c], 1.0f);
  for (int d = 16; d > 0; d /= 2) {
    float m2 = __shfl_xor_sync(0xffffffffu, m, d), s2 = __shfl_xor_sync(0xffffffffu, s, d);
    join(m, s, m2, s2);
  }
  for (int c = threadIdx.x; c < columns; c += 32) y[blockIdx.x * columns + c] = expf(row[c] - m) / s;
}

// page: welford-moments

// /// kernel-forge
// kernel = "variances"
// reference = "x.var(axis=1)"
// cases = [{ rows = 3, columns = 70 }]
// where = ["columns > 0"]
// args = { x = { shape = ["rows", "columns"] }, y = { shape = ["rows"], role = "out" } }
// launch = { grid = "max(1, rows)", block = 32 }
// ///
__global__ void variances(const float* x, float* y, int rows, int columns) {
  if (blockIdx.x >= rows) return;
  Moments own = {0.0f, 0.0f, 0.0f};
  for (int c = threadIdx.x; c < columns; c += 32) {
    float v = x[blockIdx.x * columns + c];
    own.count += 1.0f;
    float d = v - own.mean;
    own.mean += d / own.count;
    own.m2 += d * (v - own.mean);
  }
  for (int d = 16; d > 0; d /= 2) {
    Moments other = {__shfl_xor_sync(0xffffffffu, own.count, d), __shfl_xor_sync(0xffffffffu, own.mean, d),
                     __shfl_xor_sync(0xffffffffu, own.m2, d)};
    own = join(own, other);
  }
  if (threadIdx.x == 0) y[blockIdx.x] = own.m2 / own.count;
}

// /// kernel-forge
// kernel = "histogram"
// reference = { out = "out + np.bincount(x, minlength=bins)" }
// cases = [{ n = 1000, bins = 10 }]
// where = ["bins > 0"]
// launch = { grid = 3, block = 64, shared = "4 * bins" }
// [args]
// x = { shape = ["n"], init = { kind = "integers", low = 0, high = "bins" } }
// out = { shape = ["bins"], role = "inout", init = { kind = "constant", value = 0 } }
// ///
__global__ void histogram(const int* x, unsigned* out, int n, int bins) {
// page: privatised-histogram
}

// page: block-scan

// /// kernel-forge
// kernel = "scan_rows"
// reference = "np.cumsum(x, axis=1)"
// cases = [{ rows = 3 }]
// args = { x = { shape = ["rows", 32] }, y = { shape = ["rows", 32], role = "out" } }
// launch = { grid = "max(1, rows)", block = 32 }
// ///
__global__ void scan_rows(const float* x, float* y, int rows) {
  if (blockIdx.x < rows) y[blockIdx.x * 32 + threadIdx.x] = warp_scan(x[blockIdx.x * 32 + threadIdx.x]);
}

// /// kernel-forge
// kernel = "box_sum"
// reference = { y = "sum(np.pad(in_, 2)[j:j+height, i:i+width] for j in range(5) for i in range(5))" }
// cases = [{ height = 20, width = 17 }]
// launch = { grid = ["max(1, cdiv(width, 16))", "max(1, cdiv(height, 8))"], block = [16, 8] }
// [args]
// in = { shape = ["height", "width"] }
// y = { shape = ["height", "width"], role = "out" }
// ///
#define TX 16
#define TY 8
#define R 2
__global__ void box_sum(const float* in, float* y, int height, int width) {
  int x0 = blockIdx.x * TX, y0 = blockIdx.y * TY;
// page: stencil-halo-tiles
  int gx = x0 + threadIdx.x, gy = y0 + threadIdx.y;
  if (gx >= width || gy >= height) return;
  float sum = 0.0f;
  for (int j = 0; j < 5; ++j)
    for (int i = 0; i < 5; ++i) sum += tile[threadIdx.y + j][threadIdx.x + i];
  y[gy * width + gx] = sum;
}

// /// kernel-forge
// kernel = "turned"
// reference = "in_.T"
// cases = [{ rows = 70, columns = 33 }]
// launch = { grid = ["max(1, cdiv(columns, 32))", "max(1, cdiv(rows, 32))"], block = [32, 8] }
// args = { in = { shape = ["rows", "columns"] }, out = { shape = ["columns", "rows"], role = "out" } }
// ///
#define ROWS 8
__global__ void turned(const float* in, float* out, int rows, int columns) {
// page: transpose-tile
}

// /// kernel-forge
// kernel = "gemv"
// reference = { y = "A @ x" }
// cases = [{ rows = 9, columns = 70 }]
// launch = { grid = "max(1, cdiv(rows, 4))", block = 128 }
// args = { A = { shape = ["rows", "columns"] }, x = { shape = ["columns"] }, y = { shape = ["rows"], role = "out" } }
// ///
__global__ void gemv(const float* A, const float* x, float* y, int rows, int columns) {
// page: gemv-row-per-warp
}

// /// kernel-forge
// kernel = "swizzled"
// reference = { seen = "np.ones_like(seen)" }
// cases = [{ tiles_m = 7, tiles_n = 5 }]
// where = ["tiles_m > 0 and tiles_n > 0"]
// launch = { grid = "tiles_m * tiles_n", block = 1 }
// args = { seen = { shape = ["tiles_m", "tiles_n"], role = "inout", init = { kind = "constant", value = 0 } } }
// ///
#define GROUP 4
__global__ void swizzled(int* seen, int tiles_m, int tiles_n) {
// page: block-swizzle
  atomicAdd(&seen[tile_m * tiles_n + tile_n], 1);
}

// /// kernel-forge
// kernel = "doubled"
// reference = { y = "2 * x" }
// cases = [{ n = 1002 }]
// where = ["n % 2 == 0"]
// launch = { grid = "max(1, cdiv(n, 128))", block = 64 }
// args = { x = { shape = ["n"] }, y = { shape = ["n"], role = "out" } }
// ///
__device__ float f(float v) { return 2.0f * v; }
__global__ void doubled(const half* x, half* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i >= n) return;
// page: packed-half
}

// /// kernel-forge
// kernel = "piped"
// reference = { y = "x.reshape(tiles, 64).sum(axis=0)" }
// cases = [{ tiles = 7 }]
// launch = { grid = 1, block = 64 }
// args = { x = { shape = ["64 * tiles"] }, y = { shape = [64], role = "out" } }
// ///
#define STAGES 3
#define SIZE 64
__global__ void piped(const float* x, float* y, int tiles) {
  float sum = 0.0f;
  auto load = [&](float* to, int t) {
    if (t < tiles) __pipeline_memcpy_async(to + threadIdx.x, x + t * SIZE + threadIdx.x, 4);
  };
  auto compute = [&](const float* from) { sum += from[(threadIdx.x + 1) % SIZE]; };
// page: asynchronous-copy
  y[(threadIdx.x + 1) % SIZE] = sum;
}

// /// kernel-forge
// kernel = "fragments"
// reference = { C = "A @ B" }
// cases = [{}]
// launch = { grid = 1, block = 32 }
// args = { A = { shape = [16, 32] }, B = { shape = [32, 16] }, C = { shape = [16, 16], role = "out" } }
// ///
#define BK 32
#define LDA 32
#define LDB 16
__global__ void fragments(const half* A, const half* B, float* C) {
  using namespace nvcuda;
  __shared__ __align__(32) half tile_a[16][LDA], tile_b[BK][LDB];
  for (int i = threadIdx.x; i < 16 * BK; i += 32) tile_a[i / BK][i % BK] = A[i], tile_b[i / 16][i % 16] = B[i];
  __syncwarp();
  const int row = 0, column = 0;
// page: tensor-cores-wmma
  wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}

// /// kernel-forge
// kernel = "kept"
// reference = { count = "np.array([(x > 0).sum()])", out = "np.where(np.arange(n) < (x > 0).sum(), 1, 0)" }
// cases = [{ n = 300 }]
// launch = { grid = "max(1, cdiv(n, 64))", block = 64 }
// [args]
// x = { shape = ["n"] }
// count = { shape = [1], role = "inout", init = { kind = "constant", value = 0 } }
// out = { shape = ["n"], role = "inout", init = { kind = "constant", value = 0 } }
// ///
__global__ void kept(const float* x, int* count, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keep = i < n && x[i] > 0.0f;
  int value = 1;
// page: warp-aggregated-atomics
}

// /// kernel-forge
// kernel = "register_tile"
// reference = { C = "A @ B" }
// cases = [{}]
// launch = { grid = 1, block = [8, 4] }
// args = { A = { shape = [8, 5] }, B = { shape = [5, 24] }, C = { shape = [8, 24], role = "out" } }
// ///
#define TM 2
#define TN 3
#define THREADS_X 8
#define DEPTH 5
__global__ void register_tile(const float* A, const float* B, float* C) {
  __shared__ float tile_a[DEPTH][8], tile_b[DEPTH][24];
  int tx = threadIdx.x, ty = threadIdx.y, t = ty * THREADS_X + tx;
  for (int i = t; i < 8 * DEPTH; i += 32) tile_a[i % DEPTH][i / DEPTH] = A[i];
  for (int i = t; i < DEPTH * 24; i += 32) tile_b[i / 24][i % 24] = B[i];
  __syncthreads();
#undef BK
#define BK DEPTH
// page: register-tiling
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) C[(ty * TM + i) * 24 + tx + j * THREADS_X] = acc[i][j];
}

// /// kernel-forge
// kernel = "strided"
// reference = "2 * x"
// cases = [{ n = 1003 }]
// args = { x = { shape = ["n"] }, y = { shape = ["n"], role = "out" } }
// launch = { grid = 3, block = 64 }
// ///
__global__ void strided(const float* x, float* y, int n) {
// page: grid-stride-loop
}

// /// kernel-forge
// kernel = "copied"
// reference = "x"
// cases = [{ rows = 9, columns = 70 }]
// args = { x = { shape = ["rows", "columns"] }, y = { shape = ["rows", "columns"], role = "out" } }
// launch = { grid = ["max(1, cdiv(columns, 32))", "max(1, cdiv(rows, 4))"], block = [32, 4] }
// ///
__global__ void copied(const float* x, float* y, int rows, int columns) {
// page: coalesced-access
}

// /// kernel-forge
// kernel = "kahan"
// reference = { out = "v.sum(axis=1)" }
// cases = [{ rows = 9, columns = 70 }]
// args = { v = { shape = ["rows", "columns"] }, out = { shape = ["rows"], role = "out" } }
// launch = { grid = "max(1, cdiv(rows, 32))", block = 32 }
// ///
__global__ void kahan(const float* v, float* out, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0.0f, lost = 0.0f;
  for (int c = 0; c < columns; ++c) {
    float x = v[r * columns + c];
// page: compensated-sums
  }
  out[r] = sum;
}

// /// kernel-forge
// kernel = "kept_in_registers"
// reference = "x / x.sum(axis=1, keepdims=True)"
// cases = [{ rows = 3, columns = 100 }]
// where = ["columns > 0 and columns <= 128"]
// launch = { grid = "max(1, rows)", block = 32 }
// [args]
// x = { shape = ["rows", "columns"], init = "uniform" }
// y = { shape = ["rows", "columns"], role = "out" }
// ///
#define BLOCK 32
#define ITEMS 4
__global__ void kept_in_registers(const float* x, float* y, int rows, int columns) {
  if (blockIdx.x >= rows) return;
  const float* row = x + blockIdx.x * columns;
// page: row-on-chip
  float sum = warp_sum(v[0] + v[1] + v[2] + v[3]);
  for (int i = 0; i < ITEMS; ++i) {
    int c = threadIdx.x + i * BLOCK;
    if (c < columns) y[blockIdx.x * columns + c] = v[i] / sum;
  }
}

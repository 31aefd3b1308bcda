"""Kernels in ordinary styles: what their drafts must say, and those whose intent no draft may claim to know."""

READ: dict[str, tuple[str, str]] = {
    "rowmax thread": (
        """\
__global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float best = -INFINITY;
  for (int c = 0; c < cols; ++c) best = fmaxf(best, x[row * cols + c]);
  y[row] = best;
}
""",
        "np.max(x, axis=1)",
    ),
    "rowmax block shared": (
        """\
#include <cfloat>
#ifndef BLOCK
#define BLOCK 256
#endif
__global__ void k(const float* in, float* out, int M, int N) {
  __shared__ float s[BLOCK];
  const int row = blockIdx.x, tid = threadIdx.x;
  float m = -FLT_MAX;
  for (int j = tid; j < N; j += blockDim.x) m = fmaxf(m, in[row * N + j]);
  s[tid] = m;
  __syncthreads();
  for (int off = BLOCK / 2; off > 0; off >>= 1) {
    if (tid < off) s[tid] = fmaxf(s[tid], s[tid + off]);
    __syncthreads();
  }
  if (tid == 0) out[row] = s[0];
}
""",
        "np.max(in_, axis=1)",
    ),
    "rowmax warp shuffle": (
        """\
__device__ float warpReduceMax(float v) { for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o)); return v; }
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x;
  const float* in = x + (size_t)row * cols;
  float v = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 32) v = fmaxf(v, in[c]);
  v = warpReduceMax(v);
  if (threadIdx.x == 0) y[row] = v;
}
void run(const float* x, float* y, int rows, int cols) { k<<<rows, 32>>>(x, y, rows, cols); }
""",
        "np.max(x, axis=1)",
    ),
    "rowmin thread grid stride": (
        """\
extern "C" __global__ void k(const float* x, float* y, size_t rows, size_t cols) {
  for (size_t r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
    float best = x[r * cols];
    for (size_t c = 1; c < cols; c++) best = fminf(best, x[r * cols + c]);
    y[r] = best;
  }
}
""",
        "np.min(x, axis=1)",
    ),
    "row mean": (
        """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) { float sum = 0.0f; for (int c = 0; c < cols; c++) { sum += x[row * cols + c]; } y[row] = sum / cols; }
}
""",
        "np.mean(x, axis=1)",
    ),
    "row norm": (
        """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float acc = 0.f;
  for (int c = 0; c < cols; c++) { float v = x[row * cols + c]; acc += v * v; }
  y[row] = sqrtf(acc);
}
""",
        "np.sqrt(np.sum(x * x, axis=1))",
    ),
    "row sum template": (
        """\
template <int BLOCK, typename T>
__global__ void k(const T* __restrict__ x, T* __restrict__ y, int rows, int cols) {
  __shared__ T s[BLOCK];
  int row = blockIdx.x;
  T sum = 0;
  for (int c = threadIdx.x; c < cols; c += BLOCK) sum += x[row * cols + c];
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int o = BLOCK / 2; o > 0; o /= 2) { if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }
  if (threadIdx.x == 0) y[row] = s[0];
}
void run(const float* x, float* y, int rows, int cols) { k<128, float><<<rows, 128>>>(x, y, rows, cols); }
""",
        "np.sum(x, axis=1)",
    ),
    "matvec": (
        """\
__global__ void k(const float* A, const float* v, float* y, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) { float s = 0; for (int j = 0; j < N; ++j) s += A[i * N + j] * v[j]; y[i] = s; }
}
""",
        "A @ v",
    ),
    "matmul naive": (
        """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) sum += A[row * K + i] * B[i * N + col];
    C[row * N + col] = sum;
  }
}
""",
        "A @ B",
    ),
    "matmul naive x rows": (
        """\
__global__ void k(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint x = blockIdx.x * blockDim.x + threadIdx.x;
  const uint y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < M && y < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) { tmp += A[x * K + i] * B[i * N + y]; }
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
  }
}
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
void run(int M, int N, int K, float alpha, float* A, float* B, float beta, float* C) {
  dim3 gridDim(CEIL_DIV(M, 32), CEIL_DIV(N, 32));
  dim3 blockDim(32, 32);
  k<<<gridDim, blockDim>>>(M, N, K, alpha, A, B, beta, C);
}
""",
        "alpha * (A @ B) + beta * C",
    ),
    "matmul tiled": (
        """\
#define TILE 16
__global__ void k(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int M, int N, int K) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float acc = 0.f;
  for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
    int ac = t * TILE + threadIdx.x, br = t * TILE + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < M && ac < K ? a[row * K + ac] : 0.f;
    bs[threadIdx.y][threadIdx.x] = br < K && col < N ? b[br * N + col] : 0.f;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < TILE; ++i) acc += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) c[row * N + col] = acc;
}
""",
        "a @ b",
    ),
    "matmul A^T": (
        """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M || j >= N) return;
  float sum = 0;
  for (int l = 0; l < K; ++l) sum += A[l * M + i] * B[l * N + j];
  C[i * N + j] = sum;
}
""",
        "A.T @ B",
    ),
    "matmul B^T": (
        """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= M * N) return;
  int i = idx / N, j = idx % N;
  float sum = 0;
  for (int l = 0; l < K; ++l) sum = fmaf(A[i * K + l], B[j * K + l], sum);
  C[idx] = sum;
}
""",
        "A @ B.T",
    ),
    "matmul square": (
        """\
__global__ void k(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N && j < N) { float s = 0; for (int kk = 0; kk < N; ++kk) s += A[i*N+kk] * B[kk*N+j]; C[i*N+j] = s; }
}
""",
        "A @ B",
    ),
    "matmul double size_t": (
        """\
__global__ void k(const double* A, const double* B, double* C, size_t m, size_t n, size_t k_dim) {
  size_t r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < m && c < n) { double s = 0; for (size_t p = 0; p < k_dim; p++) s += A[r * k_dim + p] * B[p * n + c]; C[r * n + c] = s; }
}
""",
        "A @ B",
    ),
    "transpose naive": (
        """\
__global__ void k(const float* in, float* out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) out[c * rows + r] = in[r * cols + c];
}
""",
        "in_.T",
    ),
    "transpose tiled": (
        """\
constexpr int TILE = 32;
__global__ void k(const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
""",
        "in_.T",
    ),
    "transpose tiled new names": (
        """\
constexpr int TILE = 32;
__global__ void k(const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  int tx = blockIdx.y * TILE + threadIdx.x;
  int ty = blockIdx.x * TILE + threadIdx.y;
  if (tx < height && ty < width) out[ty * height + tx] = tile[threadIdx.x][threadIdx.y];
}
""",
        "in_.T",
    ),
    "softmax thread per row": (
        """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float* out = y + row * cols;
  float m = -INFINITY;
  for (int i = 0; i < cols; ++i) m = fmaxf(m, in[i]);
  float sum = 0.f;
  for (int i = 0; i < cols; ++i) { out[i] = expf(in[i] - m); sum += out[i]; }
  for (int i = 0; i < cols; ++i) out[i] /= sum;
}
""",
        "np.exp(x - np.max(x, axis=1, keepdims=True)) / np.sum(np.exp(x - np.max(x, axis=1, keepdims=True)), axis=1, keepdims=True)",
    ),
    "softmax block": (
        """\
#define BLOCK 128
__global__ void k(const float* __restrict__ input, float* __restrict__ output, int N, int C) {
  __shared__ float s[BLOCK];
  int row = blockIdx.x, tid = threadIdx.x;
  float mx = -INFINITY;
  for (int i = tid; i < C; i += BLOCK) mx = fmaxf(mx, input[row * C + i]);
  s[tid] = mx; __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) { if (tid < o) s[tid] = fmaxf(s[tid], s[tid + o]); __syncthreads(); }
  mx = s[0]; __syncthreads();
  float sum = 0.f;
  for (int i = tid; i < C; i += BLOCK) sum += expf(input[row * C + i] - mx);
  s[tid] = sum; __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) { if (tid < o) s[tid] += s[tid + o]; __syncthreads(); }
  float inv = 1.0f / s[0];
  for (int i = tid; i < C; i += BLOCK) output[row * C + i] = expf(input[row * C + i] - mx) * inv;
}
""",
        "np.exp(input - np.max(input, axis=1, keepdims=True)) / np.sum(np.exp(input - np.max(input, axis=1, keepdims=True)), axis=1, keepdims=True)",
    ),
    "histogram global": (
        """\
__global__ void k(const int* data, unsigned int* bins, int n, int num_bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}
""",
        "bins + np.bincount(data, minlength=num_bins)",
    ),
    "histogram shared bytes": (
        """\
__global__ void k(const unsigned char* data, unsigned int* hist, size_t n) {
  __shared__ unsigned int local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&hist[i], local[i]);
}
""",
        "hist + np.bincount(data, minlength=256)",
    ),
    "histogram bytes": (
        """\
__global__ void k(const uint8_t* data, int* hist, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&hist[data[i]], 1);
}
""",
        "hist + np.bincount(data, minlength=256)",
    ),
    "atomic sum direct": (
        """\
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, x[i]);
}
""",
        "out + np.sum(x)",
    ),
    "atomic sum block": (
        """\
#ifndef BLOCK
#define BLOCK 256
#endif
__global__ void k(const float* x, float* sum, int n) {
  __shared__ float s[BLOCK];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) { if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }
  if (threadIdx.x == 0) atomicAdd(sum, s[0]);
}
""",
        "sum + np.sum(x)",
    ),
    "atomic sum grid stride warp": (
        """\
__global__ void k(const float* x, float* out, int n) {
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
}
""",
        "out + np.sum(x)",
    ),
    "scan hillis steele": (
        """\
__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = t < n ? x[t] : 0.f;
  __syncthreads();
  for (int off = 1; off < 256; off <<= 1) {
    float v = 0.f;
    if (t >= off) v = s[t - off];
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  if (t < n) y[t] = s[t];
}
""",
        "np.cumsum(x)",
    ),
    "scan serial": (
        """\
__global__ void k(const int* x, int* y, int n) {
  if (threadIdx.x == 0 && blockIdx.x == 0) { int acc = 0; for (int i = 0; i < n; ++i) { acc += x[i]; y[i] = acc; } }
}
""",
        "np.cumsum(x)",
    ),
    "stencil 1d": (
        """\
__global__ void k(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) out[i] = 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1];
}
""",
        "np.concatenate([out[:1], 0.25 * in_[:-2] + 0.5 * in_[1:-1] + 0.25 * in_[2:], out[-1:]])",
    ),
    "stencil 2d": (
        """\
__global__ void k(const float* in, float* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= 1 && x < width - 1 && y >= 1 && y < height - 1)
    out[y * width + x] = 0.25f * (in[(y - 1) * width + x] + in[(y + 1) * width + x] + in[y * width + x - 1] + in[y * width + x + 1]);
}
""",
        "np.where(np.pad(np.ones((height - 2, width - 2)), ((1, 1), (1, 1))) > 0, np.pad(0.25 * (in_[:-2, 1:-1] + in_[2:, 1:-1] + in_[1:-1, :-2] + in_[1:-1, 2:]), ((1, 1), (1, 1))), out)",
    ),
    "saxpy launch": (
        """\
__global__ void k(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
int main() { int N = 1 << 20; float *x, *y; int threads = 256; int blocks = (N + threads - 1) / threads; k<<<blocks, threads>>>(N, 2.0f, x, y); }
""",
        "a * x + y",
    ),
    "vector add template T": (
        """\
template <typename T>
__global__ void k(const T* a, const T* b, T* c, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
""",
        "a + b",
    ),
}
GAPS: dict[str, str] = {
    "log softmax": """\
#define BLOCK 128
__global__ void k(const float* __restrict__ input, float* __restrict__ output, int N, int C) {
  __shared__ float s[BLOCK];
  int row = blockIdx.x, tid = threadIdx.x;
  float mx = -INFINITY;
  for (int i = tid; i < C; i += BLOCK) mx = fmaxf(mx, input[row * C + i]);
  s[tid] = mx; __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) { if (tid < o) s[tid] = fmaxf(s[tid], s[tid + o]); __syncthreads(); }
  mx = s[0]; __syncthreads();
  float sum = 0.f;
  for (int i = tid; i < C; i += BLOCK) sum += expf(input[row * C + i] - mx);
  s[tid] = sum; __syncthreads();
  for (int o = BLOCK / 2; o > 0; o >>= 1) { if (tid < o) s[tid] += s[tid + o]; __syncthreads(); }
  float inv = 1.0f / s[0];
  for (int i = tid; i < C; i += BLOCK) output[row * C + i] = logf(expf(input[row * C + i] - mx) * inv);
}
""",
    "scaled softmax": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float* out = y + row * cols;
  float m = -INFINITY;
  for (int i = 0; i < cols; ++i) m = fmaxf(m, in[i]);
  float sum = 0.f;
  for (int i = 0; i < cols; ++i) { out[i] = expf(0.125f * (in[i] - m)); sum += out[i]; }
  for (int i = 0; i < cols; ++i) out[i] /= sum;
}
""",
    "atomic sum of squares": """\
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, x[i] * x[i]);
}
""",
    "stencil clamp": """\
__global__ void k(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float l = i > 0 ? in[i - 1] : 0.f, r = i < n - 1 ? in[i + 1] : 0.f;
  out[i] = 0.5f * (l + r);
}
""",
    "column sum": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x; if (c >= cols) return; float sum = 0.f;
  for (int r = 0; r < rows; ++r) sum += x[r * cols + c]; y[c] = sum;
}
""",
    "rowmax written out": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float best = x[row * cols];
  for (int c = 1; c < cols; ++c) if (x[row * cols + c] > best) best = x[row * cols + c];
  y[row] = best;
}
""",
    "row sum strided": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float s = 0.f; for (int c = 0; c < cols; c += 2) s += x[row * cols + c];
  y[row] = s;
}
""",
    "row partial": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float s = 0.f; for (int c = 0; c < cols; ++c) { if (x[row * cols + c] > 0.f) s += x[row * cols + c]; }
  y[row] = s;
}
""",
    "row max abs diff": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float s = -INFINITY; for (int c = 0; c < cols; ++c) { s = fmaxf(s, x[row * cols + c]); } s = fmaxf(s, 0.5f);
  y[row] = s;
}
""",
    "matmul relu": """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) sum += A[row * K + i] * B[i * N + col];
    C[row * N + col] = fmaxf(sum, 0.f);
  }
}
""",
    "matmul upper triangle": """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int i = row; i < K; ++i) sum += A[row * K + i] * B[i * N + col];
    C[row * N + col] = sum;
  }
}
""",
    "matmul minus": """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) if (i != row) sum += A[row * K + i] * B[i * N + col];
    C[row * N + col] = sum;
  }
}
""",
    "histogram modulo": """\
__global__ void k(const int* data, unsigned int* bins, int n, int num_bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i] % num_bins], 1u);
}
""",
    "batched rms": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float s = 0.f; for (int c = 0; c < cols; ++c) s += x[row*cols+c]*x[row*cols+c];
  float r = rsqrtf(s / cols + 1e-6f);
  for (int c = 0; c < cols; ++c) y[row*cols+c] = x[row*cols+c]*r;
}
""",
    "even rows only": """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
  float s = 0.f; for (int c = 0; c < cols; ++c) s += x[row*cols+c];
  if (row % 2 == 0) y[row] = s;
}
""",
}


# One small change each to a kernel that can be read: (kernel, changes).
NEAR_MISSES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "bias": (
        "matmul naive",
        (("const float* B,", "const float* B, const float* bias,"), ("= sum;", "= sum + bias[col];")),
    ),
    "init 1": ("matmul naive", (("0.0f", "1.0f"),)),
    "half K": ("matmul naive", (("i < K", "i < K / 2"),)),
    "start 1": ("matmul naive", (("int i = 0", "int i = 1"),)),
    "triangular store": ("matmul naive", (("row < M &&", "col <= row && row < M &&"),)),
    "scale const": ("matmul naive", (("= sum;", "= 2.0f * sum;"),)),
    "minus": ("matmul naive", (("+= A", "-= A"),)),
    "elementwise mat square": ("matmul naive", (("B[i * N + col]", "A[row * K + i]"),)),
    "two mats swapped idx": (
        "matmul naive",
        (("A[row * K + i]", "A[col * K + i]"), ("B[i * N + col]", "B[i * N + row]")),
    ),
    "softmax causal": ("softmax thread per row", (("i < cols", "i <= row"),)),
    "softmax no-norm": ("softmax thread per row", (("out[i] /= sum", "out[i] /= 2.0f"),)),
    "softmax times x": ("softmax thread per row", (("out[i] /= sum", "out[i] = out[i] / sum * in[i]"),)),
    "softmax sum plus eps": ("softmax thread per row", (("float sum = 0.f", "float sum = 1.f"),)),
    "softmax min": ("softmax thread per row", (("fmaxf", "fminf"),)),
    "softmax base2": ("softmax thread per row", (("expf", "exp2f"),)),
    "softmax inverted": ("softmax thread per row", (("out[i] /= sum", "out[i] = sum / out[i]"),)),
    "softmax partial store": ("softmax thread per row", (("out[i] /= sum", "if (i > 0) out[i] /= sum"),)),
    "softmax neg": ("softmax thread per row", (("expf(in[i] - m)", "expf(m - in[i])"),)),
    "softmax sq sum": ("softmax thread per row", (("sum += out[i]", "sum += out[i] * out[i]"),)),
    "max of 0": ("rowmax thread", (("-INFINITY", "0.f"),)),
    "max neg": ("rowmax thread", (("fmaxf(best, x[", "fmaxf(best, -x["),)),
    "max offset": ("rowmax thread", (("int c = 0", "int c = 3"),)),
    "max but last": ("rowmax thread", (("c < cols", "c < cols - 1"),)),
    "max other row": ("rowmax thread", (("y[row]", "y[rows - 1 - row]"),)),
    "max result neg": ("rowmax thread", (("= best;", "= -best;"),)),
    "max stored under cond": ("rowmax thread", (("y[row] = best", "if (best > 0) y[row] = best"),)),
    "mean of n-1": ("row mean", (("sum / cols", "sum / (cols - 1)"),)),
    "mean plus": ("row mean", (("sum / cols", "sum / cols + 1.f"),)),
    "sum minus": ("row mean", (("sum += x[row * cols + c]", "sum += x[row * cols + c] - 1.0f"),)),
    "sum twice": ("row mean", (("sum += x[row * cols + c];", "sum += x[row * cols + c]; sum += x[row * cols + c];"),)),
    "sum halves": ("row mean", (("y[row] = sum / cols", "sum *= 0.5f; y[row] = sum"),)),
    "sum shifted": ("row mean", (("x[row * cols + c]", "x[row * cols + c + 1]"),)),
    "transpose flip": ("transpose naive", (("in[r * cols + c]", "in[r * cols + cols - 1 - c]"),)),
    "transpose scaled": ("transpose naive", (("= in[r * cols + c]", "= 2 * in[r * cols + c]"),)),
    "transpose partly": ("transpose naive", (("r < rows &&", "r < c && r < rows &&"),)),
    "transpose tiled sign": ("transpose tiled new names", (("= tile[threadIdx.x]", "= -tile[threadIdx.x]"),)),
    "hist by 2": ("histogram global", (("1u", "2u"),)),
    "hist half": ("histogram global", (("data[i]]", "data[i] / 2]"),)),
    "hist filtered": ("histogram global", (("i < n", "i < n && data[i] > 3"),)),
    "hist odd": ("histogram global", (("i < n", "i < n && i % 2"),)),
    "sum half": ("atomic sum block", (("atomicAdd(sum, s[0])", "atomicAdd(sum, s[0] * 0.5f)"),)),
    "sum scaled load": ("atomic sum block", (("? x[i] :", "? 2 * x[i] :"),)),
    "sum other": ("atomic sum block", (("? x[i] : 0.f", "? x[i] : 1.f"),)),
    "sum mean": ("atomic sum block", (("atomicAdd(sum, s[0])", "atomicAdd(sum, s[0] / n)"),)),
    "sum abs": ("atomic sum block", (("? x[i] :", "? fabsf(x[i]) :"),)),
    "stencil reach": ("stencil 1d", (("in[i - 1]", "in[i - 2]"),)),
    "stencil one side": ("stencil 1d", (("i > 0 && ", ""),)),
    "stencil copy rim": ("stencil 1d", (("if (i > 0", "if (i == 0 || i == n - 1) out[i] = in[i]; else if (i > 0"),)),
    "stencil index": ("stencil 1d", (("0.5f * in[i]", "i * in[i]"),)),
    "scan exclusive": ("scan hillis steele", (("y[t] = s[t]", "y[t] = t > 0 ? s[t - 1] : 0.f"),)),
    "scan max": ("scan hillis steele", (("s[t] += v", "s[t] = fmaxf(s[t], v)"),)),
    "scan scaled": ("scan hillis steele", (("y[t] = s[t]", "y[t] = 2 * s[t]"),)),
    "scan serial exclusive": ("scan serial", (("acc += x[i]; y[i] = acc;", "y[i] = acc; acc += x[i];"),)),
}
GAPS |= {
    "ew stride 2": "__global__ void k(const float* x, float* y, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 2 * gridDim.x * blockDim.x) y[i] = x[i]; }",
    "ew i>=1": "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= 1 && i < n) y[i] = x[i]; }",
    "ew i<5": "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 5) y[i] = x[i]; }",
    "ew half": "__global__ void k(const float* x, float* y, int n, int m) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && i < m) y[i] = x[i]; }",
    "ew 2i": "__global__ void k(const float* x, float* y, int n) { int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x); if (i < n) y[i] = x[i]; }",
    "ew offset": "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x + 1; if (i < n) y[i] = x[i]; }",
    "ew ret <": "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 3) return; if (i >= n) return; y[i] = x[i]; }",
}

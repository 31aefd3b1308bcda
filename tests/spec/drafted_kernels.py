"""Correct kernels in many styles, with what a person fills into their drafts: (source, answers by the gap's key).

A kernel without answers has nothing to fill in. Each must verify once the gaps hold the answers.
"""

TREE = "for (int o = blockDim.x / 2; o > 0; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }"

KERNELS: dict[str, tuple[str, dict[str, str]]] = {
    "stencil nx ny, clamped, tiled": (
        """\
#define R 1
#define BX 32
#define BY 8
__global__ void k(const float* __restrict__ in, float* __restrict__ out, int nx, int ny) {
  __shared__ float s[BY + 2 * R][BX + 2 * R];
  int gx = blockIdx.x * BX + threadIdx.x, gy = blockIdx.y * BY + threadIdx.y;
  for (int j = threadIdx.y; j < BY + 2 * R; j += BY)
    for (int i = threadIdx.x; i < BX + 2 * R; i += BX) {
      int x = blockIdx.x * BX + i - R, y = blockIdx.y * BY + j - R;
      x = min(max(x, 0), nx - 1);
      y = min(max(y, 0), ny - 1);
      s[j][i] = in[y * nx + x];
    }
  __syncthreads();
  if (gx < nx && gy < ny) {
    int a = threadIdx.x + R, b = threadIdx.y + R;
    out[gy * nx + gx] = 0.2f * (s[b][a] + s[b - 1][a] + s[b + 1][a] + s[b][a - 1] + s[b][a + 1]);
  }
}
""",
        {
            "reference.out": "0.2 * (in_ + np.concatenate([in_[:1], in_[:-1]]) + np.concatenate([in_[1:], in_[-1:]])"
            " + np.concatenate([in_[:, :1], in_[:, :-1]], axis=1) + np.concatenate([in_[:, 1:], in_[:, -1:]], axis=1))"
        },
    ),
    "half2 pairs": (
        """\
#include <cuda_fp16.h>
__global__ void k(const __half2* x, __half2* y, int n2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n2) {
    float2 v = __half22float2(x[i]);
    v.x = 2.f * v.x;
    v.y = 2.f * v.y;
    y[i] = __float22half2_rn(v);
  }
}
""",
        {"reference.y": "2 * x"},
    ),
    "float4 parameters": (
        """\
__global__ void k(const float4* a, float4* b, int quads) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < quads) { float4 v = a[i]; b[i] = make_float4(v.x + 1.f, v.y + 1.f, v.z + 1.f, v.w + 1.f); }
}
""",
        {"reference.b": "a + 1"},
    ),
    "float4 cast": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i < n) {
    float4 v = *reinterpret_cast<const float4*>(&x[i]);
    v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2;
    *reinterpret_cast<float4*>(&y[i]) = v;
  }
}
""",
        {"reference.y": "2 * x"},
    ),
    "float4 alias": (
        """\
__global__ void k(const float* x, float* y, int n) {
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float4* y4 = reinterpret_cast<float4*>(y);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) { float4 v = x4[i]; v.x += 1; v.y += 1; v.z += 1; v.w += 1; y4[i] = v; }
}
""",
        {"reference.y": "x + 1"},
    ),
    "transpose h w, host constants": (
        """\
template <int TILE, int ROWS, typename T>
__global__ void k(T* __restrict__ dst, const T* __restrict__ src, int h, int w) {
  __shared__ T tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = src[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < h && y + j < w) dst[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
void run(float* d, const float* s, int h, int w, cudaStream_t st) {
  constexpr int TILE = 32;
  dim3 block(TILE, 8);
  dim3 grid((w + TILE - 1) / TILE, (h + TILE - 1) / TILE);
  k<TILE, 8, float><<<grid, block, 0, st>>>(d, s, h, w);
}
""",
        {"reference.dst": "src.T"},
    ),
    "transpose w h, no launch": (
        """\
#define TILE 16
__global__ void k(const float* a, float* b, int w, int h) {
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < w && y < h) b[x * h + y] = 2.f * a[y * w + x];
}
""",
        {"reference.b": "2 * a.T"},
    ),
    "layernorm bf16, warp per row in y": (
        """\
#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat16* x, const __nv_bfloat16* gamma, const __nv_bfloat16* beta, __nv_bfloat16* y,
                  int rows, int cols, float eps) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  int lane = threadIdx.x;
  float mean = 0.f, m2 = 0.f;
  for (int c = lane; c < cols; c += 32) mean += __bfloat162float(x[row * cols + c]);
  for (int o = 16; o; o /= 2) mean += __shfl_xor_sync(~0u, mean, o);
  mean /= cols;
  for (int c = lane; c < cols; c += 32) {
    float d = __bfloat162float(x[row * cols + c]) - mean;
    m2 += d * d;
  }
  for (int o = 16; o; o /= 2) m2 += __shfl_xor_sync(~0u, m2, o);
  float rstd = rsqrtf(m2 / cols + eps);
  for (int c = lane; c < cols; c += 32) {
    float v = (__bfloat162float(x[row * cols + c]) - mean) * rstd;
    y[row * cols + c] = __float2bfloat16(v * __bfloat162float(gamma[c]) + __bfloat162float(beta[c]));
  }
}
""",
        {
            "reference.y": "(x - np.mean(x, axis=1, keepdims=True)) / np.sqrt(np.var(x, axis=1, keepdims=True) + eps)"
            " * gamma + beta"
        },
    ),
    "rmsnorm, warp per row in x": (
        """\
__global__ void k(const float* inp, const float* weight, float* outp, int M, int N) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= M) return;
  float ss = 0.f;
  for (int j = lane; j < N; j += 32) { float v = inp[row * N + j]; ss += v * v; }
  for (int o = 16; o > 0; o >>= 1) ss += __shfl_xor_sync(0xffffffffu, ss, o);
  float inv = rsqrtf(ss / N + 1e-5f);
  for (int j = lane; j < N; j += 32) outp[row * N + j] = inp[row * N + j] * inv * weight[j];
}
""",
        {"reference.outp": "inp / np.sqrt(np.mean(inp * inp, axis=1, keepdims=True) + 1e-5) * weight"},
    ),
    "softmax, block per row, launch in main": (
        """\
__inline__ __device__ float warpMax(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}
__inline__ __device__ float warpSum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__global__ void k(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  __shared__ float red[32];
  int row = blockIdx.x;
  const float* x = in + (size_t)row * cols;
  float* y = out + (size_t)row * cols;
  int lane = threadIdx.x & 31, wid = threadIdx.x >> 5, nw = blockDim.x >> 5;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, x[c]);
  m = warpMax(m);
  if (lane == 0) red[wid] = m;
  __syncthreads();
  m = lane < nw ? red[lane] : -INFINITY;
  m = warpMax(m);
  __syncthreads();
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += expf(x[c] - m);
  s = warpSum(s);
  if (lane == 0) red[wid] = s;
  __syncthreads();
  s = lane < nw ? red[lane] : 0.f;
  s = warpSum(s);
  float inv = 1.f / s;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] = expf(x[c] - m) * inv;
}
int main() {
  int rows = 512, cols = 1000;
  float *a, *b;
  k<<<rows, 256>>>(a, b, rows, cols);
}
""",
        {
            "reference.out": "np.exp(in_ - np.max(in_, axis=1, keepdims=True, initial=-1e30))"
            " / np.sum(np.exp(in_ - np.max(in_, axis=1, keepdims=True, initial=-1e30)), axis=1, keepdims=True)"
        },
    ),
    "partial sums, host constants and dynamic shared memory": (
        f"""\
__global__ void k(const float* x, float* partial, int n) {{
  extern __shared__ float s[];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += x[i];
  s[t] = sum;
  __syncthreads();
  {TREE}
  if (t == 0) partial[blockIdx.x] = s[0];
}}
void sum(const float* x, float* partial, int n) {{
  const int blocks = 4, threads = 64;
  k<<<blocks, threads, threads * sizeof(float)>>>(x, partial, n);
}}
""",
        {"reference.partial": "np.sum(np.pad(x, (0, -n % 256)).reshape(-1, 4, 64), axis=(0, 2))"},
    ),
    "block sums, blocks from the size": (
        f"""\
__global__ void k(const float* x, float* partial, int n) {{
  extern __shared__ float s[];
  unsigned t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  {TREE.replace("int o", "unsigned o")}
  if (t == 0) partial[blockIdx.x] = s[0];
}}
void sum(const float* x, float* partial, int n) {{
  const int threads = 128;
  int blocks = (n + threads - 1) / threads;
  k<<<blocks, threads, threads * sizeof(float)>>>(x, partial, n);
}}
""",
        {"reference.partial": "np.sum(np.pad(x, (0, -n % 128)).reshape(-1, 128), axis=1)"},
    ),
    "sum to one place, one block": (
        """\
__global__ void k(const float* partial, float* result, int m) {
  float s = 0;
  for (int i = threadIdx.x; i < m; i += 32) s += partial[i];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
  if (threadIdx.x == 0) *result = s;
}
""",
        {"reference.result": "np.sum(partial).reshape(1)"},
    ),
    "histogram in shared memory": (
        """\
#define BINS 256
__global__ void k(const unsigned char* data, unsigned int* hist, int n) {
  __shared__ unsigned int h[BINS];
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) h[i] = 0;
  __syncthreads();
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&h[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < BINS; i += blockDim.x)
    if (h[i]) atomicAdd(&hist[i], h[i]);
}
""",
        {"reference.hist": "hist + np.bincount(data, minlength=256)"},
    ),
    "histogram of integers": (
        """\
__global__ void k(const int* keys, int* counts, int len) {
  __shared__ int local[64];
  if (threadIdx.x < 64) local[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < len) atomicAdd(&local[keys[i]], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(counts + threadIdx.x, local[threadIdx.x]);
}
""",
        {"reference.counts": "counts + np.bincount(keys, minlength=64)"},
    ),
    "matmul i j with a row pitch": (
        """\
__global__ void k(const float* A, const float* B, float* C, int M, int N, int K, int lda) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= N) return;
  float acc = 0.f;
  for (int p = 0; p < K; ++p) acc += A[i * lda + p] * B[p * N + j];
  C[i * N + j] = fmaxf(acc, 0.f);
}
""",
        {"reference.C": "np.maximum(A[:, :K] @ B, 0)"},
    ),
    "copy with pitches": (
        """\
__global__ void k(const float* src, float* dst, int width, int height, int src_ld, int dst_ld) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) dst[y * dst_ld + x] = src[y * src_ld + x];
}
void run(const float* src, float* dst, int width, int height, int src_ld, int dst_ld) {
  dim3 threads(32, 8);
  dim3 blocks((width + threads.x - 1) / threads.x, (height + threads.y - 1) / threads.y);
  k<<<blocks, threads>>>(src, dst, width, height, src_ld, dst_ld);
}
""",
        {"reference.dst": "np.concatenate([src[:, :width], dst[:, width:]], axis=1)"},
    ),
    "grid stride, launch with a fixed grid": (
        """\
__global__ void k(const double* r, const double* phi, double* x, double* y, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    double s, c;
    sincos(phi[i], &s, &c);
    x[i] = r[i] * c;
    y[i] = r[i] * s;
  }
}
void run(const double* r, const double* phi, double* x, double* y, size_t n) { k<<<64, 128>>>(r, phi, x, y, n); }
""",
        {"reference.x": "r * np.cos(phi)", "reference.y": "r * np.sin(phi)"},
    ),
    "a launch for one size only": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] * x[i];
}
int main() { const int N = 1024; float *x, *y; k<<<N / 256, 256>>>(x, y, N); }
""",
        {},
    ),
    "blocks of a width in the code": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] += x[i];
}
""",
        {},
    ),
    "four elements a thread": (
        """\
__global__ void k(const float* x, float* y, int count) {
  int base = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
  for (int j = 0; j < 4; ++j) {
    int i = base + j * blockDim.x;
    if (i < count) y[i] = sqrtf(fabsf(x[i]));
  }
}
""",
        {"reference.y": "np.sqrt(np.abs(x))"},
    ),
    "column sums": (
        """\
__global__ void k(const float* x, float* total, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float s = 0.f;
  for (int r = 0; r < rows; ++r) s += x[r * cols + c];
  total[c] = s;
}
""",
        {"reference.total": "np.sum(x, axis=0)"},
    ),
    "three dimensions": (
        """\
__global__ void k(const float* x, const float* scale, float* y, int B, int C, int HW) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, b = blockIdx.z;
  if (i < HW && c < C && b < B) y[(b * C + c) * HW + i] = x[(b * C + c) * HW + i] * scale[c];
}
""",
        {"reference.y": "x * scale[None, :, None]"},
    ),
    "bias by remainder": (
        """\
__global__ void k(const float* x, const float* bias, float* y, int n, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * d) y[i] = x[i] + bias[i % d];
}
""",
        {"reference.y": "(x.reshape(n, d) + bias).reshape(-1)"},
    ),
    "differences of rows in CSR form": (
        """\
__global__ void k(const int* start, int* length, int num_rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < num_rows) length[r] = start[r + 1] - start[r];
}
""",
        {"reference.length": "start[1:] - start[:-1]"},
    ),
    "gather": (
        """\
__global__ void k(const float* table, const int* idx, float* out, int n, int vocab) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && idx[i] < vocab) out[i] = table[idx[i]];
}
""",
        {
            "reference.out": "table[idx]",
            "args.table.shape": "50",
            "args.idx.init": '{ kind = "integers", low = 0, high = 50 }',
            "args.vocab": "50",
        },
    ),
    "stored in part": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0.f) y[i] = x[i];
}
""",
        {"reference.y": "np.where(x > 0, x, y)"},
    ),
    "integers by a mode": (
        """\
__global__ void k(const int* x, int* y, int n, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] >> shift;
}
""",
        {"args.shift": "3"},
    ),
    "sum of products by half": (
        """\
#include <cuda_fp16.h>
__global__ void k(const half* a, const half* b, half* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __hadd(a[i], b[i]);
}
""",
        {"reference.c": "a + b"},
    ),
    "three point stencil with a rim": (
        """\
__global__ void k(const float* u, float* v, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  float left = i > 0 ? u[i - 1] : 0.f;
  float right = i + 1 < m ? u[i + 1] : 0.f;
  v[i] = left - 2.f * u[i] + right;
}
""",
        {"reference.v": "np.concatenate([np.zeros(1), u])[:m] - 2 * u + np.concatenate([u, np.zeros(1)])[1:]"},
    ),
    "a thread for each element of a row": (
        """\
__global__ void k(const float* x, float* y, int rows, int width) {
  int r = blockIdx.x, c = threadIdx.x;
  if (c < width) y[r * width + c] = tanhf(x[r * width + c]);
}
void run(const float* x, float* y, int rows, int width) { k<<<rows, width>>>(x, y, rows, width); }
""",
        {"reference.y": "np.tanh(x)"},
    ),
    "matrix times vector, a block for each row": (
        f"""\
__global__ void k(const float* A, const float* v, float* y, int M, int N) {{
  extern __shared__ float s[];
  int row = blockIdx.x, t = threadIdx.x;
  float a = 0;
  for (int j = t; j < N; j += blockDim.x) a += A[row * N + j] * v[j];
  s[t] = a;
  __syncthreads();
  {TREE}
  if (t == 0) y[row] = s[0] + 1.f;
}}
""",
        {"reference.y": "A @ v + 1"},
    ),
    "sums of 128, a tree of fixed width": (
        """\
__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[128];
  int t = threadIdx.x;
  int i = blockIdx.x * 128 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int o = 64; o > 0; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) y[blockIdx.x] = s[0];
}
""",
        {"reference.y": "np.sum(np.pad(x, (0, -n % 128)).reshape(-1, 128), axis=1)"},
    ),
    "four dimensions from one index": (
        """\
__global__ void k(const float* x, const float* g, float* y, int N, int C, int H, int W) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * C * H * W) return;
  int c = (idx / (W * H)) % C;
  y[idx] = x[idx] * g[c];
}
""",
        {"reference.y": "(x.reshape(N, C, H, W) * g[:, None, None]).reshape(-1)"},
    ),
    "warps numbered over the grid": (
        """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (warp >= rows) return;
  float s = 0;
  for (int c = lane; c < cols; c += 32) s += x[warp * cols + c];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
  if (lane == 0) y[warp] = s;
}
""",
        {"reference.y": "np.sum(x, axis=1)"},
    ),
    "vectors with increments": (
        """\
__global__ void k(const float* x, float* y, int n, int incx, int incy, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i * incy] += a * x[i * incx];
}
""",
        {"reference.y": "np.concatenate([y[:, :1] + a * x[:, :1], y[:, 1:]], axis=1)"},
    ),
    "pairs swapped": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[2 * i] = x[2 * i + 1]; y[2 * i + 1] = x[2 * i]; }
}
""",
        {"reference.y": "x[:, ::-1]"},
    ),
    "rows and columns of one index": (
        """\
__global__ void k(const float* x, const float* b, float* y, int rows, int cols) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  int r = idx / cols, c = idx % cols;
  if (r < rows) y[r * cols + c] = x[idx] + b[c];
}
""",
        {"reference.y": "x.reshape(rows, cols) + b"},
    ),
    "rows in a loop over blocks": (
        """\
__global__ void k(const float* x, float* y, int R, int C) {
  for (int r = blockIdx.x; r < R; r += gridDim.x)
    for (int c = threadIdx.x; c < C; c += blockDim.x) y[r * C + c] = x[r * C + c] - x[r * C];
}
""",
        {"reference.y": "x - x[:, :1]"},
    ),
    "no launch that could be told": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (i < n) { y[i] = x[i] + 1; i += blockDim.x * gridDim.x; }
}
""",
        {"reference.y": "x + 1", "launch.grid": '"cdiv(n, 64)"', "launch.block": "32"},
    ),
    "reversed": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[n - 1 - i] = x[i];
}
""",
        {"reference.y": "x[::-1]", "args.y.shape": '"n"'},
    ),
    "the host's n is another": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
void run(const float* x, float* y, int n) { int half = n / 2; k<<<(half + 127) / 256, 256>>>(x, y, half); }
""",
        {},
    ),
    "a host variable assigned twice": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] - 1;
}
void run(const float* x, float* y, int n) {
  int t = 256;
  if (n > 9) t = 128;
  k<<<(n + t - 1) / t, t>>>(x, y, n);
}
""",
        {},
    ),
    "histogram of at most 256 bins": (
        """\
__global__ void k(const int* values, int* counts, int n, int bins) {
  __shared__ int local[256];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[values[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(&counts[b], local[b]);
}
""",
        {"reference.counts": "counts + np.bincount(values, minlength=bins)"},
    ),
    "a named condition": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool inside = i < n;
  bool large = inside && x[i] > 0.5f;
  if (inside) y[i] = large ? 1.f : 0.f;
}
""",
        {"reference.y": "np.where(x > 0.5, 1, 0)"},
    ),
    "no thread is told from another": (
        """\
__global__ void k(const float* x, float* y, int m) {
  float last = 0.f;
  for (int i = 0; i < m; ++i) { last = 0.5f * last + x[i]; y[i] += last; }
}
""",
        {"reference.y": "y + np.convolve(x, 0.5 ** np.arange(64))[:m] if m > 0 else y"},
    ),
    "stencil in three dimensions with a rim": (
        """\
__global__ void k(const float* u, float* v, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  int at = (z * ny + y) * nx + x;
  bool inside = x > 0 && x < nx - 1;
  v[at] = inside ? u[at - 1] + u[at + 1] : u[at];
}
""",
        {
            "reference.v": "np.concatenate([u[:, :, :1], u[:, :, :-2] + u[:, :, 2:], u[:, :, 1:][:, :, -1:]], axis=2)"
            " if nx > 1 else u"
        },
    ),
    "coefficients in constant memory": (
        """\
#define TAPS 3
__constant__ float taps[TAPS];
__constant__ float offset[1] = {2.f};
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (taps[0] + taps[1] * taps[2]) * x[i] + offset[0];
}
""",
        {"reference.y": "(taps[0] + taps[1] * taps[2]) * x + 2"},
    ),
    "tiles that divide the size": (
        """\
__global__ void k(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][16], b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx;
  float s = 0;
  for (int t = 0; t < n / 16; ++t) {
    a[ty][tx] = A[r * n + t * 16 + tx];
    b[ty][tx] = B[(t * 16 + ty) * n + c];
    __syncthreads();
    for (int q = 0; q < 16; ++q) s += a[ty][q] * b[q][tx];
    __syncthreads();
  }
  C[r * n + c] = s;
}
void run(const float* A, const float* B, float* C, int n) {
  dim3 threads(16, 16);
  k<<<dim3(n / 16, n / 16), threads>>>(A, B, C, n);
}
""",
        {},
    ),
    "a row in dynamic shared memory": (
        """\
__global__ void k(const float* x, float* y, int rows, int cols) {
  extern __shared__ float row[];
  int r = blockIdx.x;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) row[c] = x[r * cols + c];
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[r * cols + c] = row[cols - 1 - c];
}
void run(const float* x, float* y, int rows, int cols) { k<<<rows, 128, cols * sizeof(float)>>>(x, y, rows, cols); }
""",
        {"reference.y": "x[:, ::-1]"},
    ),
    "the upper triangle": (
        """\
__global__ void k(const float* x, float* y, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < n && j >= i) y[i * n + j] = x[i * n + j];
}
""",
        {"reference.y": "np.where(np.arange(n)[None, :] >= np.arange(n)[:, None], x, y)"},
    ),
    "rows by warps of a fixed number": (
        """\
#define WARPS 4
__global__ void k(const float* x, float* y, int rows, int cols) {
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  int r = blockIdx.x * WARPS + w;
  if (r >= rows) return;
  float m = 0;
  for (int c = l; c < cols; c += 32) m = fmaxf(m, x[r * cols + c]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (l == 0) y[r] = m;
}
""",
        {"reference.y": "np.max(x, axis=1, initial=0)"},
    ),
    "pairs of bf16 in rows": (
        """\
#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat162* x, __nv_bfloat162* y, int rows, int half_cols) {
  int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < half_cols) y[r * half_cols + c] = __hadd2(x[r * half_cols + c], x[r * half_cols + c]);
}
void run(const __nv_bfloat162* x, __nv_bfloat162* y, int rows, int half_cols) {
  dim3 grid((half_cols + 127) / 128, rows);
  k<<<grid, 128>>>(x, y, rows, half_cols);
}
""",
        {"reference.y": "2 * x"},
    ),
}

// Root mean square normalisation: one block per row, a block-wide reduction through warps.
//
// /// kernel-forge
// kernel = "rms_norm"
// reference = { y = "x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + eps) * w" }
// cases = [{ rows = 64, cols = 1024 }, { rows = 7, cols = 1000 }, { rows = 1, cols = 1 }]
// where = ["cols > 0"]
//
// [args]
// x = { shape = ["rows", "cols"] }
// w = { shape = ["cols"] }
// y = { shape = ["rows", "cols"], role = "out" }
// eps = 1e-6
//
// [launch]
// grid = "rows"
// block = "BLOCK"
//
// [tune]
// BLOCK = [64, 128, 256]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif

__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void rms_norm(const float* x, const float* w, float* y, int rows, int cols, float eps) {
  __shared__ float partial[BLOCK / 32];
  int row = blockIdx.x;
  if (row >= rows) return;
  const float* in = x + static_cast<size_t>(row) * cols;
  float* out = y + static_cast<size_t>(row) * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += BLOCK) sum += in[c] * in[c];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < BLOCK / 32; ++i) total += partial[i];
  float scale = rsqrtf(total / cols + eps);
  for (int c = threadIdx.x; c < cols; c += BLOCK) out[c] = in[c] * scale * __ldg(w + c);
}

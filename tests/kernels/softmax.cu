// Online softmax of rows: running maximum and sum in one pass, dynamic shared memory for both.
//
// /// kernel-forge
// kernel = "softmax"
// reference = "np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)"
// cases = [{ rows = 32, cols = 700 }, { rows = 3, cols = 1 }]
// where = ["cols > 0"]
//
// [args]
// x = { shape = ["rows", "cols"] }
// y = { shape = ["rows", "cols"], role = "out" }
//
// [launch]
// grid = "rows"
// block = "BLOCK"
// shared = "2 * BLOCK * 4"
//
// [tune]
// BLOCK = [32, 64, 128]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif

__device__ void join(float& max_a, float& sum_a, float max_b, float sum_b) {
  float m = fmaxf(max_a, max_b);
  sum_a = (max_a == -INFINITY ? 0.0f : sum_a * expf(max_a - m)) + (max_b == -INFINITY ? 0.0f : sum_b * expf(max_b - m));
  max_a = m;
}

__global__ void softmax(const float* x, float* y, int rows, int cols) {
  extern __shared__ float scratch[];
  float* maxima = scratch;
  float* sums = scratch + blockDim.x;
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float m = -INFINITY, s = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) join(m, s, in[c], 1.0f);
  maxima[threadIdx.x] = m;
  sums[threadIdx.x] = s;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      join(maxima[threadIdx.x], sums[threadIdx.x], maxima[threadIdx.x + stride], sums[threadIdx.x + stride]);
    }
    __syncthreads();
  }
  m = maxima[0];
  s = sums[0];
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = expf(in[c] - m) / s;
}

// Sum of an array in two launches with partial sums between them, and in one with a typed dynamic buffer.
//
// /// kernel-forge
// kernel = "partial_sums"
// reference = { total = "np.sum(x)" }
// cases = [{ n = 50000 }, { n = 300 }]
//
// [args]
// x = { shape = ["n"] }
// partial = { shape = ["BLOCKS"], role = "scratch" }
// total = { shape = [1], role = "out" }
// blocks = "BLOCKS"
//
// [[launch]]
// kernel = "partial_sums"
// grid = "BLOCKS"
// block = "BLOCK"
//
// [[launch]]
// kernel = "sum_of_sums"
// grid = 1
// block = "BLOCK"
//
// [tune]
// BLOCK = [64, 128]
// BLOCKS = [5, 16]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef BLOCKS
#define BLOCKS 5
#endif

__device__ float block_sum(float v) {
  __shared__ float lanes[32];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  if (threadIdx.x % warpSize == 0) lanes[threadIdx.x / warpSize] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? lanes[threadIdx.x] : 0.0f;
  if (threadIdx.x < warpSize) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  }
  return v;
}

__global__ void partial_sums(const float* x, float* partial, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void sum_of_sums(const float* partial, float* total, int blocks) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) total[0] = sum;
}

// The same tree for any type: `extern __shared__` in a template.
//
// /// kernel-forge
// kernel = "tree_sum<double>"
// reference = { out = "np.sum(in_)" }
// cases = [{ n = 3000 }, { n = 5 }]
//
// [args]
// in_ = { shape = ["n"] }
// out = { shape = [1], role = "out" }
//
// [launch]
// grid = 1
// block = 128
// shared = "128 * 8"
// ///
template <typename T>
__global__ void tree_sum(const T* in_, T* out, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* values = reinterpret_cast<T*>(raw);
  T sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in_[i];
  values[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) values[threadIdx.x] += values[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = values[0];
}

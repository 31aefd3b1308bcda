// Softmax of rows: TX threads per row and TY rows per block.
//
// ONLINE reads a row twice instead of three times, carrying the largest value and the sum together; SHUFFLE joins the
// threads of a row through registers rather than shared memory; RESIDENT blocks are to fit on a multiprocessor.
//
// /// kernel-forge
// kernel = "softmax"
// reference = "np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)"
// cases = [{ rows = 9, cols = 300 }, { rows = 1, cols = 4 }]
// where = ["cols % 4 == 0", "cols > 0"]
//
// [args]
// x = { shape = ["rows", "cols"] }
// y = { shape = ["rows", "cols"], role = "out" }
//
// [launch]
// grid = ["1", "max(1, cdiv(rows, TY))"]
// block = ["TX", "TY"]
//
// [tune]
// TX = [32, 64, 128, 256, 512, 1024]
// TY = [1, 2, 4, 8]
// VEC = [1, 2, 4]
// UNROLL = [1, 2, 4, 8]
// ONLINE = [0, 1]
// SHUFFLE = [0, 1]
// RESIDENT = [1, 2]
// where = ["TX * TY <= 1024"]
// ///
#ifndef TX
#define TX 128
#endif
#ifndef TY
#define TY 1
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef ONLINE
#define ONLINE 0
#endif
#ifndef SHUFFLE
#define SHUFFLE 0
#endif
#ifndef RESIDENT
#define RESIDENT 1
#endif
#define SMALLEST __int_as_float(0xff7fffff)  // -FLT_MAX

struct alignas(4 * VEC) Floats {
  float at[VEC];
};

__device__ __forceinline__ void join(float& largest, float& sum, float other_largest, float other_sum) {
  float both = fmaxf(largest, other_largest);
  sum = sum * expf(largest - both) + other_sum * expf(other_largest - both);
  largest = both;
}

// Joins the pairs of all threads of a row; every thread of the block takes part.
__device__ __forceinline__ void join_row(float& largest, float& sum) {
#if SHUFFLE
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    float other_largest = __shfl_xor_sync(0xffffffffu, largest, step);
    float other_sum = __shfl_xor_sync(0xffffffffu, sum, step);
    join(largest, sum, other_largest, other_sum);
  }
#if TX > 32
  __shared__ float maxima[TY][TX / 32], sums[TY][TX / 32];
  if (threadIdx.x % 32 == 0) {
    maxima[threadIdx.y][threadIdx.x / 32] = largest;
    sums[threadIdx.y][threadIdx.x / 32] = sum;
  }
  __syncthreads();
  largest = SMALLEST;
  sum = 0.0f;
  for (int warp = 0; warp < TX / 32; ++warp) {
    join(largest, sum, maxima[threadIdx.y][warp], sums[threadIdx.y][warp]);
  }
  __syncthreads();
#endif
#else
  __shared__ float maxima[TY][TX], sums[TY][TX];
  maxima[threadIdx.y][threadIdx.x] = largest;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int step = TX / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      join(maxima[threadIdx.y][threadIdx.x], sums[threadIdx.y][threadIdx.x], maxima[threadIdx.y][threadIdx.x + step],
           sums[threadIdx.y][threadIdx.x + step]);
    }
    __syncthreads();
  }
  largest = maxima[threadIdx.y][0];
  sum = sums[threadIdx.y][0];
  __syncthreads();
#endif
}

extern "C" __global__ void __launch_bounds__(TX * TY, RESIDENT) softmax(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.y * TY + threadIdx.y;
  int end = row < rows ? cols : 0;  // threads beyond the last row go along to the barriers
  const float* in = x + static_cast<size_t>(row) * cols;
  float* out = y + static_cast<size_t>(row) * cols;
  float largest = SMALLEST, sum = 0.0f;
#if ONLINE
#pragma unroll UNROLL
  for (int c = threadIdx.x * VEC; c < end; c += TX * VEC) {
    Floats read = *reinterpret_cast<const Floats*>(in + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v) join(largest, sum, read.at[v], 1.0f);
  }
  join_row(largest, sum);
#else
#pragma unroll UNROLL
  for (int c = threadIdx.x * VEC; c < end; c += TX * VEC) {
    Floats read = *reinterpret_cast<const Floats*>(in + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v) largest = fmaxf(largest, read.at[v]);
  }
  join_row(largest, sum);
  sum = 0.0f;
#pragma unroll UNROLL
  for (int c = threadIdx.x * VEC; c < end; c += TX * VEC) {
    Floats read = *reinterpret_cast<const Floats*>(in + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v) sum += expf(read.at[v] - largest);
  }
  float same = largest;  // of all threads of the row by now
  join_row(same, sum);
#endif
  float scale = 1.0f / sum;
#pragma unroll UNROLL
  for (int c = threadIdx.x * VEC; c < end; c += TX * VEC) {
    Floats read = *reinterpret_cast<const Floats*>(in + c);
    Floats made;
#pragma unroll
    for (int v = 0; v < VEC; ++v) made.at[v] = expf(read.at[v] - largest) * scale;
    *reinterpret_cast<Floats*>(out + c) = made;
  }
}

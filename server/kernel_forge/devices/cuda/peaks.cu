// What a GPU does at best: bytes of a copy, operations of each kind of arithmetic.
#include <cuda_fp16.h>
#include <mma.h>

// One float4 per thread and step, as many steps as it takes.
extern "C" __global__ void kf_peak_copy(const float4* __restrict__ from, float4* __restrict__ to, long long count) {
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

// Eight independent chains of multiply-adds per thread: 16 operations per round.
template <typename T> __device__ T chains(T scale, T shift, int rounds) {
  T v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = T(threadIdx.x + k);
#pragma unroll 4
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = v[k] * scale + shift;
  }
  T sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += v[k];
  return sum;
}

extern "C" __global__ void kf_peak_float32(float* out, float scale, int rounds) {
  float sum = chains<float>(scale, 0.5f, rounds);
  if (sum == -1.0f) out[0] = sum;  // never true; keeps the arithmetic
}

extern "C" __global__ void kf_peak_float64(float* out, float scale, int rounds) {
  double sum = chains<double>(scale, 0.5, rounds);
  if (sum == -1.0) out[0] = float(sum);
}

// Four independent 16 x 16 x 16 products per warp and round: 4 * 8192 operations.
extern "C" __global__ void kf_peak_tensor(float* out, float scale, int rounds) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4];
  wmma::fill_fragment(a, __float2half(scale));
  wmma::fill_fragment(b, __float2half(0.001f));
#pragma unroll
  for (int k = 0; k < 4; ++k) wmma::fill_fragment(c[k], float(k));
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) wmma::mma_sync(c[k], a, b, c[k]);
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < c[k].num_elements; ++j) sum += c[k].x[j];
  if (sum == -1.0f) out[0] = sum;
}

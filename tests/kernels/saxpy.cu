#include <cuda_runtime.h>

// y = a * x + y over float4 where it fits, with a scalar tail.
//
// /// kernel-forge
// kernel = "saxpy"
// reference = { y = "a * x + y" }
// cases = [{ n = 100000 }, { n = 1003 }]
//
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "inout" }
// a = 1.75
//
// [launch]
// grid = "max(1, cdiv(cdiv(n, 4), BLOCK))"
// block = "BLOCK"
//
// [tune]
// BLOCK = [64, 128, 256]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
__global__ void saxpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int quads = n / 4;
  if (i < quads) {
    float4 u = reinterpret_cast<const float4*>(x)[i];
    float4 v = reinterpret_cast<float4*>(y)[i];
    v.x = a * u.x + v.x;
    v.y = a * u.y + v.y;
    v.z = a * u.z + v.z;
    v.w = a * u.w + v.w;
    reinterpret_cast<float4*>(y)[i] = v;
  }
  int tail = quads * 4 + i;
  if (i < n % 4) {
    y[tail] = a * x[tail] + y[tail];
  }
}

#define CHECK(call)                                        \
  do {                                                     \
    cudaError_t status = (call);                           \
    if (status != cudaSuccess) return static_cast<int>(status); \
  } while (0)

int main() {
  const int n = 1 << 20;
  float *x = nullptr, *y = nullptr;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMalloc(&y, n * sizeof(float)));
  saxpy<<<(n / 4 + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, 1.75f, n);
  CHECK(cudaDeviceSynchronize());
  return 0;
}

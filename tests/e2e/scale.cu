#include <cuda_runtime.h>

// /// kernel-forge
// kernel = "scale"
// reference = { y = "a * x" }
// cases = [{ n = 1000 }, { n = 77 }]
//
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// a = 2.5
//
// [launch]
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
//
// [tune]
// BLOCK = [64, 128, 256]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
__global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i];
  }
}

__global__ void shift(const float* x, float* y, float b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + b;
}

int main() {
  float *x = nullptr, *y = nullptr;
  int n = 1000;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  scale<<<(n + 127) / 128, 128>>>(x, y, 2.5f, n);
  shift<<<(n + 127) / 128, 128>>>(x, y, 1.0f, n);
  return 0;
}

#include <cuda_fp16.h>

// Tiled matrix products with tails: float, and half with float accumulation.
//
// /// kernel-forge
// kernel = "matmul"
// reference = { C = "A @ B" }
// cases = [{ M = 70, N = 50, K = 65 }, { M = 1, N = 33, K = 17 }]
//
// [args]
// A = { shape = ["M", "K"] }
// B = { shape = ["K", "N"] }
// C = { shape = ["M", "N"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(N, TILE))", "max(1, cdiv(M, TILE))"]
// block = ["TILE", "TILE"]
//
// [tune]
// TILE = [8, 16]
// ///
#ifndef TILE
#define TILE 16
#endif
__global__ void __launch_bounds__(TILE * TILE) matmul(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += TILE) {
    a[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < K ? A[row * K + k0 + threadIdx.x] : 0.0f;
    b[threadIdx.y][threadIdx.x] = col < N && k0 + threadIdx.y < K ? B[(k0 + threadIdx.y) * N + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}

// /// kernel-forge
// kernel = "matmul_half"
// reference = { C = "A @ B" }
// cases = [{ M = 20, N = 12, K = 1400 }, { M = 3, N = 5, K = 2 }]
// where = ["K % 2 == 0"]
//
// [args]
// A = { shape = ["M", "K"] }
// B = { shape = ["K", "N"] }
// C = { shape = ["M", "N"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(N, 16))", "max(1, cdiv(M, 8))"]
// block = [16, 8]
// ///
__global__ void matmul_half(const half* A, const half* B, half* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || col >= N) return;
  const half2* pairs = reinterpret_cast<const half2*>(A + row * K);
  float sum = 0.0f;
  for (int k = 0; k < K / 2; ++k) {
    float2 a = __half22float2(pairs[k]);
    sum = fmaf(a.x, __half2float(B[(2 * k) * N + col]), sum);
    sum = fmaf(a.y, __half2float(B[(2 * k + 1) * N + col]), sum);
  }
  C[row * N + col] = __float2half_rn(sum);
}

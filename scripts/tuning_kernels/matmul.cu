// C = A B in float32: a block computes a tile of TY * WY rows and TX * WX columns, a thread WY * WX of its elements.
//
// VEC floats are loaded at once; PAD keeps the columns of A's tile apart in shared memory; SPREAD gives a thread
// columns TX apart rather than neighbours.
//
// /// kernel-forge
// kernel = "matmul"
// reference = { C = "A @ B" }
// cases = [{ M = 70, N = 52, K = 36 }, { M = 1, N = 36, K = 4 }]
// where = ["N % 4 == 0", "K % 4 == 0"]
//
// [args]
// A = { shape = ["M", "K"] }
// B = { shape = ["K", "N"] }
// C = { shape = ["M", "N"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(N, TX * WX))", "max(1, cdiv(M, TY * WY))"]
// block = ["TX", "TY"]
//
// [tune]
// TX = [8, 16, 32]
// TY = [4, 8, 16, 32]
// WX = [1, 2, 4, 8]
// WY = [1, 2, 4, 8]
// BK = [8, 16, 32]
// VEC = [1, 2, 4]
// PAD = [0, 1]
// SPREAD = [0, 1]
// UNROLL = [1, 4, 8]
// where = [
//   "64 <= TX * TY",
//   "TX * TY <= 512",
//   "WX * WY <= 32",
//   "BK * (TY * WY + PAD + TX * WX) * 4 <= 49152",
//   "SPREAD == 0 or WX > 1",
// ]
// ///
#ifndef TX
#define TX 16
#endif
#ifndef TY
#define TY 16
#endif
#ifndef WX
#define WX 2
#endif
#ifndef WY
#define WY 2
#endif
#ifndef BK
#define BK 16
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef PAD
#define PAD 0
#endif
#ifndef SPREAD
#define SPREAD 1
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

struct alignas(4 * VEC) Floats {
  float at[VEC];
};

extern "C" __global__ void __launch_bounds__(TX * TY)
    matmul(const float* A, const float* B, float* C, int M, int N, int K) {
  const int kRows = TY * WY, kColumns = TX * WX, kThreads = TX * TY;
  __shared__ float a[BK][TY * WY + PAD];
  __shared__ float b[BK][TX * WX];
  int thread = threadIdx.y * TX + threadIdx.x;
  int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  float sum[WY][WX];
#pragma unroll
  for (int i = 0; i < WY; ++i) {
#pragma unroll
    for (int j = 0; j < WX; ++j) sum[i][j] = 0.0f;
  }
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int at = thread * VEC; at < kRows * BK; at += kThreads * VEC) {
      int row = at / BK, k = at % BK;
      Floats loaded = {};
      if (row0 + row < M && k0 + k < K) {
        loaded = *reinterpret_cast<const Floats*>(A + static_cast<size_t>(row0 + row) * K + k0 + k);
      }
#pragma unroll
      for (int v = 0; v < VEC; ++v) a[k + v][row] = loaded.at[v];
    }
    for (int at = thread * VEC; at < BK * kColumns; at += kThreads * VEC) {
      int k = at / kColumns, column = at % kColumns;
      Floats loaded = {};
      if (k0 + k < K && column0 + column < N) {
        loaded = *reinterpret_cast<const Floats*>(B + static_cast<size_t>(k0 + k) * N + column0 + column);
      }
#pragma unroll
      for (int v = 0; v < VEC; ++v) b[k][column + v] = loaded.at[v];
    }
    __syncthreads();
#pragma unroll UNROLL
    for (int k = 0; k < BK; ++k) {
      float left[WY], right[WX];
#pragma unroll
      for (int i = 0; i < WY; ++i) left[i] = a[k][threadIdx.y * WY + i];
#pragma unroll
      for (int j = 0; j < WX; ++j) right[j] = b[k][SPREAD ? threadIdx.x + j * TX : threadIdx.x * WX + j];
#pragma unroll
      for (int i = 0; i < WY; ++i) {
#pragma unroll
        for (int j = 0; j < WX; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < WY; ++i) {
#pragma unroll
    for (int j = 0; j < WX; ++j) {
      int row = row0 + threadIdx.y * WY + i;
      int column = column0 + (SPREAD ? threadIdx.x + j * TX : threadIdx.x * WX + j);
      if (row < M && column < N) C[static_cast<size_t>(row) * N + column] = sum[i][j];
    }
  }
}

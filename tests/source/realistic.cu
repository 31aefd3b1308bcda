// A file of the size and habits that people write: aliases, macros, templates, host code around kernels.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <vector>

#ifndef BLOCK
#define BLOCK 256
#endif
#define CHECK(call) check((call), __LINE__)

using real = float;
typedef __nv_bfloat16 storage;

static void check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::printf("line %d: %s\n", line, cudaGetErrorString(error));
  }
}

static int blocks_for(int n) { return (n + BLOCK - 1) / BLOCK; }

struct Problem {
  int rows;
  int columns;
  int blocks() const { return blocks_for(rows * columns); }
};

__constant__ real weights[16];
__device__ unsigned int finished = 0;
static std::vector<float> host_buffer;
constexpr int kWarp = 32;

namespace detail {
__device__ inline real warp_sum(real value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}
}  // namespace detail

// /// kernel-forge
// kernel = "row_sum"
// cases = [{ rows = 4, columns = 100 }]
// ///
template <int THREADS>
__global__ void __launch_bounds__(THREADS) row_sum(const real *__restrict__ x, real *out, int columns) {
  __shared__ real partial[THREADS / kWarp];
  real total = 0;
  for (int i = threadIdx.x; i < columns; i += THREADS) total += x[blockIdx.x * columns + i];
  total = detail::warp_sum(total);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
    real sum = 0;
    for (int w = 0; w < THREADS / kWarp; ++w) sum += partial[w];
    out[blockIdx.x] = sum;
  }
}

__global__ void narrow(const float4 *x, storage *y, size_t n) {
  extern __shared__ unsigned char scratch[];
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(x[i].x * weights[i % 16]);
}

extern "C" __global__ void mark(int *flags, bool value) { flags[threadIdx.x] = value; }

template <typename T>
void upload(const std::vector<T> &source, T *target) {
  CHECK(cudaMemcpy(target, source.data(), source.size() * sizeof(T), cudaMemcpyHostToDevice));
}

int main() {
  Problem problem{4, 100};
  real *x = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&x, sizeof(real) * 400));
  row_sum<BLOCK><<<problem.rows, BLOCK>>>(x, out, problem.columns);
  narrow<<<blocks_for(400), BLOCK, 1024>>>(reinterpret_cast<float4 *>(x), nullptr, 100);
  mark<<<1, 32>>>(nullptr, true);
  return 0;
}

// Kernels whose times check the timing: one bound by memory, one by reduction, one by arithmetic.

extern "C" __global__ void copy(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

extern "C" __global__ void sum(const float* x, float* total, int n) {
  __shared__ float parts[32];
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  for (int o = 16; o > 0; o /= 2) mine += __shfl_down_sync(0xffffffffu, mine, o);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
    for (int o = 16; o > 0; o /= 2) mine += __shfl_down_sync(0xffffffffu, mine, o);
    if (threadIdx.x == 0) atomicAdd(total, mine);
  }
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float s[32][33], t[32][33];
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float r[4] = {};
  for (int k = 0; k < n; k += 32) {
    for (int j = 0; j < 4; ++j) {
      s[threadIdx.y + 8 * j][threadIdx.x] = a[(row + 8 * j) * n + k + threadIdx.x];
      t[threadIdx.y + 8 * j][threadIdx.x] = b[(k + threadIdx.y + 8 * j) * n + column];
    }
    __syncthreads();
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 4; ++j) r[j] += s[threadIdx.y + 8 * j][i] * t[i][threadIdx.x];
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) c[(row + 8 * j) * n + column] = r[j];
}

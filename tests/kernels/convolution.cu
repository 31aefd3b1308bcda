#include <cuda_runtime.h>

// Two-dimensional filter with coefficients in constant memory and a halo in shared memory.
#define RADIUS 2
__constant__ float coefficients[(2 * RADIUS + 1) * (2 * RADIUS + 1)];

// /// kernel-forge
// kernel = "filter2d"
// reference = { out = "convolution.py:filter2d" }
// cases = [{ height = 70, width = 45 }, { height = 5, width = 3 }]
//
// [args]
// image = { shape = ["height", "width"] }
// out = { shape = ["height", "width"], role = "out" }
// coefficients = { shape = [25] }
//
// [launch]
// grid = ["max(1, cdiv(width, 16))", "max(1, cdiv(height, 8))"]
// block = [16, 8]
// ///
__global__ void filter2d(const float* image, float* out, int height, int width) {
  __shared__ float tile[8 + 2 * RADIUS][16 + 2 * RADIUS];
  int x0 = blockIdx.x * 16 - RADIUS, y0 = blockIdx.y * 8 - RADIUS;
  for (int ty = threadIdx.y; ty < 8 + 2 * RADIUS; ty += 8) {
    for (int tx = threadIdx.x; tx < 16 + 2 * RADIUS; tx += 16) {
      int x = x0 + tx, y = y0 + ty;
      tile[ty][tx] = x >= 0 && x < width && y >= 0 && y < height ? image[y * width + x] : 0.0f;
    }
  }
  __syncthreads();
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0.0f;
  for (int j = 0; j <= 2 * RADIUS; ++j) {
    for (int i = 0; i <= 2 * RADIUS; ++i) {
      sum += coefficients[j * (2 * RADIUS + 1) + i] * tile[threadIdx.y + j][threadIdx.x + i];
    }
  }
  out[y * width + x] = sum;
}

void run(const float* image, float* out, int height, int width) {
  float host[25] = {};
  cudaMemcpyToSymbol(coefficients, host, sizeof(host));
  dim3 block(16, 8);
  filter2d<<<dim3((width + 15) / 16, (height + 7) / 8), block>>>(image, out, height, width);
}

// Two-dimensional convolution with 5 x 5 weights; the image has a margin of two pixels on every side.
//
// A thread computes WY * WX pixels, which lie TY and TX apart. TILED reads the block's part of the image into shared
// memory first; KEPT does the same with the weights.
//
// /// kernel-forge
// kernel = "convolution"
// reference = { out = "convolution.py:convolution" }
// cases = [{ height = 40, width = 75 }, { height = 3, width = 1 }]
//
// [args]
// image = { shape = ["height + 4", "width + 4"] }
// weights = { shape = [25] }
// out = { shape = ["height", "width"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(width, TX * WX))", "max(1, cdiv(height, TY * WY))"]
// block = ["TX", "TY"]
//
// [tune]
// TX = [16, 32, 64, 128]
// TY = [1, 2, 4, 8, 16]
// WX = [1, 2, 4]
// WY = [1, 2, 4, 8]
// TILED = [0, 1]
// PAD = [0, 1]
// KEPT = [0, 1]
// UNROLL = [1, 5]
// where = [
//   "32 <= TX * TY",
//   "TX * TY <= 1024",
//   "TILED == 0 or (TY * WY + 4) * (TX * WX + 4 + PAD) * 4 <= 40960",
//   "TILED == 1 or PAD == 0",
// ]
// ///
#ifndef TX
#define TX 32
#endif
#ifndef TY
#define TY 4
#endif
#ifndef WX
#define WX 1
#endif
#ifndef WY
#define WY 1
#endif
#ifndef TILED
#define TILED 0
#endif
#ifndef PAD
#define PAD 0
#endif
#ifndef KEPT
#define KEPT 0
#endif
#ifndef UNROLL
#define UNROLL 5
#endif

extern "C" __global__ void __launch_bounds__(TX * TY)
    convolution(const float* image, const float* weights, float* out, int height, int width) {
  int stride = width + 4;
  int x0 = blockIdx.x * (TX * WX), y0 = blockIdx.y * (TY * WY);
#if KEPT
  __shared__ float kept[25];
  for (int at = threadIdx.y * TX + threadIdx.x; at < 25; at += TX * TY) kept[at] = weights[at];
#else
  const float* kept = weights;
#endif
#if TILED
  __shared__ float tile[TY * WY + 4][TX * WX + 4 + PAD];
  for (int y = threadIdx.y; y < TY * WY + 4; y += TY) {
    for (int x = threadIdx.x; x < TX * WX + 4; x += TX) {
      bool inside = y0 + y < height + 4 && x0 + x < width + 4;
      tile[y][x] = inside ? image[static_cast<size_t>(y0 + y) * stride + x0 + x] : 0.0f;
    }
  }
#endif
#if TILED || KEPT
  __syncthreads();
#endif
  float sum[WY][WX];
#pragma unroll
  for (int i = 0; i < WY; ++i) {
#pragma unroll
    for (int j = 0; j < WX; ++j) sum[i][j] = 0.0f;
  }
#pragma unroll UNROLL
  for (int dy = 0; dy < 5; ++dy) {
#pragma unroll UNROLL
    for (int dx = 0; dx < 5; ++dx) {
      float weight = kept[dy * 5 + dx];
#pragma unroll
      for (int i = 0; i < WY; ++i) {
#pragma unroll
        for (int j = 0; j < WX; ++j) {
          int x = threadIdx.x + j * TX, y = threadIdx.y + i * TY;
#if TILED
          float pixel = tile[y + dy][x + dx];
#else
          bool inside = y0 + y < height && x0 + x < width;
          float pixel = inside ? image[static_cast<size_t>(y0 + y + dy) * stride + x0 + x + dx] : 0.0f;
#endif
          sum[i][j] = fmaf(weight, pixel, sum[i][j]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < WY; ++i) {
#pragma unroll
    for (int j = 0; j < WX; ++j) {
      int x = x0 + threadIdx.x + j * TX, y = y0 + threadIdx.y + i * TY;
      if (x < width && y < height) out[static_cast<size_t>(y) * width + x] = sum[i][j];
    }
  }
}

// Mean and variance of rows: two sums on two streams at the same time, put together when both are there.
//
// /// kernel-forge
// kernel = "combine"
// cases = [{ rows = 70, columns = 300 }, { rows = 3, columns = 1 }]
// where = ["columns > 0"]
//
// [reference]
// mean = "x.mean(axis=1)"
// variance = "(x * x).mean(axis=1) - x.mean(axis=1) ** 2"
//
// [args]
// x = { shape = ["rows", "columns"] }
// sums = { shape = ["rows"], role = "scratch" }
// squares = { shape = ["rows"], role = "scratch" }
// mean = { shape = ["rows"], role = "out" }
// variance = { shape = ["rows"], role = "out" }
//
// [[launch]]
// kernel = "row_sums"
// args = ["x", "sums", "rows", "columns"]
// grid = "cdiv(rows, 4)"
// block = 128
// stream = "sums"
//
// [[launch]]
// kernel = "row_squares"
// args = ["x", "squares", "rows", "columns"]
// grid = "cdiv(rows, 4)"
// block = 128
// stream = "squares"
//
// [[launch]]
// kernel = "combine"
// grid = "cdiv(rows, 64)"
// block = 64
// ///
__device__ float warp_total(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

// One warp per row.
__global__ void row_sums(const float* x, float* sums, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  float total = 0.0f;
  for (int c = threadIdx.x % 32; c < columns; c += 32) total += x[row * columns + c];
  total = warp_total(total);
  if (threadIdx.x % 32 == 0) sums[row] = total;
}

__global__ void row_squares(const float* x, float* squares, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  float total = 0.0f;
  for (int c = threadIdx.x % 32; c < columns; c += 32) total += x[row * columns + c] * x[row * columns + c];
  total = warp_total(total);
  if (threadIdx.x % 32 == 0) squares[row] = total;
}

__global__ void combine(const float* sums, const float* squares, float* mean, float* variance, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float m = sums[row] / columns;
  mean[row] = m;
  variance[row] = squares[row] / columns - m * m;
}

// Tiled transpose through padded shared memory, several rows per thread.
//
// /// kernel-forge
// kernel = "transpose<TILE, ROWS>"
// reference = { out = "in_.T" }
// cases = [{ height = 200, width = 130 }, { height = 33, width = 65 }]
//
// [args]
// in_ = { shape = ["height", "width"] }
// out = { shape = ["width", "height"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(width, TILE))", "max(1, cdiv(height, TILE))"]
// block = ["TILE", "ROWS"]
//
// [tune]
// TILE = [16, 32]
// ROWS = [4, 8]
// where = ["TILE % ROWS == 0"]
// ///
template <int kTile, int kRows>
__global__ void transpose(const float* in_, float* out, int height, int width) {
  __shared__ float tile[kTile][kTile + 1];
  int x = blockIdx.x * kTile + threadIdx.x;
  int y = blockIdx.y * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows) {
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in_[(y + j) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows) {
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

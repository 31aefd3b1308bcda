// Seven-point stencil in three dimensions, three-dimensional blocks.
//
// /// kernel-forge
// kernel = "stencil"
// reference = "kernel:stencil_plain"
// cases = [{ nz = 9, ny = 13, nx = 35 }, { nz = 3, ny = 3, nx = 3 }]
//
// [args]
// u = { shape = ["nz", "ny", "nx"] }
// v = { shape = ["nz", "ny", "nx"], role = "out" }
//
// [launch]
// grid = ["max(1, cdiv(nx, 8))", "max(1, cdiv(ny, 4))", "max(1, cdiv(nz, 2))"]
// block = [8, 4, 2]
// ///
__global__ void stencil(const float* u, float* v, int nz, int ny, int nx) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  int plane = ny * nx, i = z * plane + y * nx + x;
  float sum = -6.0f * __ldg(&u[i]);
  if (x > 0) sum += __ldg(&u[i - 1]);
  if (x < nx - 1) sum += __ldg(&u[i + 1]);
  if (y > 0) sum += __ldg(&u[i - nx]);
  if (y < ny - 1) sum += __ldg(&u[i + nx]);
  if (z > 0) sum += __ldcg(&u[i - plane]);
  if (z < nz - 1) sum += __ldcg(&u[i + plane]);
  v[i] = sum;
}

// The same, one thread for all of it.
//
// /// kernel-forge
// kernel = "stencil_plain"
// reference = "stencil3d.py:stencil"
// cases = [{ nz = 4, ny = 5, nx = 6 }]
//
// [args]
// u = { shape = ["nz", "ny", "nx"] }
// v = { shape = ["nz", "ny", "nx"], role = "out" }
//
// [launch]
// grid = 1
// block = 1
// ///
__global__ void stencil_plain(const float* u, float* v, int nz, int ny, int nx) {
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        int i = (z * ny + y) * nx + x;
        float sum = -6.0f * u[i];
        sum += x > 0 ? u[i - 1] : 0.0f;
        sum += x < nx - 1 ? u[i + 1] : 0.0f;
        sum += y > 0 ? u[i - nx] : 0.0f;
        sum += y < ny - 1 ? u[i + nx] : 0.0f;
        sum += z > 0 ? u[i - ny * nx] : 0.0f;
        sum += z < nz - 1 ? u[i + ny * nx] : 0.0f;
        v[i] = sum;
      }
    }
  }
}

// Permutation out and back: gather, then scatter; indices are a permutation.
//
// /// kernel-forge
// kernel = "gather"
// reference = { y = "x[index]" }
// cases = [{ n = 3000 }, { n = 61 }]
//
// [args]
// x = { shape = ["n"] }
// index = { shape = ["n"], init = "permutation" }
// y = { shape = ["n"], role = "out" }
//
// [launch]
// grid = "max(1, cdiv(n, 256))"
// block = 256
// ///
__global__ void gather(const double* x, const int* index, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[index[i]];
}

// /// kernel-forge
// kernel = "scatter"
// reference = "gather.py:scatter"
// cases = [{ n = 3000 }, { n = 61 }]
//
// [args]
// x = { shape = ["n"] }
// index = { shape = ["n"], init = "permutation" }
// y = { shape = ["n"], role = "out" }
//
// [launch]
// grid = "max(1, cdiv(n, 256))"
// block = 256
// ///
__global__ void scatter(const double* x, const int* index, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[index[i]] = x[i];
}

// Histogram with a private copy per block in shared memory, and the largest count found with atomicMax.
//
// /// kernel-forge
// kernel = "histogram"
// cases = [{ n = 5000, bins = 64 }, { n = 100, bins = 7 }]
// where = ["bins > 0", "bins <= 256"]
//
// [reference]
// counts = "np.bincount(values, minlength=bins)"
// largest = "np.bincount(values, minlength=bins).max()"
//
// [args]
// values = { shape = ["n"], init = { kind = "integers", low = 0, high = "bins" } }
// counts = { shape = ["bins"], role = "inout", init = { kind = "constant", value = 0 } }
// largest = { shape = [1], role = "inout", init = { kind = "constant", value = 0 } }
//
// [[launch]]
// kernel = "histogram"
// grid = 6
// block = 128
//
// [[launch]]
// kernel = "largest_count"
// grid = 1
// block = 64
// ///
extern "C" __global__ void histogram(const int* values, unsigned int* counts, int n, int bins) {
  __shared__ unsigned int local[256];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[values[i]], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    if (local[b] > 0) atomicAdd(&counts[b], local[b]);
  }
}

extern "C" __global__ void largest_count(const unsigned int* counts, unsigned int* largest, int bins) {
  unsigned int most = 0;
  for (int b = threadIdx.x; b < bins; b += blockDim.x) most = max(most, counts[b]);
  most = __reduce_max_sync(0xffffffffu, most);
  if (threadIdx.x % 32 == 0) atomicMax(largest, most);
}

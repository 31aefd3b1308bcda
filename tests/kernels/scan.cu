// Inclusive scan of integers: blocks, then the block sums, then the offsets added.
//
// /// kernel-forge
// kernel = "scan_blocks"
// reference = { y = "np.cumsum(x)" }
// cases = [{ n = 2000 }, { n = 129 }]
// where = ["n > 0", "n <= BLOCK * BLOCK"]
//
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// sums = { shape = ["cdiv(n, BLOCK)"], role = "scratch" }
// count = "cdiv(n, BLOCK)"
//
// [[launch]]
// kernel = "scan_blocks"
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
//
// [[launch]]
// kernel = "scan_sums"
// grid = 1
// block = "BLOCK"
//
// [[launch]]
// kernel = "add_offsets"
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
//
// [tune]
// BLOCK = [64, 128]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif

__device__ int scan_block(int value) {
  __shared__ int warp_sums[BLOCK / 32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int offset = 1; offset < 32; offset *= 2) {
    int other = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += other;
  }
  if (lane == 31) warp_sums[warp] = value;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < warp; ++w) before += warp_sums[w];
  __syncthreads();
  return value + before;
}

__global__ void scan_blocks(const int* x, int* y, int* sums, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int value = scan_block(i < n ? x[i] : 0);
  if (i < n) y[i] = value;
  if (threadIdx.x == BLOCK - 1) sums[blockIdx.x] = value;
}

__global__ void scan_sums(int* sums, int count) {
  int value = scan_block(threadIdx.x < count ? sums[threadIdx.x] : 0);
  if (threadIdx.x < count) sums[threadIdx.x] = value;
}

__global__ void add_offsets(int* y, const int* sums, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (blockIdx.x > 0 && i < n) y[i] += sums[blockIdx.x - 1];
}

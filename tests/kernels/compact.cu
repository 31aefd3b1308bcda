// Keep the positive elements in order within a block: votes, ranks by popc, counts by block votes.
//
// /// kernel-forge
// kernel = "compact"
// cases = [{ n = 256 }, { n = 100 }]
// where = ["n <= 256", "n > 0"]
//
// [reference]
// kept = "compact.py:compact"
// count = "compact.py:compact"
//
// [args]
// x = { shape = ["n"] }
// kept = { shape = ["n"], role = "inout", init = { kind = "constant", value = -1 } }
// count = { shape = [3], role = "out" }
//
// [launch]
// grid = 1
// block = 256
// ///
__global__ void compact(const int* x, int* kept, int* count, int n) {
  __shared__ int offsets[9];
  int i = threadIdx.x, lane = i % 32, warp = i / 32;
  bool keep = i < n && x[i] > 0;
  unsigned votes = __ballot_sync(0xffffffffu, keep);
  if (lane == 0) offsets[warp + 1] = __popc(votes);
  if (i == 0) offsets[0] = 0;
  __syncthreads();
  if (i == 0) {
    for (int w = 1; w <= 8; ++w) offsets[w] += offsets[w - 1];
  }
  __syncthreads();
  if (keep) kept[offsets[warp] + __popc(votes & ((1u << lane) - 1))] = x[i];
  int total = __syncthreads_count(keep);
  int any = __syncthreads_or(keep);
  int all = __syncthreads_and(keep || i >= n);
  if (i == 0) {
    count[0] = total;
    count[1] = any != 0;
    count[2] = all != 0;
  }
}

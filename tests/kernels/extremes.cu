// Smallest float by compare-and-swap and a sum of doubles by atomics; values equal in a warp found by match.
//
// /// kernel-forge
// kernel = "extremes"
// cases = [{ n = 1500 }, { n = 37 }]
//
// [reference]
// smallest = "np.minimum(smallest, np.min(x, initial=np.inf))"
// sum = "sum + np.sum(x)"
// pairs = "extremes.py:pairs"
//
// [args]
// x = { shape = ["n"] }
// keys = { shape = ["n"], init = { kind = "integers", low = 0, high = 5 } }
// smallest = { shape = [1], role = "inout" }
// sum = { shape = [1], role = "inout" }
// pairs = { shape = ["n"], role = "out" }
//
// [launch]
// grid = "max(1, cdiv(n, 64))"
// block = 64
// ///
__device__ void atomic_min(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = *bits;
  while (value < __int_as_float(old)) {
    int seen = atomicCAS(bits, old, __float_as_int(value));
    if (seen == old) break;
    old = seen;
  }
}

__global__ void extremes(const float* x, const int* keys, float* smallest, double* sum, int* pairs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool inside = i < n;
  unsigned active = __ballot_sync(0xffffffffu, inside);
  if (!inside) return;
  atomic_min(smallest, x[i]);
  atomicAdd(sum, static_cast<double>(x[i]));
  unsigned same = __match_any_sync(active, keys[i]);
  pairs[i] = __popc(same);
}

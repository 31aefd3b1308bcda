#include <float.h>

// Largest value of each row and where it stands; the first of equal ones wins.
//
// /// kernel-forge
// kernel = "argmax"
// cases = [{ rows = 40, cols = 100 }, { rows = 3, cols = 33 }]
// where = ["cols > 0"]
//
// [reference]
// best = "x.max(axis=1)"
// where_ = "x.argmax(axis=1)"
//
// [args]
// x = { shape = ["rows", "cols"] }
// best = { shape = ["rows"], role = "out" }
// where_ = { shape = ["rows"], role = "out" }
//
// [launch]
// grid = "rows"
// block = 32
// ///
__global__ void argmax(const float* x, float* best, int* where_, int rows, int cols) {
  const float* in = x + blockIdx.x * cols;
  float value = -FLT_MAX;
  int place = cols;
  for (int c = threadIdx.x; c < cols; c += 32) {
    if (in[c] > value) {
      value = in[c];
      place = c;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float other = __shfl_down_sync(0xffffffffu, value, offset);
    int other_place = __shfl_down_sync(0xffffffffu, place, offset);
    if (other > value || (other == value && other_place < place)) {
      value = other;
      place = other_place;
    }
  }
  if (threadIdx.x == 0) {
    best[blockIdx.x] = value;
    where_[blockIdx.x] = place;
  }
}

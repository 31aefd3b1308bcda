#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// Layer normalisation, a warp per row; also hands out mean and reciprocal deviation.
//
// /// kernel-forge
// kernel = "norms::layer_norm"
// cases = [{ rows = 96, cols = 257 }, { rows = 5, cols = 31 }]
// where = ["cols > 0"]
//
// [reference]
// y = "layer_norm.py:layer_norm"
// mean = "layer_norm.py:layer_norm"
// rstd = "layer_norm.py:layer_norm"
//
// [args]
// x = { shape = ["rows", "cols"] }
// gamma = { shape = ["cols"], init = "uniform" }
// beta = { shape = ["cols"] }
// y = { shape = ["rows", "cols"], role = "out" }
// mean = { shape = ["rows"], role = "out" }
// rstd = { shape = ["rows"], role = "out" }
//
// [launch]
// grid = "cdiv(rows, WARPS)"
// block = "32 * WARPS"
//
// [tune]
// WARPS = [2, 4, 8]
// ///
#ifndef WARPS
#define WARPS 4
#endif

namespace norms {
__global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* y, float* mean, float* rstd,
                           int rows, int cols) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= rows) return;
  const float* in = x + row * cols;
  float sum = 0.0f;
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) sum += in[c];
  float m = cg::reduce(warp, sum, cg::plus<float>()) / cols;
  float squares = 0.0f;
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) {
    float d = in[c] - m;
    squares += d * d;
  }
  float s = rsqrtf(cg::reduce(warp, squares, cg::plus<float>()) / cols + 1e-5f);
  if (warp.thread_rank() == 0) {
    mean[row] = m;
    rstd[row] = s;
  }
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) {
    y[row * cols + c] = (in[c] - m) * s * gamma[c] + beta[c];
  }
}
}  // namespace norms

#include <cooperative_groups.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

// Steps of a Jacobi iteration in one cooperative launch; blocks meet between the steps.
//
// /// kernel-forge
// kernel = "jacobi"
// reference = { a = "jacobi.py:jacobi" }
// cases = [{ n = 200, steps = 6 }, { n = 40, steps = 3 }]
// where = ["n >= 2", "n <= 2048", "steps <= 8", "steps % 2 == 0 or steps == 3"]
//
// [args]
// a = { shape = ["n"], role = "inout" }
// b = { shape = ["n"], role = "scratch" }
//
// [launch]
// grid = 4
// block = 32
// cooperative = true
// ///
__global__ void jacobi(double* a, double* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  assert(gridDim.x == 4);
  double* from = a;
  double* to = b;
  for (int step = 0; step < steps; ++step) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      double left = i > 0 ? from[i - 1] : 0.0, right = i < n - 1 ? from[i + 1] : 0.0;
      to[i] = 0.5 * from[i] + 0.25 * (left + right);
    }
    grid.sync();
    double* other = from;
    from = to;
    to = other;
  }
  if (from != a) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) a[i] = from[i];
  }
  if (grid.thread_rank() == 0 && steps > 1000) printf("%d steps\n", steps);
}

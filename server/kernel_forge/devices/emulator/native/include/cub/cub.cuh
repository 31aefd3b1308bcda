// The block- and warp-wide primitives of CUB that kernels use most, on the emulator's barriers. The rest of CUB is host
// code or tuned for hardware.
#pragma once
#include "../kf_cuda.h"

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

struct Sum { template <class T> T operator()(const T& a, const T& b) const { return a + b; } };
struct Max { template <class T> T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <class T> T operator()(const T& a, const T& b) const { return b < a ? b : a; } };

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce {
 public:
  struct TempStorage { T values[X * Y * Z]; };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  // The result is valid in thread 0 only, as with CUB.
  template <class Op> T Reduce(T value, Op op, int valid = X * Y * Z, KF_SITE) {
    unsigned rank = cooperative_groups::details::rank_in_block();
    storage_.values[rank] = value;
    kf_block_barrier(0, 1, KF_AT);
    if (rank != 0) return value;
    for (int step = 1; step < valid; step *= 2)
      for (int i = 0; i + step < valid; i += 2 * step) storage_.values[i] = op(storage_.values[i], storage_.values[i + step]);
    return storage_.values[0];
  }
  T Sum(T value, KF_SITE) { return Reduce(value, cub::Sum(), X * Y * Z, KF_AT); }
  T Sum(T value, int valid, KF_SITE) { return Reduce(value, cub::Sum(), valid, KF_AT); }

 private:
  TempStorage& storage_;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan {
 public:
  struct TempStorage { T values[X * Y * Z]; };
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}
  void InclusiveSum(T value, T& result, KF_SITE) { scan(value, result, true, KF_AT); }
  void ExclusiveSum(T value, T& result, KF_SITE) { scan(value, result, false, KF_AT); }
  void InclusiveSum(T value, T& result, T& total, KF_SITE) { total = scan(value, result, true, KF_AT); }
  void ExclusiveSum(T value, T& result, T& total, KF_SITE) { total = scan(value, result, false, KF_AT); }

 private:
  T scan(T value, T& result, bool inclusive, KF_SITE) {
    unsigned rank = cooperative_groups::details::rank_in_block();
    storage_.values[rank] = value;
    kf_block_barrier(0, 1, KF_AT);
    T sum{}, before{};
    for (unsigned i = 0; i < X * Y * Z; ++i) {
      if (i == rank) before = sum;
      sum = sum + storage_.values[i];
    }
    kf_block_barrier(0, 1, KF_AT);
    result = inclusive ? before + value : before;
    return sum;
  }
  TempStorage& storage_;
};

template <class T, int N = 32>
class WarpReduce {
 public:
  struct TempStorage { T unused; };
  explicit WarpReduce(TempStorage&) {}
  template <class Op> T Reduce(T value, Op op, KF_SITE) {
    for (int offset = N / 2; offset > 0; offset /= 2) {
      T other = __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(offset), N, KF_AT);
      value = op(value, other);
    }
    return value;
  }
  T Sum(T value, KF_SITE) { return Reduce(value, cub::Sum(), KF_AT); }
};

}  // namespace cub

// cub::BlockReduce. The result is valid in thread 0 only, as with CUB.
#pragma once
#include "../operators.cuh"

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS, BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC };

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce {
 public:
  struct TempStorage { T values[X * Y * Z]; };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Op> T Reduce(T value, Op op, int valid, KF_PLACE) {
    unsigned rank = details::rank();
    storage_.values[rank] = value;
    kf_block_barrier(0, 1, KF_THERE);
    return rank == 0 ? details::tree(storage_.values, valid, op) : value;
  }
  template <class Op> T Reduce(T value, Op op, KF_PLACE) { return Reduce(value, op, X * Y * Z, kf_place); }
  template <int N, class Op> T Reduce(T (&items)[N], Op op, KF_PLACE) { return Reduce(details::fold(items, op), op, X * Y * Z, kf_place); }
  T Sum(T value, KF_PLACE) { return Reduce(value, cub::Sum(), X * Y * Z, kf_place); }
  T Sum(T value, int valid, KF_PLACE) { return Reduce(value, cub::Sum(), valid, kf_place); }
  template <int N> T Sum(T (&items)[N], KF_PLACE) { return Reduce(items, cub::Sum(), kf_place); }

 private:
  TempStorage& storage_;
};

}  // namespace cub

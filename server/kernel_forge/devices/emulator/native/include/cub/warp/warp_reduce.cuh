// cub::WarpReduce. The result is valid in lane 0 of the logical warp only.
#pragma once
#include "../operators.cuh"

namespace cub {

template <class T, int N = 32>
class WarpReduce {
 public:
  struct TempStorage { char unused; };
  explicit WarpReduce(TempStorage&) {}

  template <class Op> T Reduce(T value, Op op, int valid, KF_PLACE) {
    kf::Lanes lanes = kf::exchange(details::members<N>(), value, KF_THERE);
    unsigned first = details::first_lane<N>();
    if (kf_lane_id() != first) return value;
    T values[N];
    for (int i = 0; i < valid; ++i) values[i] = lanes.get<T>(first + static_cast<unsigned>(i), KF_THERE);
    return details::tree(values, valid, op);
  }
  template <class Op> T Reduce(T value, Op op, KF_PLACE) { return Reduce(value, op, N, kf_place); }
  T Sum(T value, KF_PLACE) { return Reduce(value, cub::Sum(), N, kf_place); }
  T Sum(T value, int valid, KF_PLACE) { return Reduce(value, cub::Sum(), valid, kf_place); }
};

}  // namespace cub

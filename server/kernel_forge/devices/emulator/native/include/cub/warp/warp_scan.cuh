// cub::WarpScan.
#pragma once
#include "../operators.cuh"

namespace cub {

template <class T, int N = 32>
class WarpScan {
 public:
  struct TempStorage { char unused; };
  explicit WarpScan(TempStorage&) {}

  void InclusiveSum(T in, T& out, KF_PLACE) { T all; scan(in, &out, nullptr, nullptr, cub::Sum(), all, kf_place); }
  void InclusiveSum(T in, T& out, T& all, KF_PLACE) { scan(in, &out, nullptr, nullptr, cub::Sum(), all, kf_place); }
  void ExclusiveSum(T in, T& out, KF_PLACE) { T all, zero{}; scan(in, nullptr, &out, &zero, cub::Sum(), all, kf_place); }
  void ExclusiveSum(T in, T& out, T& all, KF_PLACE) { T zero{}; scan(in, nullptr, &out, &zero, cub::Sum(), all, kf_place); }
  template <class Op> void InclusiveScan(T in, T& out, Op op, KF_PLACE) { T all; scan(in, &out, nullptr, nullptr, op, all, kf_place); }
  template <class Op> void InclusiveScan(T in, T& out, Op op, T& all, KF_PLACE) { scan(in, &out, nullptr, nullptr, op, all, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, Op op, KF_PLACE) { T all; scan(in, nullptr, &out, nullptr, op, all, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, Op op, T& all, KF_PLACE) { scan(in, nullptr, &out, nullptr, op, all, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, T first, Op op, KF_PLACE) { T all; scan(in, nullptr, &out, &first, op, all, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, T first, Op op, T& all, KF_PLACE) { scan(in, nullptr, &out, &first, op, all, kf_place); }
  void Sum(T in, T& inclusive, T& exclusive, KF_PLACE) { T all, zero{}; scan(in, &inclusive, &exclusive, &zero, cub::Sum(), all, kf_place); }
  T Broadcast(T in, unsigned source, KF_PLACE) {
    return kf::exchange(details::members<N>(), in, KF_THERE).template get<T>(details::first_lane<N>() + source, KF_THERE);
  }

 private:
  template <class Op> void scan(T in, T* inclusive, T* exclusive, const T* first, Op op, T& all, kf::Place kf_place) {
    kf::Lanes lanes = kf::exchange(details::members<N>(), in, KF_THERE);
    unsigned base = details::first_lane<N>(), self = kf_lane_id() - base;
    T sum{}, total{};
    bool any = first != nullptr;
    if (any) sum = *first;
    for (unsigned i = 0; i < N; ++i) {
      if (!(lanes.arrived >> (base + i) & 1)) continue;
      T item = lanes.get<T>(base + i, KF_THERE);
      total = i ? op(total, item) : item;
      if (i == self && exclusive) {
        if (any) *exclusive = sum;
        else kf_warp_absent(0, 32, exclusive, sizeof(T), KF_THERE);  // undefined: poison
      }
      sum = any ? op(sum, item) : item;
      any = true;
      if (i == self && inclusive) *inclusive = sum;
    }
    all = total;
  }
};

}  // namespace cub

// cub::BlockScan.
#pragma once
#include "../operators.cuh"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan {
 public:
  struct TempStorage {
    T values[X * Y * Z];
    T prefix;
  };
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  // What may come last: where the total goes, or a function from the total to what stands before the block.
  class Tail {
    friend class BlockScan;
    T* total_ = nullptr;
    void* function_ = nullptr;
    T (*call_)(void*, T) = nullptr;

   public:
    Tail() = default;
    Tail(T& total) : total_(&total) {}
    template <class F, class = decltype(T(std::declval<F&>()(std::declval<T>())))>
    Tail(F& f) : function_(&f), call_([](void* p, T total) -> T { return (*static_cast<F*>(p))(total); }) {}
  };

  void InclusiveSum(T in, T& out, Tail tail = Tail(), KF_PLACE) { scan(&in, &out, 1, true, nullptr, cub::Sum(), tail, kf_place); }
  void ExclusiveSum(T in, T& out, Tail tail = Tail(), KF_PLACE) {
    T zero{};
    scan(&in, &out, 1, false, &zero, cub::Sum(), tail, kf_place);
  }
  template <class Op> void InclusiveScan(T in, T& out, Op op, Tail tail = Tail(), KF_PLACE) { scan(&in, &out, 1, true, nullptr, op, tail, kf_place); }
  template <class Op> void InclusiveScan(T in, T& out, T first, Op op, Tail tail = Tail(), KF_PLACE) { scan(&in, &out, 1, true, &first, op, tail, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, Op op, Tail tail = Tail(), KF_PLACE) { scan(&in, &out, 1, false, nullptr, op, tail, kf_place); }
  template <class Op> void ExclusiveScan(T in, T& out, T first, Op op, Tail tail = Tail(), KF_PLACE) { scan(&in, &out, 1, false, &first, op, tail, kf_place); }
  template <int N> void InclusiveSum(T (&in)[N], T (&out)[N], Tail tail = Tail(), KF_PLACE) { scan(in, out, N, true, nullptr, cub::Sum(), tail, kf_place); }
  template <int N> void ExclusiveSum(T (&in)[N], T (&out)[N], Tail tail = Tail(), KF_PLACE) {
    T zero{};
    scan(in, out, N, false, &zero, cub::Sum(), tail, kf_place);
  }
  template <int N, class Op> void InclusiveScan(T (&in)[N], T (&out)[N], Op op, Tail tail = Tail(), KF_PLACE) { scan(in, out, N, true, nullptr, op, tail, kf_place); }
  template <int N, class Op> void InclusiveScan(T (&in)[N], T (&out)[N], T first, Op op, Tail tail = Tail(), KF_PLACE) { scan(in, out, N, true, &first, op, tail, kf_place); }
  template <int N, class Op> void ExclusiveScan(T (&in)[N], T (&out)[N], Op op, Tail tail = Tail(), KF_PLACE) { scan(in, out, N, false, nullptr, op, tail, kf_place); }
  template <int N, class Op> void ExclusiveScan(T (&in)[N], T (&out)[N], T first, Op op, Tail tail = Tail(), KF_PLACE) { scan(in, out, N, false, &first, op, tail, kf_place); }

 private:
  // `first` and what the tail's function returns count as an item before the first one; the total is without it. The
  // storage is free again only after a barrier of the caller's, as with CUB.
  template <class Op> void scan(const T* in, T* out, int n, bool inclusive, const T* first, Op op, const Tail& tail, kf::Place kf_place) {
    unsigned rank = details::rank();
    T own = in[0];
    for (int i = 1; i < n; ++i) own = op(own, in[i]);
    storage_.values[rank] = own;
    kf_block_barrier(0, 1, KF_THERE);
    T total = storage_.values[0];
    for (unsigned i = 1; i < X * Y * Z; ++i) total = op(total, storage_.values[i]);
    if (tail.total_) *tail.total_ = total;
    if (tail.call_) {
      if (rank < 32) {
        T before = tail.call_(tail.function_, total);
        if (rank == 0) storage_.prefix = before;
      }
      kf_block_barrier(0, 1, KF_THERE);
      first = &storage_.prefix;
    }
    bool any = first != nullptr;
    T sum = any ? *first : T();
    for (unsigned i = 0; i < rank; ++i, any = true) sum = any ? op(sum, storage_.values[i]) : storage_.values[i];
    for (int i = 0; i < n; ++i, any = true) {
      T next = any ? op(sum, in[i]) : in[i];
      if (inclusive || any) out[i] = inclusive ? next : sum;
      else kf_warp_absent(0, 32, &out[i], sizeof(T), KF_THERE);  // undefined: poison
      sum = next;
    }
  }
  TempStorage& storage_;
};

}  // namespace cub

// cub::BlockStore and the functions that store directly.
#pragma once
#include "../operators.cuh"

namespace cub {

enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED };

template <class T, int N, class To> inline void StoreDirectBlocked(int thread, To to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[thread * N + i] = items[i];
}
template <class T, int N, class To> inline void StoreDirectBlocked(int thread, To to, T (&items)[N], int valid) {
  for (int i = 0; i < N; ++i)
    if (thread * N + i < valid) to[thread * N + i] = items[i];
}
template <int Threads, class T, int N, class To> inline void StoreDirectStriped(int thread, To to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[i * Threads + thread] = items[i];
}
template <int Threads, class T, int N, class To> inline void StoreDirectStriped(int thread, To to, T (&items)[N], int valid) {
  for (int i = 0; i < N; ++i)
    if (i * Threads + thread < valid) to[i * Threads + thread] = items[i];
}

template <class T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1>
class BlockStore {
 public:
  struct TempStorage { char unused; };
  BlockStore() = default;
  explicit BlockStore(TempStorage&) {}
  template <class To> void Store(To to, T (&items)[N], KF_PLACE) {
    meet(kf_place);
    if (A == BLOCK_STORE_STRIPED) StoreDirectStriped<X * Y * Z>(thread(), to, items);
    else StoreDirectBlocked(thread(), to, items);
  }
  template <class To> void Store(To to, T (&items)[N], int valid, KF_PLACE) {
    meet(kf_place);
    if (A == BLOCK_STORE_STRIPED) StoreDirectStriped<X * Y * Z>(thread(), to, items, valid);
    else StoreDirectBlocked(thread(), to, items, valid);
  }

 private:
  static int thread() { return static_cast<int>(details::rank()); }
  static void meet(kf::Place kf_place) {
    if (A == BLOCK_STORE_TRANSPOSE || A == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED) kf_block_barrier(0, 1, KF_THERE);
    if (A == BLOCK_STORE_WARP_TRANSPOSE) kf_warp_barrier(0xffffffffu, KF_THERE);
  }
};

}  // namespace cub

// cub::BlockLoad and the functions that load directly.
#pragma once
#include "../operators.cuh"

namespace cub {

enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED };

template <class T, int N, class From> inline void LoadDirectBlocked(int thread, From from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[thread * N + i];
}
template <class T, int N, class From> inline void LoadDirectBlocked(int thread, From from, T (&items)[N], int valid) {
  for (int i = 0; i < N; ++i)
    if (thread * N + i < valid) items[i] = from[thread * N + i];
}
template <class T, class D, int N, class From> inline void LoadDirectBlocked(int thread, From from, T (&items)[N], int valid, D fallback) {
  for (int i = 0; i < N; ++i) items[i] = thread * N + i < valid ? static_cast<T>(from[thread * N + i]) : static_cast<T>(fallback);
}
template <int Threads, class T, int N, class From> inline void LoadDirectStriped(int thread, From from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[i * Threads + thread];
}
template <int Threads, class T, int N, class From> inline void LoadDirectStriped(int thread, From from, T (&items)[N], int valid) {
  for (int i = 0; i < N; ++i)
    if (i * Threads + thread < valid) items[i] = from[i * Threads + thread];
}
template <int Threads, class T, class D, int N, class From> inline void LoadDirectStriped(int thread, From from, T (&items)[N], int valid, D fallback) {
  for (int i = 0; i < N; ++i) items[i] = i * Threads + thread < valid ? static_cast<T>(from[i * Threads + thread]) : static_cast<T>(fallback);
}

template <class T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1>
class BlockLoad {
 public:
  struct TempStorage { char unused; };
  BlockLoad() = default;
  explicit BlockLoad(TempStorage&) {}
  template <class From> void Load(From from, T (&items)[N], KF_PLACE) {
    if (A == BLOCK_LOAD_STRIPED) LoadDirectStriped<X * Y * Z>(thread(), from, items);
    else LoadDirectBlocked(thread(), from, items);
    meet(kf_place);
  }
  template <class From> void Load(From from, T (&items)[N], int valid, KF_PLACE) {
    if (A == BLOCK_LOAD_STRIPED) LoadDirectStriped<X * Y * Z>(thread(), from, items, valid);
    else LoadDirectBlocked(thread(), from, items, valid);
    meet(kf_place);
  }
  template <class From, class D> void Load(From from, T (&items)[N], int valid, D fallback, KF_PLACE) {
    if (A == BLOCK_LOAD_STRIPED) LoadDirectStriped<X * Y * Z>(thread(), from, items, valid, fallback);
    else LoadDirectBlocked(thread(), from, items, valid, fallback);
    meet(kf_place);
  }

 private:
  static int thread() { return static_cast<int>(details::rank()); }
  // Transposing goes through shared memory, so all threads must come.
  static void meet(kf::Place kf_place) {
    if (A == BLOCK_LOAD_TRANSPOSE || A == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED) kf_block_barrier(0, 1, KF_THERE);
    if (A == BLOCK_LOAD_WARP_TRANSPOSE) kf_warp_barrier(0xffffffffu, KF_THERE);
  }
};

}  // namespace cub

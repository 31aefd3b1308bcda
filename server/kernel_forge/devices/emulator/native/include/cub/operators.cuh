// Operators and what the collectives share.
#pragma once
#include "../kf_cuda.h"

namespace cub {

struct Sum { template <class T, class U> auto operator()(const T& a, const U& b) const { return a + b; } };
struct Max { template <class T> T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <class T> T operator()(const T& a, const T& b) const { return b < a ? b : a; } };

template <class Key, class Value> struct KeyValuePair {
  using Key_ = Key;
  Key key;
  Value value;
  KeyValuePair() = default;
  KeyValuePair(Key k, Value v) : key(k), value(v) {}
};
// Of equal values the smaller key.
struct ArgMax {
  template <class P> P operator()(const P& a, const P& b) const { return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a; }
};
struct ArgMin {
  template <class P> P operator()(const P& a, const P& b) const { return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a; }
};

namespace details {
inline unsigned rank() { return cooperative_groups::details::rank_in_block(); }
// Neighbours combined pairwise: the order of the operands is kept.
template <class T, class Op> inline T tree(T* values, int n, Op op) {
  for (int step = 1; step < n; step *= 2)
    for (int i = 0; i + step < n; i += 2 * step) values[i] = op(values[i], values[i + step]);
  return values[0];
}
template <class T, int N, class Op> inline T fold(const T (&items)[N], Op op) {
  T value = items[0];
  for (int i = 1; i < N; ++i) value = op(value, items[i]);
  return value;
}
// The lanes of the caller's logical warp of N threads.
template <int N> inline unsigned first_lane() { return kf_lane_id() / N * N; }
template <int N> inline unsigned members() { return (N == 32 ? 0xffffffffu : ((1u << (N % 32)) - 1) << first_lane<N>()); }
}  // namespace details

}  // namespace cub

// Cooperative groups: blocks, grid, tiles of a warp, coalesced threads, and the collectives on them.
#pragma once
#include "memory.h"

namespace cooperative_groups {

namespace details {
inline unsigned rank_in_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned existing_lanes() {
  unsigned first = rank_in_block() & ~31u, left = block_threads() - first;
  return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}
inline unsigned nth_lane(unsigned mask, unsigned n) {
  while (n--) mask &= mask - 1;
  return mask ? static_cast<unsigned>(__builtin_ctz(mask)) : 32;
}
inline unsigned below() { return (1u << kf_lane_id()) - 1; }
// Bits of `votes` at the positions of `mask`, packed.
inline unsigned pack(unsigned votes, unsigned mask) {
  unsigned packed = 0, n = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) packed |= (votes >> lane & 1) << n++;
  return packed;
}
}  // namespace details

struct thread_block {
  void sync(KF_SITE) const { kf_block_barrier(0, 1, KF_AT); }
  struct arrival_token {};
  arrival_token barrier_arrive(KF_SITE) const { kf_unsupported("thread_block::barrier_arrive", KF_AT); }
  void barrier_wait(arrival_token&&, KF_SITE) const { kf_unsupported("thread_block::barrier_wait", KF_AT); }
  static unsigned thread_rank() { return details::rank_in_block(); }
  static unsigned size() { return details::block_threads(); }
  static unsigned num_threads() { return details::block_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
template <unsigned> struct block_tile_memory {};
template <unsigned N> inline thread_block this_thread_block(block_tile_memory<N>&) { return {}; }

struct grid_group {
  bool is_valid() const { return true; }
  void sync(KF_SITE) const { kf_grid_barrier(KF_AT); }
  static unsigned long long block_rank() {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  static unsigned long long num_blocks() { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * details::block_threads() + details::rank_in_block(); }
  static unsigned long long size() { return num_blocks() * details::block_threads(); }
  static unsigned long long num_threads() { return size(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
};
inline grid_group this_grid() { return {}; }

// Lanes of one warp under a mask: what tiles and coalesced groups share.
struct lane_group {
  unsigned mask;
  void sync(KF_SITE) const { kf_warp_barrier(mask, KF_AT); }
  unsigned size() const { return static_cast<unsigned>(__popc(mask)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return static_cast<unsigned>(__popc(mask & details::below())); }
  unsigned ballot(int p, KF_SITE) const { return details::pack(kf::ballot(mask, p, KF_AT), mask); }
  int any(int p, KF_SITE) const { return kf::ballot(mask, p, KF_AT) != 0; }
  int all(int p, KF_SITE) const { return kf::ballot(mask, !p, KF_AT) == 0; }
  template <class T> unsigned match_any(T v, KF_SITE) const { return details::pack(__match_any_sync(mask, v, KF_AT), mask); }
  template <class T> unsigned match_all(T v, int& p, KF_SITE) const { return details::pack(__match_all_sync(mask, v, &p, KF_AT), mask); }
  // Ranks outside the group read the caller's own value, as the hardware's shuffles do at a segment's end.
  template <class T> T shfl(T v, unsigned rank, KF_SITE) const {
    return kf::exchange(mask, v, KF_AT).template get<T>(details::nth_lane(mask, rank % size()), KF_AT);
  }
  template <class T> T shfl_down(T v, unsigned delta, KF_SITE) const {
    kf::Lanes lanes = kf::exchange(mask, v, KF_AT);
    unsigned rank = thread_rank() + delta;
    return rank < size() ? lanes.get<T>(details::nth_lane(mask, rank), KF_AT) : v;
  }
  template <class T> T shfl_up(T v, unsigned delta, KF_SITE) const {
    kf::Lanes lanes = kf::exchange(mask, v, KF_AT);
    unsigned rank = thread_rank();
    return rank >= delta ? lanes.get<T>(details::nth_lane(mask, rank - delta), KF_AT) : v;
  }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
};

struct coalesced_group : lane_group {};
inline coalesced_group coalesced_threads(KF_SITE) { return {{kf_active_mask(KF_AT)}}; }

template <unsigned N, class Parent = void>
struct thread_block_tile : lane_group {
  static_assert(N >= 1 && (N & (N - 1)) == 0, "a tile has a power of two threads");
  static_assert(N <= 32, "tiles of more than one warp are not emulated");
  thread_block_tile() : lane_group{0} {
    unsigned first = kf_lane_id() & ~(N - 1);
    mask = (N == 32 ? 0xffffffffu : ((1u << (N % 32)) - 1) << first) & details::existing_lanes();
  }
  template <class Other> thread_block_tile(const thread_block_tile<N, Other>& o) : lane_group{o.mask} {}
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  unsigned thread_rank() const { return kf_lane_id() & (N - 1); }
  unsigned meta_group_rank() const { return details::rank_in_block() / N; }
  unsigned meta_group_size() const { return (details::block_threads() + N - 1) / N; }
  template <class T> T shfl(T v, int rank, KF_SITE) const { return __shfl_sync(mask, v, rank, N, KF_AT); }
  template <class T> T shfl_down(T v, unsigned d, KF_SITE) const { return __shfl_down_sync(mask, v, d, N, KF_AT); }
  template <class T> T shfl_up(T v, unsigned d, KF_SITE) const { return __shfl_up_sync(mask, v, d, N, KF_AT); }
  template <class T> T shfl_xor(T v, int d, KF_SITE) const { return __shfl_xor_sync(mask, v, d, N, KF_AT); }
};
template <unsigned N, class Group> inline thread_block_tile<N, Group> tiled_partition(const Group&) { return {}; }

// A group whose kind is known only at run time.
struct thread_group {
  unsigned mask;
  bool whole_block;
  thread_group(const thread_block&) : mask(0), whole_block(true) {}
  thread_group(const lane_group& g) : mask(g.mask), whole_block(false) {}
  void sync(KF_SITE) const {
    if (whole_block) kf_block_barrier(0, 1, KF_AT);
    else kf_warp_barrier(mask, KF_AT);
  }
  unsigned size() const { return whole_block ? details::block_threads() : static_cast<unsigned>(__popc(mask)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return whole_block ? details::rank_in_block() : static_cast<unsigned>(__popc(mask & details::below())); }
};
inline thread_group tiled_partition(const thread_group&, unsigned n) {
  unsigned first = kf_lane_id() & ~(n - 1);
  unsigned mask = n >= 32 ? 0xffffffffu : ((1u << n) - 1) << first;
  return thread_group(lane_group{mask & details::existing_lanes()});
}
template <class Group> inline coalesced_group binary_partition(const Group& g, bool p, KF_SITE) {
  unsigned yes = kf::ballot(g.mask, p, KF_AT);
  return {{p ? yes : g.mask & details::existing_lanes() & ~yes}};
}
template <class Group, class Label> inline coalesced_group labeled_partition(const Group& g, Label label, KF_SITE) {
  return {{__match_any_sync(g.mask, label, KF_AT)}};
}

template <class Group> inline void sync(const Group& g, KF_SITE) { g.sync(KF_AT); }
inline void sync(const thread_block& g, KF_SITE) { g.sync(KF_AT); }
template <class Group, class F, class... A> inline void invoke_one(const Group& g, F&& f, A&&... a) {
  if (g.thread_rank() == 0) f(a...);
}

#define KF_OPERATOR(NAME, EXPRESSION)                                           \
  template <class T = void> struct NAME {                                       \
    template <class U> U operator()(U a, U b) const { return EXPRESSION; }      \
  };
KF_OPERATOR(plus, a + b) KF_OPERATOR(less, (b < a ? b : a)) KF_OPERATOR(greater, (a < b ? b : a))
KF_OPERATOR(bit_and, a & b) KF_OPERATOR(bit_or, a | b) KF_OPERATOR(bit_xor, a ^ b)
#undef KF_OPERATOR

// Combined pairwise, as the hardware's shuffle tree does.
template <class Group, class T, class Op> inline T reduce(const Group& g, T value, Op op, KF_SITE) {
  kf::Lanes lanes = kf::exchange(g.mask, value, KF_AT);
  T values[32];
  int n = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.arrived >> lane & 1) values[n++] = lanes.get<T>(lane);
  for (int step = 1; step < n; step *= 2)
    for (int i = 0; i + step < n; i += 2 * step) values[i] = op(values[i], values[i + step]);
  return values[0];
}
template <class Group, class T, class Op> inline T inclusive_scan(const Group& g, T value, Op op, KF_SITE) {
  kf::Lanes lanes = kf::exchange(g.mask, value, KF_AT);
  T result = value;
  bool first = true;
  for (unsigned lane = 0; lane <= kf_lane_id(); ++lane)
    if (lanes.arrived >> lane & 1) {
      result = first ? lanes.get<T>(lane) : op(result, lanes.get<T>(lane));
      first = false;
    }
  return result;
}
template <class Group, class T, class Op> inline T exclusive_scan(const Group& g, T value, Op op, KF_SITE) {
  kf::Lanes lanes = kf::exchange(g.mask, value, KF_AT);
  T result{};
  bool first = true;
  for (unsigned lane = 0; lane < kf_lane_id(); ++lane)
    if (lanes.arrived >> lane & 1) {
      result = first ? lanes.get<T>(lane) : op(result, lanes.get<T>(lane));
      first = false;
    }
  return result;
}
template <class Group, class T> inline T inclusive_scan(const Group& g, T v, KF_SITE) { return inclusive_scan(g, v, plus<T>(), KF_AT); }
template <class Group, class T> inline T exclusive_scan(const Group& g, T v, KF_SITE) { return exclusive_scan(g, v, plus<T>(), KF_AT); }

struct cluster_group {
  void sync(KF_SITE) const { kf_unsupported("thread block clusters", KF_AT); }
  unsigned block_rank(KF_SITE) const { kf_unsupported("thread block clusters", KF_AT); }
  unsigned num_blocks(KF_SITE) const { kf_unsupported("thread block clusters", KF_AT); }
  template <class T> T* map_shared_rank(T*, unsigned, KF_SITE) const { kf_unsupported("thread block clusters", KF_AT); }
};
inline cluster_group this_cluster() { return {}; }

}  // namespace cooperative_groups

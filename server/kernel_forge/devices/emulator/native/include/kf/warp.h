// Barriers and warp intrinsics. Semantics: CUDA C++ programming guide, synchronisation and warp functions.
#pragma once
#include "vectors.h"

static inline void __syncthreads(KF_SITE) { kf_block_barrier(0, 1, KF_AT); }
static inline int __syncthreads_count(int p, KF_SITE) { return kf_block_barrier(1, p, KF_AT); }
static inline int __syncthreads_or(int p, KF_SITE) { return kf_block_barrier(2, p, KF_AT); }
static inline int __syncthreads_and(int p, KF_SITE) { return kf_block_barrier(3, p, KF_AT); }
static inline void __syncwarp(unsigned mask = 0xffffffffu, KF_SITE) { kf_warp_barrier(mask, KF_AT); }
static inline unsigned __activemask(KF_SITE) { return kf_active_mask(KF_AT); }
static inline void __barrier_sync(unsigned, KF_SITE) { kf_unsupported("named barriers", KF_AT); }
static inline void __barrier_sync_count(unsigned, unsigned, KF_SITE) { kf_unsupported("named barriers", KF_AT); }

namespace kf {

struct Lanes {
  const unsigned char* slots;
  unsigned arrived;
  unsigned mask;
  template <class T>
  T get(unsigned lane, KF_SITE) const {
    T value;
    if (lane < 32 && arrived >> lane & 1)
      memcpy(&value, slots + lane * kf_slot_bytes, sizeof(T));
    else
      kf_warp_absent(mask, lane, &value, sizeof(T), KF_AT);
    return value;
  }
};

template <class T>
inline Lanes exchange(unsigned mask, const T& value, KF_SITE) {
  static_assert(sizeof(T) <= kf_slot_bytes, "a shuffled value has at most 32 bytes");
  static_assert(std::is_trivially_copyable<T>::value, "a shuffled value must be trivially copyable");
  unsigned arrived;
  auto* slots = static_cast<const unsigned char*>(kf_warp_exchange(mask, &value, sizeof(T), &arrived, KF_AT));
  return {slots, arrived, mask};
}

// The lanes that voted yes; `arrived` receives those that voted at all.
inline unsigned vote(unsigned mask, int predicate, unsigned& arrived, KF_SITE) {
  Lanes lanes = exchange(mask, predicate != 0 ? 1u : 0u, KF_AT);
  unsigned yes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.arrived >> lane & 1 && lanes.get<unsigned>(lane)) yes |= 1u << lane;
  arrived = lanes.arrived;
  return yes;
}

inline unsigned ballot(unsigned mask, int predicate, KF_SITE) {
  unsigned arrived;
  return vote(mask, predicate, arrived, KF_AT);
}

}  // namespace kf

static inline unsigned __ballot_sync(unsigned mask, int p, KF_SITE) { return kf::ballot(mask, p, KF_AT); }
static inline int __any_sync(unsigned mask, int p, KF_SITE) { return kf::ballot(mask, p, KF_AT) != 0; }
static inline int __all_sync(unsigned mask, int p, KF_SITE) { return kf::ballot(mask, !p, KF_AT) == 0; }
static inline int __uni_sync(unsigned mask, int p, KF_SITE) {
  unsigned arrived, yes = kf::vote(mask, p, arrived, KF_AT);
  return yes == 0 || yes == arrived;
}

// The segment of `width` lanes the caller belongs to bounds the source lane.
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  unsigned first = kf_lane_id() & ~(static_cast<unsigned>(width) - 1);
  return lanes.get<T>(first | (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1)), KF_AT);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  unsigned lane = kf_lane_id(), first = lane & ~(static_cast<unsigned>(width) - 1);
  return lane - first < delta ? value : lanes.get<T>(lane - delta, KF_AT);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  unsigned lane = kf_lane_id(), last = lane | (static_cast<unsigned>(width) - 1);
  return delta > last - lane ? value : lanes.get<T>(lane + delta, KF_AT);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  unsigned lane = kf_lane_id(), source = lane ^ static_cast<unsigned>(lane_mask);
  // Lanes of an earlier segment can be read, later ones cannot.
  return source > (lane | (static_cast<unsigned>(width) - 1)) ? value : lanes.get<T>(source, KF_AT);
}
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.arrived >> lane & 1) {
      T other = lanes.get<T>(lane);
      if (memcmp(&other, &value, sizeof(T)) == 0) same |= 1u << lane;
    }
  return same;
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int* all, KF_SITE) {
  kf::Lanes lanes = kf::exchange(mask, value, KF_AT);
  bool same = true;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.arrived >> lane & 1) {
      T other = lanes.get<T>(lane);
      same = same && memcmp(&other, &value, sizeof(T)) == 0;
    }
  *all = same;
  return same ? lanes.arrived : 0;
}

namespace kf {
template <class T, class F>
inline T reduce_lanes(unsigned mask, T value, F combine, KF_SITE) {
  static_assert(std::is_same<T, int>::value || std::is_same<T, unsigned>::value,
                "__reduce_*_sync takes int or unsigned");
  Lanes lanes = exchange(mask, value, KF_AT);
  bool first = true;
  T result{};
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.arrived >> lane & 1) {
      T other = lanes.get<T>(lane);
      result = first ? other : combine(result, other);
      first = false;
    }
  return result;
}
}  // namespace kf
#define KF_REDUCE(NAME, EXPRESSION)                                                          \
  template <class T>                                                                         \
  static inline T __reduce_##NAME##_sync(unsigned mask, T value, KF_SITE) {                  \
    return kf::reduce_lanes(mask, value, [](T a, T b) -> T { return EXPRESSION; }, KF_AT);   \
  }
KF_REDUCE(add, static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
KF_REDUCE(min, (b < a ? b : a))
KF_REDUCE(max, (a < b ? b : a))
KF_REDUCE(and, a & b)
KF_REDUCE(or, a | b)
KF_REDUCE(xor, a ^ b)
#undef KF_REDUCE

static inline void __nanosleep(unsigned) { kf_spin(); }
static inline void __threadfence() { kf_fence(); }
static inline void __threadfence_block() { kf_fence(); }
static inline void __threadfence_system() { kf_fence(); }
static inline long long clock64() { return kf_clock(); }
static inline int kf_clock32() { return static_cast<int>(kf_clock()); }
#define clock kf_clock32
static inline unsigned long long globaltimer() { return static_cast<unsigned long long>(kf_clock()); }
static inline void __trap(KF_SITE) { kf_trap(KF_AT); }
static inline void __brkpt(KF_SITE) { kf_trap(KF_AT); }
static inline void __prof_trigger(int) {}

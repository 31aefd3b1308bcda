// Atomic functions: real ones of the host, because blocks run on several OS threads.
#pragma once
#include "half.h"
#include "warp.h"

namespace kf {

template <size_t N> struct bits_of;
template <> struct bits_of<2> { using type = uint16_t; };
template <> struct bits_of<4> { using type = uint32_t; };
template <> struct bits_of<8> { using type = uint64_t; };

template <class T, class F>
inline T update(T* address, F f) {
  using B = typename bits_of<sizeof(T)>::type;
  kf_spin();
  auto* bits = reinterpret_cast<B*>(address);
  B old_bits = __atomic_load_n(bits, __ATOMIC_RELAXED), new_bits;
  T old_value;
  do {
    memcpy(&old_value, &old_bits, sizeof(T));
    T new_value = f(old_value);
    memcpy(&new_bits, &new_value, sizeof(T));
  } while (!__atomic_compare_exchange_n(bits, &old_bits, new_bits, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old_value;
}

template <class T>
inline T compare_and_swap(T* address, T expected, T desired) {
  using B = typename bits_of<sizeof(T)>::type;
  kf_spin();
  B e, d;
  memcpy(&e, &expected, sizeof(T));
  memcpy(&d, &desired, sizeof(T));
  __atomic_compare_exchange_n(reinterpret_cast<B*>(address), &e, d, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  memcpy(&expected, &e, sizeof(T));
  return expected;
}

}  // namespace kf

// Overloads for exactly the types CUDA has, with the scopes' suffixes.
#define KF_ATOMIC(NAME, T, EXPRESSION)                                                                       \
  static inline T NAME(T* address, T value) {                                                                \
    return kf::update(address, [&](T old) -> T { return EXPRESSION; });                                      \
  }                                                                                                          \
  static inline T NAME##_block(T* address, T value) { return NAME(address, value); }                         \
  static inline T NAME##_system(T* address, T value) { return NAME(address, value); }
#define KF_ATOMIC_INTEGERS(NAME, EXPRESSION) \
  KF_ATOMIC(NAME, int, EXPRESSION)           \
  KF_ATOMIC(NAME, unsigned, EXPRESSION)      \
  KF_ATOMIC(NAME, unsigned long long, EXPRESSION)
#define KF_ATOMIC_WIDE(NAME, EXPRESSION) KF_ATOMIC_INTEGERS(NAME, EXPRESSION) KF_ATOMIC(NAME, long long, EXPRESSION)

// uint64_t is `unsigned long` on Linux; nvcc takes it for the same-sized `unsigned long long`, so do we.
#define KF_ATOMIC_LONG(NAME, EXPRESSION) KF_ATOMIC(NAME, unsigned long, EXPRESSION)

KF_ATOMIC_INTEGERS(atomicAdd, static_cast<decltype(old)>(static_cast<unsigned long long>(old) + static_cast<unsigned long long>(value)))
KF_ATOMIC_LONG(atomicAdd, old + value)
KF_ATOMIC(atomicAdd, float, old + value)
KF_ATOMIC(atomicAdd, double, old + value)
KF_ATOMIC(atomicAdd, __half, __hadd(old, value))
KF_ATOMIC(atomicAdd, __half2, __hadd2(old, value))
KF_ATOMIC(atomicAdd, __nv_bfloat16, __hadd(old, value))
KF_ATOMIC(atomicAdd, __nv_bfloat162, __hadd2(old, value))
KF_ATOMIC(atomicSub, int, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
KF_ATOMIC(atomicSub, unsigned, old - value)
KF_ATOMIC_INTEGERS(atomicExch, ((void)old, value))
KF_ATOMIC_LONG(atomicExch, ((void)old, value))
KF_ATOMIC(atomicExch, float, ((void)old, value))
KF_ATOMIC_WIDE(atomicMin, (value < old ? value : old))
KF_ATOMIC_WIDE(atomicMax, (old < value ? value : old))
KF_ATOMIC_LONG(atomicMin, (value < old ? value : old))
KF_ATOMIC_LONG(atomicMax, (old < value ? value : old))
KF_ATOMIC_WIDE(atomicAnd, old & value)
KF_ATOMIC_WIDE(atomicOr, old | value)
KF_ATOMIC_WIDE(atomicXor, old ^ value)
KF_ATOMIC(atomicInc, unsigned, (old >= value ? 0 : old + 1))
KF_ATOMIC(atomicDec, unsigned, (old == 0 || old > value ? value : old - 1))
#undef KF_ATOMIC
#undef KF_ATOMIC_INTEGERS
#undef KF_ATOMIC_WIDE
#undef KF_ATOMIC_LONG

// float2/float4 (sm_90): each component is atomic, the whole is not.
static inline float2 atomicAdd(float2* p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
static inline float2 atomicAdd_block(float2* p, float2 v) { return atomicAdd(p, v); }
static inline float2 atomicAdd_system(float2* p, float2 v) { return atomicAdd(p, v); }
static inline float4 atomicAdd(float4* p, float4 v) {
  return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}

#define KF_CAS(T)                                                                                              \
  static inline T atomicCAS(T* p, T expected, T desired) { return kf::compare_and_swap(p, expected, desired); } \
  static inline T atomicCAS_block(T* p, T e, T d) { return atomicCAS(p, e, d); }                               \
  static inline T atomicCAS_system(T* p, T e, T d) { return atomicCAS(p, e, d); }
KF_CAS(int)
KF_CAS(unsigned)
KF_CAS(unsigned long long)
KF_CAS(unsigned long)
KF_CAS(unsigned short)
#undef KF_CAS

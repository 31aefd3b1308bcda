// half and bfloat16: the types, and the conversions whose names differ.
#pragma once
#include "rounding.h"
#include "vectors.h"

namespace kf {
// Float to integer as PTX cvt does: out of range clamps; NaN gives 0 from 16 and 32 bits to at most 32 bits, and only
// the highest bit set from 64 bits or to 64 bits.
template <class I, bool kFromDouble = false>
inline I to_integer(double x, Round mode) {
  if (std::isnan(x)) return kFromDouble || sizeof(I) == 8 ? static_cast<I>(1ull << (8 * sizeof(I) - 1)) : 0;
  double r = mode == Round::kNearest ? std::nearbyint(x) : mode == Round::kZero ? std::trunc(x)
             : mode == Round::kDown ? std::floor(x) : std::ceil(x);
  double low = static_cast<double>(std::numeric_limits<I>::min());
  double high = std::ldexp(1.0, std::numeric_limits<I>::digits);
  if (r < low) return std::numeric_limits<I>::min();
  if (r >= high) return std::numeric_limits<I>::max();
  return static_cast<I>(r);
}
}  // namespace kf

struct __half;
struct __nv_bfloat16;
#define KF_N __half
#define KF_OTHER __nv_bfloat16
#define KF_N2 __half2
#define KF_RAW __half_raw
#define KF_FORMAT kf::HalfFormat
#include "narrow.inc"
#undef KF_N
#undef KF_N2
#undef KF_RAW
#undef KF_OTHER
#undef KF_FORMAT
#define KF_N __nv_bfloat16
#define KF_OTHER __half
#define KF_N2 __nv_bfloat162
#define KF_RAW __nv_bfloat16_raw
#define KF_FORMAT kf::BFloat16Format
#include "narrow.inc"
#undef KF_N
#undef KF_N2
#undef KF_RAW
#undef KF_OTHER
#undef KF_FORMAT

inline __half::__half(const __nv_bfloat16& f) : __half(static_cast<float>(f)) {}
inline __nv_bfloat16::__nv_bfloat16(const __half& f) : __nv_bfloat16(static_cast<float>(f)) {}

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define KF_CONVERSIONS(N, N2, NAME, NAME2)                                                                          \
  static inline N __float2##NAME(float a) { return N::round(a); }                                                   \
  static inline N __float2##NAME##_rn(float a) { return N::round(a); }                                              \
  static inline N __float2##NAME##_rz(float a) { return N::round(a, kf::Round::kZero); }                            \
  static inline N __float2##NAME##_rd(float a) { return N::round(a, kf::Round::kDown); }                            \
  static inline N __float2##NAME##_ru(float a) { return N::round(a, kf::Round::kUp); }                              \
  static inline N __double2##NAME(double a) { return N::round(a); }                                                 \
  static inline float __##NAME##2float(N a) { return static_cast<float>(a); }                                       \
  static inline N2 __##NAME##2##NAME##2(N a) { return {a, a}; }                                                     \
  static inline float __low2float(N2 a) { return static_cast<float>(a.x); }                                         \
  static inline float __high2float(N2 a) { return static_cast<float>(a.y); }                                        \
  static inline N __low2##NAME(N2 a) { return a.x; }                                                                \
  static inline N __high2##NAME(N2 a) { return a.y; }                                                               \
  static inline N2 __low2##NAME##2(N2 a) { return {a.x, a.x}; }                                                     \
  static inline N2 __high2##NAME##2(N2 a) { return {a.y, a.y}; }                                                    \
  static inline N2 __lows2##NAME##2(N2 a, N2 b) { return {a.x, b.x}; }                                              \
  static inline N2 __highs2##NAME##2(N2 a, N2 b) { return {a.y, b.y}; }                                             \
  static inline N2 __lowhigh2highlow(N2 a) { return {a.y, a.x}; }                                                   \
  static inline N2 __halves2##NAME##2(N a, N b) { return {a, b}; }                                                  \
  static inline N2 make_##NAME2(N a, N b) { return {a, b}; }                                                        \
  static inline N2 __float2##NAME2##_rn(float a) { return {N::round(a), N::round(a)}; }                             \
  static inline N2 __floats2##NAME2##_rn(float a, float b) { return {N::round(a), N::round(b)}; }                   \
  static inline N2 __float22##NAME2##_rn(float2 a) { return {N::round(a.x), N::round(a.y)}; }                       \
  static inline float2 __##NAME##22float2(N2 a) { return {static_cast<float>(a.x), static_cast<float>(a.y)}; }      \
  static inline short __##NAME##_as_short(N a) { return static_cast<short>(a.__x); }                                \
  static inline unsigned short __##NAME##_as_ushort(N a) { return a.__x; }                                          \
  static inline N __short_as_##NAME(short a) { return N::from_bits(static_cast<unsigned short>(a)); }               \
  static inline N __ushort_as_##NAME(unsigned short a) { return N::from_bits(a); }
KF_CONVERSIONS(__half, __half2, half, half2)
KF_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
#undef KF_CONVERSIONS

#define KF_TO_INTEGER(N, NAME, I, INAME)                                                                        \
  static inline I __##NAME##2##INAME##_rn(N a) { return kf::to_integer<I>(kf::wide(a), kf::Round::kNearest); }  \
  static inline I __##NAME##2##INAME##_rz(N a) { return kf::to_integer<I>(kf::wide(a), kf::Round::kZero); }     \
  static inline I __##NAME##2##INAME##_rd(N a) { return kf::to_integer<I>(kf::wide(a), kf::Round::kDown); }     \
  static inline I __##NAME##2##INAME##_ru(N a) { return kf::to_integer<I>(kf::wide(a), kf::Round::kUp); }       \
  static inline N __##INAME##2##NAME##_rn(I a) { return N::round(kf::integer_to_odd(a)); }                     \
  static inline N __##INAME##2##NAME##_rz(I a) { return N::round(kf::integer_to_odd(a), kf::Round::kZero); }   \
  static inline N __##INAME##2##NAME##_rd(I a) { return N::round(kf::integer_to_odd(a), kf::Round::kDown); }   \
  static inline N __##INAME##2##NAME##_ru(I a) { return N::round(kf::integer_to_odd(a), kf::Round::kUp); }
#define KF_TO_INTEGERS(N, NAME)                                                                                \
  static inline signed char __##NAME##2char_rz(N a) { return kf::to_integer<signed char>(kf::wide(a), kf::Round::kZero); } \
  static inline unsigned char __##NAME##2uchar_rz(N a) { return kf::to_integer<unsigned char>(kf::wide(a), kf::Round::kZero); } \
  KF_TO_INTEGER(N, NAME, int, int) KF_TO_INTEGER(N, NAME, unsigned, uint) KF_TO_INTEGER(N, NAME, short, short) \
  KF_TO_INTEGER(N, NAME, unsigned short, ushort) KF_TO_INTEGER(N, NAME, long long, ll)                         \
  KF_TO_INTEGER(N, NAME, unsigned long long, ull)
KF_TO_INTEGERS(__half, half)
KF_TO_INTEGERS(__nv_bfloat16, bfloat16)
#undef KF_TO_INTEGERS
#undef KF_TO_INTEGER

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)

// 8-bit floating-point types. Stored as their bits; every conversion rounds once, to the nearest with ties to even.
#pragma once
#include "half.h"

namespace kf {

// kInfinities: e5m2 has the IEEE encodings; e4m3 has no infinity and one NaN, 0x7f.
template <int kMantissa, int kBias, bool kInfinities>
struct Float8 {
  static constexpr uint8_t largest = kInfinities ? 0x7b : 0x7e;
  static uint8_t encode(double x, bool saturate) {
    uint8_t sign = std::signbit(x) ? 0x80 : 0;
    double a = std::fabs(x);
    if (a != a) return 0x7f;
    int exponent = 1 - kBias;  // of the smallest normal number
    if (a > 0) {
      int e;
      std::frexp(a, &e);
      if (e - 1 > exponent) exponent = e - 1;
    }
    // An integer below 2^(kMantissa + 1) but for a carry, which runs into the exponent field as it should.
    double scaled = a > 1e30 ? 1e30 : std::nearbyint(std::ldexp(a, kMantissa - exponent));
    double bits = a > 1e30 ? 1e30 : scaled + std::ldexp(static_cast<double>(exponent - (1 - kBias)), kMantissa);
    if (bits > largest) return sign | (saturate ? largest : kInfinities ? 0x7c : 0x7f);
    return sign | static_cast<uint8_t>(bits);
  }
  static float decode(uint8_t v) {
    int field = (v & 0x7f) >> kMantissa, mantissa = v & ((1 << kMantissa) - 1);
    float a;
    if ((v & 0x7f) > largest) a = kInfinities && mantissa == 0 ? INFINITY : NAN;
    else if (field == 0) a = std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
    else a = std::ldexp(static_cast<float>(mantissa + (1 << kMantissa)), field - kBias - kMantissa);
    return v & 0x80 ? -a : a;
  }
};
using E4M3 = Float8<3, 7, false>;
using E5M2 = Float8<2, 15, true>;

}  // namespace kf

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t i) {
  return i == __NV_E4M3 ? kf::E4M3::encode(x, s == __NV_SATFINITE) : kf::E5M2::encode(x, s == __NV_SATFINITE);
}
#define KF_TO_FP8(NAME, T)                                                                                              \
  static inline __nv_fp8_storage_t __nv_cvt_##NAME##_to_fp8(T a, __nv_saturation_t s, __nv_fp8_interpretation_t i) {    \
    return __nv_cvt_double_to_fp8(kf_wide(a), s, i);                                                                    \
  }
static inline double kf_wide(float a) { return a; }
static inline double kf_wide(__half_raw a) { return kf::HalfFormat::decode(a.x); }
static inline double kf_wide(__nv_bfloat16_raw a) { return kf::BFloat16Format::decode(a.x); }
KF_TO_FP8(float, float) KF_TO_FP8(halfraw, __half_raw) KF_TO_FP8(bfloat16raw, __nv_bfloat16_raw)
#undef KF_TO_FP8
static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 a, __nv_saturation_t s, __nv_fp8_interpretation_t i) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_fp8(a.x, s, i) | __nv_cvt_double_to_fp8(a.y, s, i) << 8);
}
static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 a, __nv_saturation_t s, __nv_fp8_interpretation_t i) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_fp8(a.x, s, i) | __nv_cvt_double_to_fp8(a.y, s, i) << 8);
}
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t i) {
  return __half(i == __NV_E4M3 ? kf::E4M3::decode(v) : kf::E5M2::decode(v));  // exact
}

#define KF_FP8(NAME, F)                                                                                                 \
  struct NAME {                                                                                                         \
    __nv_fp8_storage_t __x;                                                                                             \
    NAME() = default;                                                                                                   \
    explicit NAME(double v) : __x(kf::F::encode(v, true)) {}                                                            \
    explicit NAME(float v) : __x(kf::F::encode(v, true)) {}                                                             \
    explicit NAME(__half v) : __x(kf::F::encode(static_cast<float>(v), true)) {}                                        \
    explicit NAME(__nv_bfloat16 v) : __x(kf::F::encode(static_cast<float>(v), true)) {}                                 \
    template <class I, class = typename std::enable_if<std::is_integral<I>::value>::type>                               \
    explicit NAME(I v) : __x(kf::F::encode(static_cast<double>(v), true)) {}                                            \
    explicit operator float() const { return kf::F::decode(__x); }                                                      \
    explicit operator double() const { return kf::F::decode(__x); }                                                     \
    explicit operator __half() const { return __half(kf::F::decode(__x)); }                                             \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(kf::F::decode(__x)); }                               \
    explicit operator bool() const { return (__x & 0x7f) != 0; }                                                        \
    template <class I, class = typename std::enable_if<std::is_integral<I>::value && !std::is_same<I, bool>::value>::type> \
    explicit operator I() const { return kf::to_integer<I>(kf::F::decode(__x), kf::Round::kZero); }                     \
  };                                                                                                                    \
  struct NAME##_bytes {                                                                                               \
    static float at(unsigned bits, int i) { return kf::F::decode(static_cast<uint8_t>(bits >> (8 * i))); }              \
    static unsigned put(double v, int i) { return static_cast<unsigned>(kf::F::encode(v, true)) << (8 * i); }           \
  };
KF_FP8(__nv_fp8_e4m3, E4M3)
KF_FP8(__nv_fp8_e5m2, E5M2)
#undef KF_FP8

#define KF_FP8_VECTORS(X2, X4, P)                                                                                       \
  struct alignas(2) X2 {                                                                                                \
    __nv_fp8x2_storage_t __x;                                                                                           \
    X2() = default;                                                                                                     \
    explicit X2(float2 v) : __x(static_cast<__nv_fp8x2_storage_t>(P::put(v.x, 0) | P::put(v.y, 1))) {}                  \
    explicit X2(double2 v) : __x(static_cast<__nv_fp8x2_storage_t>(P::put(v.x, 0) | P::put(v.y, 1))) {}                 \
    explicit X2(__half2 v) : __x(static_cast<__nv_fp8x2_storage_t>(P::put(kf::wide(v.x), 0) | P::put(kf::wide(v.y), 1))) {} \
    explicit X2(__nv_bfloat162 v) : __x(static_cast<__nv_fp8x2_storage_t>(P::put(kf::wide(v.x), 0) | P::put(kf::wide(v.y), 1))) {} \
    explicit operator float2() const { return {P::at(__x, 0), P::at(__x, 1)}; }                                         \
    explicit operator __half2() const { return {__half(P::at(__x, 0)), __half(P::at(__x, 1))}; }                        \
  };                                                                                                                    \
  struct alignas(4) X4 {                                                                                                \
    __nv_fp8x4_storage_t __x;                                                                                           \
    X4() = default;                                                                                                     \
    explicit X4(float4 v) : __x(P::put(v.x, 0) | P::put(v.y, 1) | P::put(v.z, 2) | P::put(v.w, 3)) {}                   \
    explicit X4(double4 v) : __x(P::put(v.x, 0) | P::put(v.y, 1) | P::put(v.z, 2) | P::put(v.w, 3)) {}                  \
    explicit operator float4() const { return {P::at(__x, 0), P::at(__x, 1), P::at(__x, 2), P::at(__x, 3)}; }           \
  };
KF_FP8_VECTORS(__nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __nv_fp8_e4m3_bytes)
KF_FP8_VECTORS(__nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __nv_fp8_e5m2_bytes)
#undef KF_FP8_VECTORS

// The CUDA math functions that C++ has not, and those glibc declares under the same name with other rules.
// Fast intrinsics (__expf, ...) are computed accurately: on a GPU they have errors of a few units in the last place,
// which a verification must allow for anyway.
#pragma once
#include "directed.h"
#include "special.h"

// glibc declares some of these names with C linkage; ours get another symbol.
#define __expf kf__expf
#define __exp10f kf__exp10f
#define __logf kf__logf
#define __log2f kf__log2f
#define __log10f kf__log10f
#define __sinf kf__sinf
#define __cosf kf__cosf
#define __tanf kf__tanf
#define __powf kf__powf
#define __sincosf kf__sincosf
#define __tanhf kf__tanhf
#define rsqrt kf_rsqrt
#define rsqrtf kf_rsqrtf
#define sinpi kf_sinpi
#define sinpif kf_sinpif
#define cospi kf_cospi
#define cospif kf_cospif
#define tanpi kf_tanpi
#define tanpif kf_tanpif
#define exp10 kf_exp10
#define exp10f kf_exp10f
#define isnan kf_isnan
#define isinf kf_isinf
#define isfinite kf_isfinite
#define signbit kf_signbit

// A double version and a float version rounded from it.
#define KF_MATH1(NAME, EXPRESSION)                                                               \
  static inline double NAME(double x) { return EXPRESSION; }                                     \
  static inline float NAME##f(float a) { double x = a; return static_cast<float>(EXPRESSION); }
KF_MATH1(rsqrt, 1.0 / std::sqrt(x))
KF_MATH1(rcbrt, 1.0 / std::cbrt(x))
KF_MATH1(sinpi, kf::sin_pi(x))
KF_MATH1(cospi, kf::cos_pi(x))
KF_MATH1(tanpi, kf::sin_pi(x) / kf::cos_pi(x))
KF_MATH1(exp10, std::pow(10.0, x))
KF_MATH1(erfcx, kf::erfc_scaled(x))
KF_MATH1(normcdf, kf::normal_cdf(x))
KF_MATH1(cyl_bessel_i0, kf::bessel_i(0, x))
KF_MATH1(cyl_bessel_i1, kf::bessel_i(1, x))
KF_MATH1(normcdfinv, -1.41421356237309504880 * kf::erfc_inverse(2 * x))
#undef KF_MATH1
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
static inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
static inline double erfinv(double x) { return std::fabs(x) < 0.5 ? kf::erf_inverse_small(x) : x < 0 ? -kf::erfc_inverse(1 + x) : kf::erfc_inverse(1 - x); }
static inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }
static inline double erfcinv(double x) { return kf::erfc_inverse(x); }
static inline float erfcinvf(float x) { return static_cast<float>(erfcinv(x)); }
static inline double rhypot(double a, double b) { return 1 / std::hypot(a, b); }
static inline float rhypotf(float a, float b) { return static_cast<float>(rhypot(a, b)); }
static inline double norm3d(double a, double b, double c) { return std::hypot(std::hypot(a, b), c); }
static inline float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
static inline double norm4d(double a, double b, double c, double d) { return std::hypot(std::hypot(a, b), std::hypot(c, d)); }
static inline float norm4df(float a, float b, float c, float d) { return static_cast<float>(norm4d(a, b, c, d)); }
static inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
static inline float rnorm3df(float a, float b, float c) { return static_cast<float>(rnorm3d(a, b, c)); }
static inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
static inline float rnorm4df(float a, float b, float c, float d) { return static_cast<float>(rnorm4d(a, b, c, d)); }
static inline double norm(int n, const double* p) { return kf::norm_of(n, p); }
static inline float normf(int n, const float* p) { return static_cast<float>(kf::norm_of(n, p)); }
static inline double rnorm(int n, const double* p) { return 1 / kf::norm_of(n, p); }
static inline float rnormf(int n, const float* p) { return static_cast<float>(1 / kf::norm_of(n, p)); }
static inline double fdivide(double a, double b) { return a / b; }
static inline float fdividef(float a, float b) { return a / b; }

static inline bool isnan(float x) { return x != x; }
static inline bool isnan(double x) { return x != x; }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }
#define KF_CLASSIFY(NAME, BUILTIN, INTEGER)                                                                       \
  static inline bool NAME(long double x) { return BUILTIN(x); }                                                 \
  template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>                          \
  static inline bool NAME(T x) { return (void)x, INTEGER; }
KF_CLASSIFY(isnan, __builtin_isnan, false)
KF_CLASSIFY(isinf, __builtin_isinf, false)
KF_CLASSIFY(isfinite, __builtin_isfinite, true)
KF_CLASSIFY(signbit, __builtin_signbit, x < 0)
#undef KF_CLASSIFY
namespace std {
using ::kf_isnan;
using ::kf_isinf;
using ::kf_isfinite;
using ::kf_signbit;
}  // namespace std

// ---- fast single precision intrinsics ---------------------------------------------------------------------
static inline float __expf(float x) { return std::exp(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return std::log(x); }
static inline float __log2f(float x) { return std::log2(x); }
static inline float __log10f(float x) { return std::log10(x); }
static inline float __sinf(float x) { return std::sin(x); }
static inline float __cosf(float x) { return std::cos(x); }
static inline float __tanf(float x) { return std::tan(x); }
static inline float __tanhf(float x) { return std::tanh(x); }
static inline float __powf(float x, float y) { return std::pow(x, y); }
static inline void __sincosf(float x, float* s, float* c) { *s = std::sin(x), *c = std::cos(x); }
// CUDA: for 2^126 < |b| < 2^128 the result is 0, or NaN where a is infinite.
static inline float __fdividef(float a, float b) { return std::fabs(b) > 0x1p126f && std::fabs(b) <= FLT_MAX ? a * 0.0f : a / b; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

namespace kf {
template <class To, class From>
inline To cast_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace kf
static inline int __float_as_int(float x) { return kf::cast_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return kf::cast_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return kf::cast_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return kf::cast_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return kf::cast_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return kf::cast_bits<double>(x); }
static inline int __double2hiint(double x) { return static_cast<int>(kf::cast_bits<uint64_t>(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(kf::cast_bits<uint64_t>(x)); }
static inline double __hiloint2double(int hi, int lo) {
  return kf::cast_bits<double>(static_cast<uint64_t>(static_cast<unsigned>(hi)) << 32 | static_cast<unsigned>(lo));
}

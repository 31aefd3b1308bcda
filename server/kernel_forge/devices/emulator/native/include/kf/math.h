// The CUDA math functions that C++ has not, and those glibc declares under the same name with other rules.
// Fast intrinsics (__expf, ...) are computed accurately: on a GPU they have errors of a few units in the last place,
// which a verification must allow for anyway.
#pragma once
#include <cfenv>

#include "half.h"

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

namespace kf {
constexpr double kPi = 3.14159265358979323846;
// sin(pi x) and cos(pi x): the argument is reduced exactly to at most a quarter, so that zeros are exact.
inline double sin_pi(double x);
inline double cos_pi(double x) {
  double r = std::fabs(std::fmod(x, 2.0));
  if (r > 1) r = 2 - r;
  if (r <= 0.25) return std::cos(kPi * r);
  if (r < 0.75) return r == 0.5 ? 0.0 : std::sin(kPi * (0.5 - r));
  return -std::cos(kPi * (1 - r));
}
inline double sin_pi(double x) {
  double r = std::fmod(x, 2.0);
  if (std::fabs(r) == 1.0 || r == 0) return std::copysign(0.0, x);
  double a = std::fabs(r), sign = r < 0 ? -1 : 1;
  if (a > 1) a -= 1, sign = -sign;
  if (a > 0.5) a = 1 - a;
  return sign * (a <= 0.25 ? std::sin(kPi * a) : std::cos(kPi * (0.5 - a)));
}
inline double erfc_scaled(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  double s = 1 / (2 * x * x);  // asymptotic series (Abramowitz and Stegun 7.1.23), 1e-16 after eight terms from 25 on
  double sum = 1, term = 1;
  for (int k = 1; k <= 8; ++k) sum += term *= -(2 * k - 1) * s;
  return sum / (x * std::sqrt(kPi));
}
// Inverse error function near 0: Newton on erf itself, where nothing cancels.
inline double erf_inverse_small(double x) {
  double y = x * 0.88622692545275801365;
  for (int i = 0; i < 5; ++i) {
    double u = (std::erf(y) - x) / (1.12837916709551257390 * std::exp(-y * y));
    y -= u / (1 + y * u);
  }
  return y;
}
// Inverse of erfc; Halley's steps on erfc, whose relative accuracy is full in the tail.
inline double erfc_inverse(double z) {
  if (!(z > 0)) return z == 0 ? INFINITY : NAN;
  if (!(z < 2)) return z == 2 ? -INFINITY : NAN;
  if (z > 1) return -erfc_inverse(2 - z);
  if (z > 0.5) return erf_inverse_small(1 - z);
  double t = std::sqrt(-2 * std::log(z / 2));
  double y = (t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) * 0.70710678118654752440;
  for (int i = 0; i < 5; ++i) {
    double u = -(std::erfc(y) - z) / (1.12837916709551257390 * std::exp(-y * y));
    y -= u / (1 + y * u);
  }
  return y;
}
}  // namespace kf

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
KF_MATH1(normcdf, 0.5 * std::erfc(-x * 0.70710678118654752440))
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
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// ---- directed rounding ---------------------------------------------------------------------------------------
namespace kf {
template <class T, class F>
__attribute__((noinline)) T rounded(int mode, F f) {
  int old = std::fegetround();
  std::fesetround(mode);
  volatile T result = f();
  std::fesetround(old);
  return result;
}
}  // namespace kf
#define KF_OP2(NAME, T, OP, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a, T b) { volatile T x = a, y = b; return kf::rounded<T>(MODE, [&] { return x OP y; }); }
#define KF_OP1(NAME, T, EXPRESSION, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a) { volatile T x = a; return kf::rounded<T>(MODE, [&]() -> T { return EXPRESSION; }); }
#define KF_FMA(NAME, T, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a, T b, T c) { volatile T x = a, y = b, z = c; return kf::rounded<T>(MODE, [&]() -> T { return std::fma(T(x), T(y), T(z)); }); }
#define KF_MODES(M, ...) M(__VA_ARGS__, rn, FE_TONEAREST) M(__VA_ARGS__, rz, FE_TOWARDZERO) M(__VA_ARGS__, rd, FE_DOWNWARD) M(__VA_ARGS__, ru, FE_UPWARD)
KF_MODES(KF_OP2, __fadd, float, +) KF_MODES(KF_OP2, __fsub, float, -) KF_MODES(KF_OP2, __fmul, float, *) KF_MODES(KF_OP2, __fdiv, float, /)
KF_MODES(KF_OP2, __dadd, double, +) KF_MODES(KF_OP2, __dsub, double, -) KF_MODES(KF_OP2, __dmul, double, *) KF_MODES(KF_OP2, __ddiv, double, /)
KF_MODES(KF_OP1, __frcp, float, 1.0f / x) KF_MODES(KF_OP1, __drcp, double, 1.0 / x)
KF_MODES(KF_OP1, __fsqrt, float, std::sqrt(float(x))) KF_MODES(KF_OP1, __dsqrt, double, std::sqrt(double(x)))
KF_MODES(KF_FMA, __fmaf, float) KF_MODES(KF_FMA, __fma, double)
#undef KF_OP2
#undef KF_OP1
#undef KF_FMA
#undef KF_MODES
static inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }

// ---- float to integer and bit casts --------------------------------------------------------------------------
#define KF_CONVERT(FROM, T, TO, I)                                                                          \
  static inline I __##FROM##2##TO##_rn(T x) { return kf::to_integer<I, std::is_same<T, double>::value>(x, kf::Round::kNearest); }           \
  static inline I __##FROM##2##TO##_rz(T x) { return kf::to_integer<I, std::is_same<T, double>::value>(x, kf::Round::kZero); }              \
  static inline I __##FROM##2##TO##_rd(T x) { return kf::to_integer<I, std::is_same<T, double>::value>(x, kf::Round::kDown); }              \
  static inline I __##FROM##2##TO##_ru(T x) { return kf::to_integer<I, std::is_same<T, double>::value>(x, kf::Round::kUp); }
KF_CONVERT(float, float, int, int) KF_CONVERT(float, float, uint, unsigned)
KF_CONVERT(float, float, ll, long long) KF_CONVERT(float, float, ull, unsigned long long)
KF_CONVERT(double, double, int, int) KF_CONVERT(double, double, uint, unsigned)
KF_CONVERT(double, double, ll, long long) KF_CONVERT(double, double, ull, unsigned long long)
#undef KF_CONVERT
#define KF_FROM_INTEGER(FROM, I, TO, T)                                                                                        \
  static inline T __##FROM##2##TO##_rn(I v) { return static_cast<T>(v); }                                                      \
  static inline T __##FROM##2##TO##_rz(I v) { volatile I x = v; return kf::rounded<T>(FE_TOWARDZERO, [&] { return static_cast<T>(x); }); } \
  static inline T __##FROM##2##TO##_rd(I v) { volatile I x = v; return kf::rounded<T>(FE_DOWNWARD, [&] { return static_cast<T>(x); }); }   \
  static inline T __##FROM##2##TO##_ru(I v) { volatile I x = v; return kf::rounded<T>(FE_UPWARD, [&] { return static_cast<T>(x); }); }
KF_FROM_INTEGER(int, int, float, float) KF_FROM_INTEGER(uint, unsigned, float, float)
KF_FROM_INTEGER(ll, long long, float, float) KF_FROM_INTEGER(ull, unsigned long long, float, float)
KF_FROM_INTEGER(ll, long long, double, double) KF_FROM_INTEGER(ull, unsigned long long, double, double)
KF_FROM_INTEGER(double, double, float, float)
#undef KF_FROM_INTEGER
static inline double __int2double_rn(int v) { return v; }
static inline double __uint2double_rn(unsigned v) { return v; }

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

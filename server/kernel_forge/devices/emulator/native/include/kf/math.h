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
  if (x < 25) {  // with the rounding error of x * x, which exp would magnify
    double square = x * x, lost = std::fma(x, x, -square);
    double e = std::exp(square);
    return __builtin_isinf(e) ? e : (e + e * lost) * std::erfc(x);
  }
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
// 0.5 erfc(-x / sqrt 2), with what rounding the argument loses: erfc'(z) = -2 / sqrt(pi) exp(-z^2).
inline double normal_cdf(double x) {
  double z = x * -0.70710678118654752440;
  if (!(std::fabs(z) < 28)) return 0.5 * std::erfc(z);
  double lost = std::fma(x, -0.70710678118654752440, -z) + x * 4.833646656726457e-17;
  return 0.5 * (std::erfc(z) - lost * 1.12837916709551257390 * std::exp(-z * z));
}
// Modified Bessel functions of order n = 0 or 1: the power series (Abramowitz and Stegun 9.6.10), whose terms are all
// positive, and from 30 on the asymptotic one (9.7.1).
inline double bessel_i(int n, double x) {
  double a = std::fabs(x), sum = 1, term = 1;
  if (a < 30) {
    for (int k = 1; k < 200 && term > 1e-18 * sum; ++k) sum += term *= a / 2 * (a / 2) / (static_cast<double>(k) * (k + n));
    return n ? x / 2 * sum : sum;
  }
  if (!(a < 800)) return n ? std::copysign(a, x) * INFINITY : a * INFINITY;
  for (int k = 1; k < 60; ++k) {
    double next = -term * (4.0 * n - (2 * k - 1.0) * (2 * k - 1.0)) / (8.0 * a * k);
    if (std::fabs(next) < 1e-18) break;
    sum += term = next;
  }
  double root = std::exp(a / 2), value = root * (sum / std::sqrt(2 * kPi * a)) * root;
  return n && x < 0 ? -value : value;
}
// The root of the sum of squares, scaled so that nothing overflows; an infinity wins over a NaN.
template <class T> inline double norm_of(int n, const T* p) {
  double largest = 0, sum = 0;
  bool nan = false;
  for (int i = 0; i < n; ++i) {
    double a = std::fabs(static_cast<double>(p[i]));
    nan |= a != a;
    if (a > largest) largest = a;
  }
  if (__builtin_isinf(largest)) return largest;
  if (nan) return NAN;
  if (largest == 0) return 0;
  int exponent;
  std::frexp(largest, &exponent);
  for (int i = 0; i < n; ++i) {
    double a = std::ldexp(static_cast<double>(p[i]), -exponent);
    sum += a * a;
  }
  return std::ldexp(std::sqrt(sum), exponent);
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

// ---- directed rounding ---------------------------------------------------------------------------------------
// Macros rather than templates: what a precompiled header instantiates, every kernel's compilation instantiates again.
// The volatile operands and result keep the operation between the two changes of mode.
#define KF_ROUNDED(T, MODE, EXPRESSION) \
  int old = std::fegetround();          \
  std::fesetround(MODE);                \
  volatile T result = EXPRESSION;       \
  std::fesetround(old);                 \
  return result;
#define KF_OP2(NAME, T, OP, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a, T b) { volatile T x = a, y = b; KF_ROUNDED(T, MODE, x OP y) }
#define KF_OP1(NAME, T, EXPRESSION, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a) { volatile T x = a; KF_ROUNDED(T, MODE, EXPRESSION) }
#define KF_FMA(NAME, T, SUFFIX, MODE) \
  static inline T NAME##_##SUFFIX(T a, T b, T c) { volatile T x = a, y = b, z = c; KF_ROUNDED(T, MODE, std::fma(T(x), T(y), T(z))) }
#define KF_MODES(M, ...) M(__VA_ARGS__, rz, FE_TOWARDZERO) M(__VA_ARGS__, rd, FE_DOWNWARD) M(__VA_ARGS__, ru, FE_UPWARD)
#define KF_OPS2(NAME, T, OP) static inline T NAME##_rn(T a, T b) { return a OP b; } KF_MODES(KF_OP2, NAME, T, OP)
#define KF_OPS1(NAME, T, EXPRESSION) static inline T NAME##_rn(T x) { return EXPRESSION; } KF_MODES(KF_OP1, NAME, T, EXPRESSION)
#define KF_FMAS(NAME, T) static inline T NAME##_rn(T a, T b, T c) { return std::fma(a, b, c); } KF_MODES(KF_FMA, NAME, T)
KF_OPS2(__fadd, float, +) KF_OPS2(__fsub, float, -) KF_OPS2(__fmul, float, *) KF_OPS2(__fdiv, float, /)
KF_OPS2(__dadd, double, +) KF_OPS2(__dsub, double, -) KF_OPS2(__dmul, double, *) KF_OPS2(__ddiv, double, /)
KF_OPS1(__frcp, float, 1.0f / x) KF_OPS1(__drcp, double, 1.0 / x)
KF_OPS1(__fsqrt, float, std::sqrt(float(x))) KF_OPS1(__dsqrt, double, std::sqrt(double(x)))
KF_FMAS(__fmaf, float) KF_FMAS(__fmaf_ieee, float) KF_FMAS(__fma, double)
#undef KF_OPS2
#undef KF_OPS1
#undef KF_FMAS
#undef KF_OP2
#undef KF_OP1
#undef KF_FMA
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
#define KF_FROM(FROM, I, TO, T, SUFFIX, MODE) \
  static inline T __##FROM##2##TO##_##SUFFIX(I v) { volatile I x = v; KF_ROUNDED(T, MODE, static_cast<T>(x)) }
#define KF_FROM_INTEGER(FROM, I, TO, T) \
  static inline T __##FROM##2##TO##_rn(I v) { return static_cast<T>(v); } KF_MODES(KF_FROM, FROM, I, TO, T)
KF_FROM_INTEGER(int, int, float, float) KF_FROM_INTEGER(uint, unsigned, float, float)
KF_FROM_INTEGER(ll, long long, float, float) KF_FROM_INTEGER(ull, unsigned long long, float, float)
KF_FROM_INTEGER(ll, long long, double, double) KF_FROM_INTEGER(ull, unsigned long long, double, double)
KF_FROM_INTEGER(double, double, float, float)
#undef KF_FROM_INTEGER
#undef KF_FROM
#undef KF_MODES
#undef KF_ROUNDED
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

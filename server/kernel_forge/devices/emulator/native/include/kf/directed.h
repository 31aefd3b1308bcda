// Arithmetic and conversions with the rounding mode in the name.
#pragma once
#include <cfenv>

#include "half.h"

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

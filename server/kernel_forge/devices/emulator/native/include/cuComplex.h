// Complex numbers, C style.
#pragma once
#include "kf_cuda.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define KF_COMPLEX(C, T, F, MAKE)                                                                        \
  static inline C MAKE(T x, T y) { return C{x, y}; }                                                     \
  static inline T cuCreal##F(C a) { return a.x; }                                                        \
  static inline T cuCimag##F(C a) { return a.y; }                                                        \
  static inline C cuConj##F(C a) { return C{a.x, -a.y}; }                                                \
  static inline C cuCadd##F(C a, C b) { return C{a.x + b.x, a.y + b.y}; }                                \
  static inline C cuCsub##F(C a, C b) { return C{a.x - b.x, a.y - b.y}; }                                \
  static inline C cuCmul##F(C a, C b) { return C{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }        \
  static inline C cuCfma##F(C a, C b, C c) { return cuCadd##F(cuCmul##F(a, b), c); }                     \
  static inline T cuCabs##F(C a) { return static_cast<T>(std::hypot(a.x, a.y)); }                        \
  /* Scaled by the sum of the divisor's parts, so that squares do not overflow. */                       \
  static inline C cuCdiv##F(C a, C b) {                                                                  \
    T s = std::fabs(b.x) + std::fabs(b.y), one = 1 / s;                                                  \
    C n{a.x * one, a.y * one}, d{b.x * one, b.y * one};                                                  \
    T square = 1 / (d.x * d.x + d.y * d.y);                                                              \
    return C{(n.x * d.x + n.y * d.y) * square, (n.y * d.x - n.x * d.y) * square};                        \
  }
KF_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
KF_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef KF_COMPLEX
static inline cuComplex make_cuComplex(float x, float y) { return cuComplex{x, y}; }
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return cuDoubleComplex{a.x, a.y}; }
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return cuFloatComplex{static_cast<float>(a.x), static_cast<float>(a.y)};
}

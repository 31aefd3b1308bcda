// What the CUDA math functions are computed with, in double: accurate in the tails, exact at the special values.
#pragma once
#include "qualifiers.h"

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

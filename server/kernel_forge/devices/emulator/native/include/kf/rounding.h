// Rounding a double to a narrow format, once and in the asked direction; exact sums for that.
#pragma once
#include "qualifiers.h"

namespace kf {

enum class Round { kNearest, kZero, kDown, kUp };

template <int kMantissa, int kExponentBits>
struct Format {
  static constexpr int bias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int least = 1 - bias;  // exponent of the smallest normal number
  static constexpr uint16_t sign_bit = 0x8000;
  static constexpr uint16_t infinity = ((1 << kExponentBits) - 1) << kMantissa;

  static uint16_t encode(double x, Round mode) {
    uint16_t sign = std::signbit(x) ? sign_bit : 0;
    if (std::isnan(x)) return 0x7fff;  // the canonical NaN of NVIDIA hardware
    double a = std::fabs(x);
    if (std::isinf(a)) return sign | infinity;
    if (a == 0) return sign;
    int exponent;
    std::frexp(a, &exponent);
    int e = exponent - 1 < least ? least : exponent - 1;
    double scaled = std::ldexp(a, kMantissa - e);  // exact: at most kMantissa + 1 integer bits
    double whole = std::floor(scaled), rest = scaled - whole;
    bool away = false;
    switch (mode) {
      case Round::kNearest: away = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0); break;
      case Round::kZero: break;
      case Round::kDown: away = rest > 0 && sign; break;
      case Round::kUp: away = rest > 0 && !sign; break;
    }
    // A carry out of the mantissa runs into the exponent field, which is what is wanted.
    uint32_t bits = static_cast<uint32_t>(whole) + away;
    if (e > least || bits >= (1u << kMantissa)) bits += static_cast<uint32_t>(e - least) << kMantissa;
    if (bits >= infinity) {
      bool to_largest = mode == Round::kZero || (mode == Round::kDown && !sign) || (mode == Round::kUp && sign);
      return sign | (to_largest ? infinity - 1 : infinity);
    }
    return sign | static_cast<uint16_t>(bits);
  }

  static float decode(uint16_t bits) {
    int field = bits >> kMantissa & ((1 << kExponentBits) - 1);
    int mantissa = bits & ((1 << kMantissa) - 1);
    float value;
    if (field == (1 << kExponentBits) - 1)
      value = mantissa ? NAN : INFINITY;
    else if (field == 0)
      value = std::ldexp(static_cast<float>(mantissa), least - kMantissa);
    else
      value = std::ldexp(static_cast<float>(mantissa + (1 << kMantissa)), field - bias - kMantissa);
    return bits & sign_bit ? -value : value;
  }
};

// An integer as a double, rounded to odd where it has more than 53 bits: rounding that once more is rounding once.
template <class I>
inline double integer_to_odd(I value) {
  double nearest = static_cast<double>(value);
  long double error = static_cast<long double>(value) - static_cast<long double>(nearest);
  if (error == 0) return nearest;
  uint64_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  if (bits & 1) return nearest;
  bits = (error > 0) == (nearest > 0) ? bits | 1 : bits - 1;
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}

using HalfFormat = Format<10, 5>;
using BFloat16Format = Format<7, 8>;

// product + c rounded to odd in double: rounding that once more to at most 51 bits equals rounding the exact sum
// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008). `product` must be exact.
inline double sum_to_odd(double product, double c) {
  double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  double part = sum - product;
  double error = (product - (sum - part)) + (c - part);
  if (error == 0) return sum;
  uint64_t bits;
  memcpy(&bits, &sum, sizeof sum);
  if (bits & 1) return sum;
  bool grows = (error > 0) == (sum > 0);
  bits = grows ? bits | 1 : bits - 1;
  memcpy(&sum, &bits, sizeof sum);
  return sum;
}

}  // namespace kf

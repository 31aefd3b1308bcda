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
    uint64_t all;
    memcpy(&all, &x, sizeof all);
    uint16_t sign = static_cast<uint16_t>(all >> 63 << 15);
    int field = static_cast<int>(all >> 52 & 0x7ff);
    uint64_t fraction = all & 0xfffffffffffffu;
    if (field == 0x7ff) return fraction ? 0x7fff : sign | infinity;  // 0x7fff: the canonical NaN of NVIDIA hardware
    if ((all << 1) == 0) return sign;
    int e = field - 1023;
    // The value is (2^52 + fraction) 2^(e - 52); `cut` bits of that integer lie below the format's last place.
    uint64_t digits = field ? fraction | 0x10000000000000u : fraction;
    int cut = 52 - kMantissa + (e < least ? least - e : 0);
    uint64_t whole = 0, rest = digits, half = 0;
    if (cut < 64) whole = digits >> cut, rest = digits & ((uint64_t{1} << cut) - 1), half = uint64_t{1} << (cut - 1);
    bool away = false;
    switch (mode) {
      case Round::kNearest: away = half && (rest > half || (rest == half && whole & 1)); break;
      case Round::kZero: break;
      case Round::kDown: away = rest && sign; break;
      case Round::kUp: away = rest && !sign; break;
    }
    // A carry out of the mantissa runs into the exponent field, which is what is wanted.
    int64_t bits = static_cast<int64_t>(whole) + away;
    if (e > least) bits += static_cast<int64_t>(e - least) << kMantissa;
    if (bits >= infinity) {
      bool to_largest = mode == Round::kZero || (mode == Round::kDown && !sign) || (mode == Round::kUp && sign);
      return sign | (to_largest ? infinity - 1 : infinity);
    }
    return sign | static_cast<uint16_t>(bits);
  }

  static float decode(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & sign_bit) << 16, rest = bits & 0x7fffu, wide;
    float value;
    if (rest < (1u << kMantissa) && kExponentBits < 8) {  // zero and subnormal numbers, which float has as normal ones
      value = static_cast<float>(rest) * smallest();
      memcpy(&wide, &value, sizeof wide);
    } else if (rest > infinity) {
      wide = 0x7fc00000u;
    } else if (rest == infinity) {
      wide = 0x7f800000u;
    } else {
      wide = (rest << (23 - kMantissa)) + (static_cast<uint32_t>(127 - bias) << 23);
    }
    wide |= sign;
    memcpy(&value, &wide, sizeof value);
    return value;
  }

  static constexpr float smallest() {  // 2^(least - kMantissa)
    float v = 1;
    for (int i = 0; i < kMantissa - least; ++i) v /= 2;
    return v;
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

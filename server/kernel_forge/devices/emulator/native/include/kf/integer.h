// Integer intrinsics and the mixed-type min and max of CUDA's global namespace.
#pragma once
#include "math.h"
#include "simd.h"

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
static inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  uint64_t both = static_cast<uint64_t>(y) << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= static_cast<unsigned>(both >> ((s >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
  return r;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) << (s & 31) >> 32); }
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) { return s >= 32 ? lo : __funnelshift_l(lo, hi, s); }
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) >> (s & 31)); }
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) { return s >= 32 ? hi : __funnelshift_r(lo, hi, s); }
static inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64); }
static inline int __mul24(int a, int b) {
  auto extend = [](int v) { return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<unsigned>(extend(a)) * static_cast<unsigned>(extend(b)));
}
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline unsigned __sad(int a, int b, unsigned c) { return static_cast<unsigned>(a > b ? static_cast<long long>(a) - b : static_cast<long long>(b) - a) + c; }
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
static inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1); }
static inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1); }

namespace kf {
template <class I>
inline I byte_of(unsigned v, int i) { return static_cast<I>(v >> (8 * i)); }
template <class A, class B>
inline long long dot4(unsigned a, unsigned b) {
  long long sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<long long>(byte_of<A>(a, i)) * byte_of<B>(b, i);
  return sum;
}
template <class Half, class Byte>
inline long long dot2(unsigned a, unsigned b, int first) {
  return static_cast<long long>(static_cast<Half>(a)) * byte_of<Byte>(b, first) +
         static_cast<long long>(static_cast<Half>(a >> 16)) * byte_of<Byte>(b, first + 1);
}
}  // namespace kf
static inline int __dp4a(int a, int b, int c) { return static_cast<int>(kf::dot4<int8_t, int8_t>(static_cast<unsigned>(a), static_cast<unsigned>(b)) + c); }
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) { return static_cast<unsigned>(kf::dot4<uint8_t, uint8_t>(a, b) + c); }
static inline int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return c + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w); }
static inline int __dp2a_lo(int a, int b, int c) { return static_cast<int>(kf::dot2<int16_t, int8_t>(static_cast<unsigned>(a), static_cast<unsigned>(b), 0) + c); }
static inline int __dp2a_hi(int a, int b, int c) { return static_cast<int>(kf::dot2<int16_t, int8_t>(static_cast<unsigned>(a), static_cast<unsigned>(b), 2) + c); }

// The n-th set bit from `base` on (PTX fns): upwards for a positive offset, downwards for a negative one.
static inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (base > 31) return 0xffffffffu;
  if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
  int left = offset < 0 ? -offset : offset;
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += offset < 0 ? -1 : 1)
    if (mask >> i & 1 && --left == 0) return static_cast<unsigned>(i);
  return 0xffffffffu;
}

// CUDA's min and max convert both sides as C++ arithmetic does; the float ones ignore a NaN.
#define KF_MIN_MAX(A, B, T)                                                                                                \
  static inline T min(A a, B b) { T x = static_cast<T>(a), y = static_cast<T>(b); return y < x ? y : x; }                  \
  static inline T max(A a, B b) { T x = static_cast<T>(a), y = static_cast<T>(b); return x < y ? y : x; }
#define KF_MIN_MAX_MIXED(A, B, T) KF_MIN_MAX(A, B, T) KF_MIN_MAX(B, A, T)
KF_MIN_MAX(int, int, int) KF_MIN_MAX(unsigned, unsigned, unsigned) KF_MIN_MAX_MIXED(int, unsigned, unsigned)
KF_MIN_MAX(long, long, long) KF_MIN_MAX(unsigned long, unsigned long, unsigned long) KF_MIN_MAX_MIXED(long, unsigned long, unsigned long)
KF_MIN_MAX(long long, long long, long long) KF_MIN_MAX(unsigned long long, unsigned long long, unsigned long long) KF_MIN_MAX_MIXED(long long, unsigned long long, unsigned long long)
KF_MIN_MAX_MIXED(int, long, long) KF_MIN_MAX_MIXED(int, unsigned long, unsigned long) KF_MIN_MAX_MIXED(unsigned, unsigned long, unsigned long) KF_MIN_MAX_MIXED(unsigned, long, long)
KF_MIN_MAX_MIXED(int, long long, long long) KF_MIN_MAX_MIXED(int, unsigned long long, unsigned long long)
#undef KF_MIN_MAX_MIXED
#undef KF_MIN_MAX
static inline float min(float a, float b) { return std::fmin(a, b); }
static inline float max(float a, float b) { return std::fmax(a, b); }
static inline double min(double a, double b) { return std::fmin(a, b); }
static inline double max(double a, double b) { return std::fmax(a, b); }
static inline double min(float a, double b) { return std::fmin(static_cast<double>(a), b); }
static inline double max(float a, double b) { return std::fmax(static_cast<double>(a), b); }
static inline double min(double a, float b) { return std::fmin(a, static_cast<double>(b)); }
static inline double max(double a, float b) { return std::fmax(a, static_cast<double>(b)); }
static inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
static inline long long llmin(long long a, long long b) { return a < b ? a : b; }
static inline long long llmax(long long a, long long b) { return a < b ? b : a; }
static inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
static inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
using std::abs;

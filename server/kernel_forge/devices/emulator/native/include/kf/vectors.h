// CUDA's vector types with CUDA's sizes and alignments. CUDA defines no operators for them, and neither do we.
#pragma once
#include "qualifiers.h"

#define KF_VECTORS(T, N, A2, A4)                                                                      \
  struct N##1 { T x; };                                                                               \
  struct __align__(A2) N##2 { T x, y; };                                                              \
  struct N##3 { T x, y, z; };                                                                         \
  struct __align__(A4) N##4 { T x, y, z, w; };                                                        \
  static constexpr N##1 make_##N##1(T x) { return N##1{x}; }                                          \
  static constexpr N##2 make_##N##2(T x, T y) { return N##2{x, y}; }                                  \
  static constexpr N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; }                          \
  static constexpr N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }

KF_VECTORS(signed char, char, 2, 4)
KF_VECTORS(unsigned char, uchar, 2, 4)
KF_VECTORS(short, short, 4, 8)
KF_VECTORS(unsigned short, ushort, 4, 8)
KF_VECTORS(int, int, 8, 16)
KF_VECTORS(unsigned int, uint, 8, 16)
KF_VECTORS(long, long, 16, 16)
KF_VECTORS(unsigned long, ulong, 16, 16)
KF_VECTORS(long long, longlong, 16, 16)
KF_VECTORS(unsigned long long, ulonglong, 16, 16)
KF_VECTORS(float, float, 8, 16)
KF_VECTORS(double, double, 16, 16)
#undef KF_VECTORS
// Four 8-byte elements with their alignment in the name (CUDA 13).
#define KF_WIDE4(T, N)                                                                                     \
  struct __align__(16) N##4_16a { T x, y, z, w; };                                                         \
  struct __align__(32) N##4_32a { T x, y, z, w; };                                                         \
  static constexpr N##4_16a make_##N##4_16a(T x, T y, T z, T w) { return N##4_16a{x, y, z, w}; }           \
  static constexpr N##4_32a make_##N##4_32a(T x, T y, T z, T w) { return N##4_32a{x, y, z, w}; }
KF_WIDE4(double, double) KF_WIDE4(long, long) KF_WIDE4(unsigned long, ulong) KF_WIDE4(long long, longlong) KF_WIDE4(unsigned long long, ulonglong)
#undef KF_WIDE4

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

namespace kf {
// threadIdx and friends: read-only views of what the scheduler sets.
struct IndexView : kf_dim3 {
  operator uint3() const { return uint3{x, y, z}; }
  operator dim3() const { return dim3(x, y, z); }
};
inline const IndexView& view(const kf_dim3& v) { return static_cast<const IndexView&>(v); }
}  // namespace kf

#define threadIdx (::kf::view(kf_thread_idx))
#define blockIdx (::kf::view(kf_block_idx))
#define blockDim (::kf::view(kf_block_dim))
#define gridDim (::kf::view(kf_grid_dim))
static constexpr int warpSize = 32;

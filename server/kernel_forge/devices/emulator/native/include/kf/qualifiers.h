// CUDA's keywords and predefined macros, for a host compiler.
#pragma once
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "../kf_abi.h"

#define __CUDACC__ 1
#define __NVCC__ 1
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __KERNEL_FORGE_EMULATOR__ 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define CUDARTAPI
#define CUDART_CB
#define __device_builtin__
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__ 1

// The place of a call, as default arguments: see kf_abi.h.
#define KF_SITE int kf_line = __builtin_LINE(), const char* kf_file = __builtin_FILE()
#define KF_AT kf_line, kf_file
namespace kf {
// The same as one argument that no other converts to, for overloads that an int would be taken for.
struct Place {
  int line;
  const char* file;
  explicit Place(int l = __builtin_LINE(), const char* f = __builtin_FILE()) : line(l), file(f) {}
};
}  // namespace kf
#define KF_PLACE kf::Place kf_place = kf::Place()
#define KF_THERE kf_place.line, kf_place.file

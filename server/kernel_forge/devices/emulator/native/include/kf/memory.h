// Loads and stores with cache hints (plain here), printf, assert, malloc, and what is not emulated.
#pragma once
#include "atomics.h"
#include "integer.h"
#include "texture.h"

#define KF_LOAD(NAME) \
  template <class T>  \
  static inline T NAME(const T* p) { return *p; }
KF_LOAD(__ldg) KF_LOAD(__ldcg) KF_LOAD(__ldca) KF_LOAD(__ldcs) KF_LOAD(__ldlu) KF_LOAD(__ldcv)
#undef KF_LOAD
#define KF_STORE(NAME) \
  template <class T>   \
  static inline void NAME(T* p, typename std::remove_reference<T>::type v) { *p = v; }
KF_STORE(__stcg) KF_STORE(__stcs) KF_STORE(__stwb) KF_STORE(__stwt)
#undef KF_STORE

// The emulator's address spaces are one; which one a pointer belongs to is not known here.
#define KF_SPACE(NAME) static inline unsigned NAME(const void*, KF_SITE) { kf_unsupported(#NAME, KF_AT); }
KF_SPACE(__isGlobal) KF_SPACE(__isShared) KF_SPACE(__isConstant) KF_SPACE(__isLocal) KF_SPACE(__isGridConstant) KF_SPACE(__isCtaShared) KF_SPACE(__isClusterShared)
#undef KF_SPACE
#define KF_CVTA(SPACE)                                                                                      \
  static inline size_t __cvta_generic_to_##SPACE(const void* p) { return reinterpret_cast<size_t>(p); }  \
  static inline void* __cvta_##SPACE##_to_generic(size_t p) { return reinterpret_cast<void*>(p); }
KF_CVTA(global) KF_CVTA(shared) KF_CVTA(constant) KF_CVTA(local) KF_CVTA(grid_constant)
#undef KF_CVTA
static inline void __prefetch_global_l1(const void*) {}
static inline void __prefetch_global_l2(const void*) {}
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)

#define printf(...) kf_printf(__VA_ARGS__)
#undef assert
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) ((x) ? (void)0 : kf_assert_failed(#x, __builtin_LINE(), __builtin_FILE()))
#endif
#define KF_ASSERT_DEFINED 1
#define malloc(n) kf_device_malloc(n)
#define free(p) kf_device_free(p)

namespace kf {
template <class... A> constexpr size_t largest(A... values) {
  size_t most = 16;  // what a float4 access may ask of any array
  for (size_t v : {static_cast<size_t>(values)...}) most = v > most ? v : most;
  return most;
}
}  // namespace kf
// Where the rewriter could not reach (inside a macro's body): one per thread that runs blocks, without guard or poison.
#define __shared__ static thread_local __attribute__((aligned(128)))

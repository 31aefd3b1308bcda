// Loads and stores with cache hints (plain here), printf, assert, malloc, and what is not emulated.
#pragma once
#include "atomics.h"
#include "integer.h"

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

static inline unsigned __isGlobal(const void*) { return 1; }
static inline size_t __cvta_generic_to_global(const void* p) { return reinterpret_cast<size_t>(p); }
static inline size_t __cvta_generic_to_shared(const void* p) { return reinterpret_cast<size_t>(p); }
static inline void __prefetch_global_l1(const void*) {}
static inline void __prefetch_global_l2(const void*) {}
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)

// Asynchronous copies end before anybody may look at them: a synchronous copy is a right emulation.
static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) {
  memcpy(to, from, bytes - zero_fill);
  memset(static_cast<char*>(to) + bytes - zero_fill, 0, zero_fill);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(unsigned) {}

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

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
#define KF_TEXTURE(NAME)                                                 \
  template <class T, class... A>                                         \
  static inline T NAME(cudaTextureObject_t, A...) {                      \
    kf_unsupported("texture " #NAME, __builtin_LINE(), __builtin_FILE()); \
  }
KF_TEXTURE(tex1Dfetch) KF_TEXTURE(tex1D) KF_TEXTURE(tex2D) KF_TEXTURE(tex3D) KF_TEXTURE(tex2DLayered) KF_TEXTURE(tex2DLod)
#undef KF_TEXTURE

namespace kf {
template <class... A> constexpr size_t largest(A... values) {
  size_t most = 16;  // what a float4 access may ask of any array
  for (size_t v : {static_cast<size_t>(values)...}) most = v > most ? v : most;
  return most;
}
}  // namespace kf
// Where the rewriter could not reach (inside a macro's body): one per thread that runs blocks, without guard or poison.
#define __shared__ static thread_local __attribute__((aligned(128)))

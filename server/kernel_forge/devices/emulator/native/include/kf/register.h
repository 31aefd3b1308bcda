// Making kernels callable from the runtime. The rewriter appends, after the user's code:
//
//   const kf_kernel kf_kernels[] = {kf::kernel_entry<decltype(&f<256>), &f<256>>("f<BLOCK>"), ...};
//   const unsigned kf_kernel_count = 1;
//   const kf_symbol kf_symbols[] = {{"coefficients", (void*)&coefficients, sizeof coefficients}};
//   const unsigned kf_symbol_count = 1;
#pragma once
#include "qualifiers.h"

namespace kf {

template <class F, F f> struct Entry;
template <class... A, void (*f)(A...)> struct Entry<void (*)(A...), f> {
  static constexpr unsigned count = sizeof...(A);
  static inline const unsigned sizes[count + 1] = {sizeof(typename std::remove_reference<A>::type)..., 0};
  template <size_t... I> static void call(void* const* p, std::index_sequence<I...>) {
    f(*static_cast<typename std::remove_reference<A>::type*>(p[I])...);
  }
  static void invoke(void* const* p) { call(p, std::index_sequence_for<A...>{}); }
};

template <class F, F f> inline kf_kernel kernel_entry(const char* name) {
  return {name, &Entry<F, f>::invoke, Entry<F, f>::count, Entry<F, f>::sizes};
}

}  // namespace kf

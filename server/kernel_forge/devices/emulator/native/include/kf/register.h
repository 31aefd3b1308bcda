// Making kernels callable from the runtime. The rewriter appends, after the user's code:
//
//   const kf_kernel kf_kernels[] = {kf::kernel_entry<decltype(&f<256>), &f<256>, kf_enter>("f<BLOCK>"), ...};
//   const unsigned kf_kernel_count = 1;
//   const kf_symbol kf_symbols[] = {{"coefficients", (void*)&coefficients, sizeof coefficients}};
//   const unsigned kf_symbol_count = 1;
// kf_enter runs before every thread: it sets what the file declared as `extern __shared__` at namespace scope.
#pragma once
#include "qualifiers.h"

namespace kf {

template <class F, F f, void (*enter)()> struct Entry;
template <class... A, void (*f)(A...), void (*enter)()> struct Entry<void (*)(A...), f, enter> {
  static constexpr unsigned count = sizeof...(A);
  static inline const unsigned sizes[count + 1] = {sizeof(typename std::remove_reference<A>::type)..., 0};
  template <size_t... I> static void call(void* const* p, std::index_sequence<I...>) {
    enter();
    f(*static_cast<typename std::remove_reference<A>::type*>(p[I])...);
  }
  static void invoke(void* const* p) { call(p, std::index_sequence_for<A...>{}); }
};

template <class F, F f, void (*enter)()> inline kf_kernel kernel_entry(const char* name) {
  using E = Entry<F, f, enter>;
  return {name, &E::invoke, E::count, E::sizes};
}

}  // namespace kf

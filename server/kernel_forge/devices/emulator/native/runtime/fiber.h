// Switching between stacks: the one part that is written per instruction set.
#pragma once
#include <cstddef>

#if !defined(KF_FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define KF_FIBER_UCONTEXT 1
#endif
#ifdef KF_FIBER_UCONTEXT
#include <ucontext.h>
#endif

namespace kf {

// A suspended stack. `entry` never returns.
struct Context {
#ifdef KF_FIBER_UCONTEXT
  ucontext_t saved;
#else
  void* stack_pointer = nullptr;
#endif
};

// Makes `context` start `entry` on the stack [base, base + bytes) when first switched to.
void prepare_context(Context& context, void* base, size_t bytes, void (*entry)());

// Saves the running stack in `from` and continues `to`.
void switch_context(Context& from, Context& to);

}  // namespace kf

#include "fiber.h"

#include <cstdint>

namespace kf {

#ifdef KF_FIBER_UCONTEXT

void prepare_context(Context& context, void* base, size_t bytes, void (*entry)()) {
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = base;
  context.saved.uc_stack.ss_size = bytes;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }

#else

// Saves the callee-saved registers on the running stack, stores the stack pointer at *from, loads `to`.
extern "C" void kf_switch_stack(void** from, void* to);

#if defined(__x86_64__)
// System V x86-64: rbx, rbp, r12-r15 are callee-saved; control words are never changed by kernels.
asm(R"(
.text
.globl kf_switch_stack
.type kf_switch_stack,@function
kf_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kf_switch_stack,.-kf_switch_stack
)");

void prepare_context(Context& context, void* base, size_t bytes, void (*entry)()) {
  // After `ret` the stack pointer must be 8 below a multiple of 16, as after a call.
  auto top = (reinterpret_cast<uintptr_t>(base) + bytes) & ~uintptr_t{15};
  auto* frame = reinterpret_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) frame[i] = nullptr;
  frame[6] = reinterpret_cast<void*>(entry);
  context.stack_pointer = frame;
}
#else
// AAPCS64: x19-x30 and d8-d15 are callee-saved.
asm(R"(
.text
.globl kf_switch_stack
.type kf_switch_stack,%function
kf_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size kf_switch_stack,.-kf_switch_stack
)");

void prepare_context(Context& context, void* base, size_t bytes, void (*entry)()) {
  auto top = (reinterpret_cast<uintptr_t>(base) + bytes) & ~uintptr_t{15};
  auto* frame = reinterpret_cast<void**>(top) - 20;
  for (int i = 0; i < 20; ++i) frame[i] = nullptr;
  frame[11] = reinterpret_cast<void*>(entry);  // x30
  context.stack_pointer = frame;
}
#endif

void switch_context(Context& from, Context& to) { kf_switch_stack(&from.stack_pointer, to.stack_pointer); }

#endif

}  // namespace kf

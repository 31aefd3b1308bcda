// Signals: accesses that fault.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstring>

#include "report.h"
#include "state.h"

namespace kf {

void* pc_of(void* context) {
  auto* uc = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  return reinterpret_cast<void*>(uc->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(uc->uc_mcontext.pc);
#else
  (void)uc;
  return nullptr;
#endif
}

namespace {

constexpr uintptr_t kNullLimit = 64 * 1024;

// 1 write, 0 read, -1 unknown.
int is_write(void* context) {
  auto* uc = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  return uc->uc_mcontext.gregs[REG_ERR] >> 1 & 1;  // page-fault error code, bit 1
#elif defined(__aarch64__)
  // Records follow each other, each with magic number and size; that of the fault holds the syndrome register,
  // whose bit 6 tells writes (WnR) where its class is a data abort.
  constexpr uint32_t kSyndromeMagic = 0x45535201, kDataAbort = 0x24;
  auto* p = reinterpret_cast<unsigned char*>(uc->uc_mcontext.__reserved);
  for (uint32_t head[2];; p += head[1]) {
    memcpy(head, p, sizeof head);
    if (head[0] == 0 || head[1] == 0) return -1;
    if (head[0] != kSyndromeMagic) continue;
    uint64_t syndrome;
    memcpy(&syndrome, p + 8, sizeof syndrome);
    return syndrome >> 26 == kDataAbort ? static_cast<int>(syndrome >> 6 & 1) : -1;
  }
#else
  (void)uc;
  return -1;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto* address = static_cast<char*>(info->si_addr);
  claim_end();
  Line line("fault");
  Region region;
  bool near = find_region(address, region);
  int write = is_write(context);
  const char* kind = "out-of-bounds";
  Worker* w = worker;
  if (signal == SIGFPE) {
    kind = "crash";
    line.text("message", "integer division by zero (undefined on a GPU, which does not trap)");
  } else if (signal == SIGILL) {
    kind = "crash";
    line.text("message", "the compiler marked this point as unreachable");
  } else if (w && address >= w->stacks && address < w->stacks + w->stacks_bytes) {
    kind = "stack-overflow";
    near = false;
  } else if (signal == SIGSEGV && info->si_code == SI_KERNEL) {
    // No address is known: the pointer is none that any mapping can have, as one made of poison is.
    line.text("message", "the pointer is not a valid address");
    near = false;
  } else if (reinterpret_cast<uintptr_t>(address) < kNullLimit) {
    kind = "null";
    near = false;
  } else if (near && !region.writable && address >= region.base && address < region.base + region.bytes) {
    kind = "read-only";
    write = 1;
  }
  line.text("kind", kind).address("pc", pc_of(context)).address("address", address);
  if (write >= 0) line.number("write", write);
  if (!strcmp(kind, "stack-overflow")) line.number("bytes", kStackBytes);
  if (near && signal != SIGFPE && signal != SIGILL) {
    if (region.shared)
      line.text("shared", region.shared);
    else
      line.number("buffer", region.buffer);
    line.number("offset", address - region.base).number("bytes", static_cast<long long>(region.bytes));
  }
  if (w && w->current >= 0) line.thread(kf_block_idx, kf_thread_idx);
  line.write();
  end_run();
}

}  // namespace

void install_fault_handlers() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_fault;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  // A file that outgrows its limit is an error of the write, not the end of the process.
  signal(SIGXFSZ, SIG_IGN);
  give_signal_stack();
}

void give_signal_stack() {
  constexpr size_t bytes = 64 * 1024;
  static thread_local char stack[bytes];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = bytes;
  sigaltstack(&alternate, nullptr);
}

}  // namespace kf

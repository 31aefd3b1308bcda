// The watch: which instruction of which thread wrote some bytes last. Their pages are read-only; each write to
// them is let through alone and looked at. On x86-64 only: elsewhere nobody is named.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "instruction.h"
#include "report.h"
#include "state.h"

namespace kf {

namespace {

constexpr ptrdiff_t kWidestStore = 64;  // AVX-512

// On the heap: the watched pages may be those of the program's own variables.
struct Watch {
  char* base;
  size_t bytes;
  char* page;
  size_t page_bytes;
  std::vector<char> before, after;
  std::atomic<bool> busy{false};  // some OS thread is stepping
  // Of the step:
  unsigned char* step_pc = nullptr;
  bool touches = false;  // the access is known to reach the watched bytes
  bool repeated = false;
  bool ambiguous = false;  // it begins below and may or may not reach them
  // The answer:
  bool hit = false;
  void* hit_pc = nullptr;
  kf_dim3 hit_block{}, hit_thread{};
};
Watch* watch = nullptr;
thread_local bool stepping = false;

#if defined(__x86_64__)

constexpr greg_t kTrapFlag = 0x100;

// Without the C library: its functions are bound at their first call, which writes to a table that may lie in the
// watched pages, and a fault in a handler ends the process.
void set_access(int access) {
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_mprotect), "D"(watch->page), "S"(watch->page_bytes), "d"(access)
               : "rcx", "r11", "memory");
}

void on_step(int, siginfo_t*, void* context) {
  if (!stepping) return;
  Watch& w = *watch;
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  bool touched = w.touches || memcmp(w.before.data(), w.base, w.bytes) != 0;
  if (w.repeated) {
    // The second time, the watched bytes began inverted. What is the same both times was written.
    touched = false;
    for (size_t i = 0; i < w.bytes; ++i) touched |= w.base[i] == w.after[i];
    memcpy(w.base, w.after.data(), w.bytes);
  } else if (!touched && w.ambiguous) {
    for (size_t i = 0; i < w.bytes; ++i) w.after[i] = w.base[i], w.base[i] = static_cast<char>(~w.base[i]);
    w.repeated = true;
    registers[REG_RIP] = reinterpret_cast<greg_t>(w.step_pc);
    return;  // the trap flag is still set
  }
  registers[REG_EFL] &= ~kTrapFlag;
  if (touched) {
    w.hit = true;
    w.hit_pc = w.step_pc;
    w.hit_block = kf_block_idx;
    w.hit_thread = kf_thread_idx;
  }
  stepping = false;
  w.busy = false;
  set_access(PROT_READ);
}
#endif

}  // namespace

bool watch_is_stepping() { return stepping; }

void install_watch_handler() {
#if defined(__x86_64__)
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, nullptr);
#endif
}

bool begin_watched_step(void* context, char* address) {
#if defined(__x86_64__)
  if (!watch || stepping || address < watch->page || address >= watch->page + watch->page_bytes) return false;
  while (watch->busy.exchange(true)) __builtin_ia32_pause();
  set_access(PROT_READ | PROT_WRITE);
  Region region;
  if (find_region(address, region) && region.map && !region.writable) return false;
  Watch& w = *watch;
  stepping = true;
  memcpy(w.before.data(), w.base, w.bytes);
  w.touches = address >= w.base && address < w.base + w.bytes;
  // Only a move may be executed twice.
  MemoryWrite write;
  w.ambiguous = address < w.base && w.base - address < kWidestStore && next_write(context, write) && !write.modifies;
  w.repeated = false;
  w.step_pc = static_cast<unsigned char*>(pc_of(context));
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  return true;
#else
  (void)context, (void)address;
  return false;
#endif
}

void set_watch(char* base, size_t bytes) {
  size_t page = page_size();
  auto first = reinterpret_cast<uintptr_t>(base) / page * page;
  auto last = (reinterpret_cast<uintptr_t>(base) + bytes + page - 1) / page * page;
  watch = new Watch{base, bytes, reinterpret_cast<char*>(first), last - first, std::vector<char>(bytes),
                    std::vector<char>(bytes)};
}

void protect_watch() {
#if defined(__x86_64__)
  if (watch) protect(watch->page, watch->page_bytes, PROT_READ);
#endif
}

void release_watch() {
#if defined(__x86_64__)
  if (watch) set_access(PROT_READ | PROT_WRITE);
#endif
}

void report_watch() {
  if (watch && watch->hit) Line("watch").address("pc", watch->hit_pc).thread(watch->hit_block, watch->hit_thread).write();
}

}  // namespace kf

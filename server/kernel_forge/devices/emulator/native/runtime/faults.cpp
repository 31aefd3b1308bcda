// Signals: faulting accesses, the time limit, and the watch that tells who wrote an element.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "report.h"
#include "state.h"

namespace kf {

namespace {

constexpr size_t kPage = 4096;
constexpr uintptr_t kNullLimit = 64 * 1024;
constexpr int kClockSignal = SIGUSR1;

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

// 1 write, 0 read, -1 unknown.
int is_write(void* context) {
#if defined(__x86_64__)
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1;  // page-fault error code, bit 1
#else
  (void)context;
  return -1;
#endif
}

// ---- watch ------------------------------------------------------------------------------------------
struct Watch {
  char* base = nullptr;
  size_t bytes = 0;
  char* page = nullptr;
  size_t page_bytes = 0;
  bool stepping = false;
  bool touches = false;  // the access being stepped begins inside the watched bytes
  void* step_pc = nullptr;
  unsigned char before[32];
  bool hit = false;
  void* hit_pc = nullptr;
  kf_dim3 hit_block{}, hit_thread{};
} watch;

bool begin_watched_step(void* context, char* address) {
#if defined(__x86_64__)
  if (!watch.base || watch.stepping || address < watch.page || address >= watch.page + watch.page_bytes) return false;
  memcpy(watch.before, watch.base, watch.bytes);
  watch.stepping = true;
  watch.touches = address >= watch.base && address < watch.base + watch.bytes;
  watch.step_pc = pc_of(context);
  mprotect(watch.page, watch.page_bytes, PROT_READ | PROT_WRITE);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= 0x100;  // trap flag: one instruction
  return true;
#else
  (void)context, (void)address;
  return false;
#endif
}

void on_step(int, siginfo_t*, void* context) {
#if defined(__x86_64__)
  if (!watch.stepping) return;
  watch.stepping = false;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
  if (watch.touches || memcmp(watch.before, watch.base, watch.bytes) != 0) {
    watch.hit = true;
    watch.hit_pc = watch.step_pc;
    watch.hit_block = kf_block_idx;
    watch.hit_thread = kf_thread_idx;
  }
  mprotect(watch.page, watch.page_bytes, PROT_READ);
#else
  (void)context;
#endif
}

// ---- faults -----------------------------------------------------------------------------------------
void on_fault(int signal, siginfo_t* info, void* context) {
  auto* address = static_cast<char*>(info->si_addr);
  if (signal == SIGSEGV && begin_watched_step(context, address)) return;
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

// ---- time limit -------------------------------------------------------------------------------------
std::mutex workers_mutex;
std::vector<pthread_t> running_workers;

void on_clock(int, siginfo_t*, void* context) {
  claim_end();
  Line line("timeout");
  line.address("pc", pc_of(context));
  Worker* w = worker;
  if (w && w->current >= 0) line.thread(kf_block_idx, kf_thread_idx);
  line.open_list("sites");
  if (w) {
    int listed = 0;
    for (auto& t : w->threads) {
      bool waits = t.state == State::kAtBarrier || t.state == State::kAtWarp;
      if (waits && t.site.file && listed++ < 1) line.site(t.site.file, t.site.line, 1, t.index);
    }
  }
  line.close_list().write();
  end_run();
}

}  // namespace

void install_fault_handlers() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_fault;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, nullptr);
  action.sa_sigaction = on_clock;
  sigaction(kClockSignal, &action, nullptr);
  give_signal_stack();
}

void give_signal_stack() {
  constexpr size_t bytes = 64 * 1024;
  static thread_local char stack[bytes];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = bytes;
  sigaltstack(&alternate, nullptr);
  std::lock_guard<std::mutex> lock(workers_mutex);
  running_workers.push_back(pthread_self());
}

void forget_worker() {
  std::lock_guard<std::mutex> lock(workers_mutex);
  running_workers.erase(std::remove_if(running_workers.begin(), running_workers.end(),
                                       [](pthread_t t) { return pthread_equal(t, pthread_self()); }),
                        running_workers.end());
}

void start_clock() {
  double limit = settings.time_limit;
  std::thread([limit] {
    timespec rest{static_cast<time_t>(limit), static_cast<long>((limit - static_cast<double>(static_cast<time_t>(limit))) * 1e9)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
    // The last worker that began is the likeliest to be busy; the main thread only waits.
    {
      std::lock_guard<std::mutex> lock(workers_mutex);
      if (!running_workers.empty()) pthread_kill(running_workers.back(), kClockSignal);
    }
    sleep(1);
    claim_end();
    Line("timeout").open_list("sites").close_list().write();
    end_run();
  }).detach();
}

void set_watch(char* base, size_t bytes) {
  watch.base = base;
  watch.bytes = std::min(bytes, sizeof watch.before);
  auto first = reinterpret_cast<uintptr_t>(base) / kPage * kPage;
  auto last = (reinterpret_cast<uintptr_t>(base) + watch.bytes + kPage - 1) / kPage * kPage;
  watch.page = reinterpret_cast<char*>(first);
  watch.page_bytes = last - first;
}

void protect_watch() {
#if defined(__x86_64__)
  if (watch.base) mprotect(watch.page, watch.page_bytes, PROT_READ);
#endif
}

void report_watch() {
  if (!watch.base || !watch.hit) return;
  Line("watch").address("pc", watch.hit_pc).thread(watch.hit_block, watch.hit_thread).write();
}

}  // namespace kf

// ---- misaligned accesses: the compiler calls these (-fsanitize=alignment, no recovery) ------------------
namespace {
struct SourcePlace {
  const char* file;
  unsigned line, column;
};
struct TypeMismatch {
  SourcePlace place;
  const void* type;
  unsigned char log_alignment, kind;
};

[[noreturn]] void misaligned(const SourcePlace& place, uintptr_t address, unsigned long long alignment) {
  kf::claim_end();
  kf::Line line("misaligned");
  line.text("file", place.file).number("line", place.line).number("column", place.column);
  line.address("address", reinterpret_cast<void*>(address)).number("alignment", static_cast<long long>(alignment));
  line.thread(kf_block_idx, kf_thread_idx).write();
  kf::end_run();
}
}  // namespace

extern "C" {
void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* data, uintptr_t address) {
  misaligned(data->place, address, 1ull << data->log_alignment);
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t address) {
  misaligned(data->place, address, 1ull << data->log_alignment);
}
struct AlignmentAssumption {
  SourcePlace place;
  SourcePlace assumed;
  const void* type;
};
void __ubsan_handle_alignment_assumption_abort(AlignmentAssumption* data, uintptr_t address, uintptr_t alignment,
                                               uintptr_t) {
  misaligned(data->place, address, alignment);
}
void __ubsan_handle_alignment_assumption(AlignmentAssumption* data, uintptr_t address, uintptr_t alignment,
                                         uintptr_t) {
  misaligned(data->place, address, alignment);
}
}

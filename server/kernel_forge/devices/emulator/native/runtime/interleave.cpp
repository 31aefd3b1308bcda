// Interruptions between instructions, in random order: a few threads are held just before they write, with what
// they write already computed, while the other threads of the block and some other blocks run. An update of shared or
// global memory without an atomic then gets lost, as it can on a GPU; what is ordered rightly does not notice. Which
// threads and which writes follows from the seed. On x86-64 only.
#include <signal.h>
#include <ucontext.h>

#include <cstring>

#include "dispatch.h"
#include "instruction.h"

namespace kf {

namespace {

constexpr uint64_t kBlocks = 12;        // of a launch, in which threads are held
constexpr unsigned kThreads = 3;        // of such a block
constexpr unsigned kMostSteps = 600;    // instructions until the write, each a signal
bool enabled = false;

#if defined(__x86_64__)

constexpr greg_t kTrapFlag = 0x100;

// The write happens as if its value had been read before the others ran.
void hold(Worker& w, const MemoryWrite& write) {
  unsigned char before[8];
  if (write.modifies) memcpy(before, write.address, write.bytes);
  w.stepped = -1;
  Inside inside;
  let_others_run(w);
  w.launch->dispatcher->hold(w, 1 + mix(++w.random) % 8);
  if (write.modifies) memcpy(write.address, before, write.bytes);
}

bool is_visible(const Worker& w, const char* address) {
  Region region;
  return !(address >= w.stacks && address < w.stacks + w.stacks_bytes) && find_region(address, region) &&
         address >= region.base && address < region.base + region.bytes && region.writable;
}

void on_instruction(int, siginfo_t*, void* context) {
  auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  Worker* w = worker;
  if (!w || w->inside || w->current != w->stepped || w->steps == 0) {
    flags &= ~kTrapFlag;
    return;
  }
  --w->steps;
  MemoryWrite write;
  if (!next_write(context, write) || !is_visible(*w, write.address) || w->writes_to_skip-- != 0) return;
  flags &= ~kTrapFlag;
  hold(*w, write);
}
#endif

}  // namespace

void install_interleaving() {
#if defined(__x86_64__)
  if (settings.order != Order::kRandom) return;
  // Not deferred and on the stack of the CUDA thread: see on_preempt.
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  action.sa_sigaction = on_instruction;
  sigaction(SIGTRAP, &action, nullptr);
  enabled = true;
#endif
}

void step_on() {
#if defined(__x86_64__)
  asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
#endif
}

void choose_threads_to_hold(Worker& w) {
  w.stepped = -1;
  w.chosen.clear();
  uint64_t blocks = w.launch->blocks;
  uint64_t draw = mix(settings.order_seed ^ mix(w.block ^ 0x401d));
  if (!enabled || (blocks > kBlocks && draw % blocks >= kBlocks)) return;
  for (unsigned i = 0; i < kThreads; ++i)
    w.chosen.push_back(static_cast<uint32_t>(mix(draw + 1 + i) % w.threads.size()));
}

bool begins_stepping(Worker& w, uint32_t thread) {
  for (uint32_t chosen : w.chosen)
    if (chosen == thread) {
      w.stepped = static_cast<int>(thread);
      w.steps = kMostSteps;
      uint64_t draw = mix(w.block * 1024 + thread + settings.order_seed);
      w.writes_to_skip = static_cast<unsigned>(__builtin_ctzll(draw | 8));  // 0 in half the cases, at most 3
      return true;
    }
  return false;
}

}  // namespace kf

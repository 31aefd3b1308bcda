// The clock: ends a run at its limits of time and memory, and interrupts threads that wait without a word.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "report.h"
#include "state.h"

// Set by most linkers: the bounds of this program's own code.
extern "C" char __executable_start __attribute__((weak)), etext __attribute__((weak));

namespace kf {

namespace {

constexpr int kClockSignal = SIGUSR1, kPreemptSignal = SIGUSR2;
constexpr double kSecondsToAnswer = 0.01;
constexpr int kTickMilliseconds = 2, kTicksPerMemoryCheck = 16;
// CPU time a thread may compute without a call of the runtime before others get their turn. Shorter each time,
// because a kernel that waits by plain loads waits often.
constexpr double kFirstPatience = 0.05, kLeastPatience = 0.002;

struct Known {
  Worker* worker;
  pthread_t thread;
  uint64_t events;
  double since;  // CPU time of that OS thread when `events` was last new
};

// On the heap: a watch may have made the pages of the program's own variables read-only.
struct Registry {
  std::mutex mutex;
  std::vector<Known> known;
  bool stopped = false;
};
Registry& registry = *new Registry;

double cpu_seconds(pthread_t thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

size_t resident_bytes() {
  FILE* file = fopen("/proc/self/statm", "re");
  size_t whole = 0, resident = 0;
  if (file) {
    if (fscanf(file, "%zu %zu", &whole, &resident) != 2) resident = 0;
    fclose(file);
  }
  return resident * page_size();
}

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  size_t kib;
  while (file >> key >> kib && std::getline(file, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return SIZE_MAX;
}

// The first signal asks the kernel's next access to say where it is; a kernel that makes none is where the second one
// finds it.
void on_clock(int, siginfo_t*, void* context) {
  Worker* w = worker;
  if (w && !w->is_late) return end_at_next_access(*w);
  end_for_time(pc_of(context));
}

// On the stack of the CUDA thread, which is left and entered again like any other. Not inside the C library, which
// may hold a lock that the next thread needs.
void on_preempt(int, siginfo_t*, void* context) {
  Worker* w = worker;
  if (!w || w->current < 0 || w->inside || w->undisturbed) return;
  auto* pc = static_cast<char*>(pc_of(context));
  if (&etext && (pc < &__executable_start || pc >= &etext)) return;
  int error = errno;
  Inside inside;
  preempt(*w);
  errno = error;
}

void interrupt_silent_workers(double& patience) {
  std::lock_guard<std::mutex> lock(registry.mutex);
  if (registry.stopped) return;
  for (auto& known : registry.known) {
    if (!known.worker->holds_permit) continue;
    double now = cpu_seconds(known.thread);
    uint64_t events = known.worker->events.load(std::memory_order_relaxed);
    if (events != known.events || known.worker->inside) {
      known.events = events, known.since = now;
    } else if (now - known.since >= patience) {
      known.since = now;
      patience = std::max(kLeastPatience, patience / 2);
      pthread_kill(known.thread, kPreemptSignal);
    }
  }
}

// Until the thread has run for a while: on a busy machine it may not have got to see the signal yet.
void wait_for_answer(pthread_t thread) {
  double before = cpu_seconds(thread);
  for (int tries = 0; tries < 200 && cpu_seconds(thread) - before < kSecondsToAnswer; ++tries) usleep(2000);
}

[[noreturn]] void end_late() {
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    for (auto known = registry.known.rbegin(); known != registry.known.rend() && !registry.stopped; ++known)
      if (known->worker->holds_permit) {
        pthread_kill(known->thread, kClockSignal);
        wait_for_answer(known->thread);
        pthread_kill(known->thread, kClockSignal);
        break;
      }
  }
  sleep(1);
  claim_end();
  Line("timeout").open_list("sites").close_list().write();
  end_run();
}

}  // namespace

void end_for_time(void* pc) {
  claim_end();
  Worker* w = worker;
  Line line("timeout");
  line.address("pc", pc);
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

void install_clock_handlers() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_clock;
  sigaction(kClockSignal, &action, nullptr);
  // Not deferred: the handler may leave to another CUDA thread, which must be interruptible as well.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigemptyset(&action.sa_mask);
  action.sa_sigaction = on_preempt;
  sigaction(kPreemptSignal, &action, nullptr);
}

void start_clock() {
  size_t before = resident_bytes();
  size_t most = before + std::min(settings.memory_limit, available_bytes() / 8 * 7);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings.time_limit);
  std::thread([end, most, before] {
    double patience = kFirstPatience;
    for (int tick = 1; std::chrono::steady_clock::now() < end; ++tick) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTickMilliseconds));
      interrupt_silent_workers(patience);
      if (tick % kTicksPerMemoryCheck == 0 && resident_bytes() > most)
        end_for_lack_of("memory for what the threads of this run keep at once: more than " +
                        std::to_string((most - before) >> 20) + " MiB");
    }
    end_late();
  }).detach();
}

void stop_clock() {
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.stopped = true;
}

void clock_knows(Worker& w) {
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.known.push_back({&w, pthread_self(), 0, 0});
}

void clock_forgets(Worker& w) {
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.known.erase(std::remove_if(registry.known.begin(), registry.known.end(),
                                      [&](const Known& known) { return known.worker == &w; }),
                       registry.known.end());
}

}  // namespace kf

// Blocks over OS threads, CUDA threads as fibers, and the barriers of a block.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "report.h"
#include "state.h"

__thread kf_dim3 kf_thread_idx, kf_block_idx, kf_block_dim, kf_grid_dim;

namespace kf {

Settings settings;
__thread Worker* worker = nullptr;

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStack = 64 * 1024;  // of which the lowest page is a guard

void run_threads();

void shuffle(std::vector<uint32_t>& v, uint64_t& state) {
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[mix(++state) % i]);
}

int new_fiber(Worker& w) {
  int id;
  if (!w.free_fibers.empty()) {
    id = w.free_fibers.back();
    w.free_fibers.pop_back();
  } else {
    id = static_cast<int>(w.fibers.size());
    auto* fiber = new Fiber;
    fiber->stack = w.stacks + static_cast<size_t>(id) * kStack;
    mprotect(fiber->stack, kPage, PROT_NONE);
    w.fibers.push_back(fiber);
  }
  prepare_context(w.fibers[id]->context, w.fibers[id]->stack + kPage, kStack - kPage, run_threads);
  return id;
}

void set_current(Worker& w, uint32_t i) {
  w.current = static_cast<int>(i);
  w.current_fiber = w.threads[i].fiber;
  w.threads[i].state = State::kRunning;
  kf_thread_idx = w.threads[i].index;
}

uint32_t take_ready(Worker& w) {
  uint32_t i = w.ready[w.ready_head];
  w.ready_head = (w.ready_head + 1) % w.ready.size();
  --w.ready_count;
  return i;
}

void release_barrier(Worker& w) {
  if (w.barrier_diverged) {
    claim_end();
    Line line("barrier-divergence");
    line.thread(block_index(*w.launch, w.block), {}).open_list("sites");
    std::vector<Site> seen;
    for (auto& t : w.threads) {
      if (t.state != State::kAtBarrier || std::find(seen.begin(), seen.end(), t.site) != seen.end()) continue;
      seen.push_back(t.site);
      int count = static_cast<int>(std::count_if(w.threads.begin(), w.threads.end(), [&](const Thread& o) {
        return o.state == State::kAtBarrier && o.site == t.site;
      }));
      line.site(t.site.file, t.site.line, count, t.index);
    }
    line.close_list().write();
    end_run();
  }
  w.result_count = w.sum_true, w.result_or = w.any_true, w.result_and = w.all_true;
  w.at_barrier = 0;
  if (settings.order == Order::kRandom) shuffle(w.order, w.random);
  for (uint32_t i : w.order)
    if (w.threads[i].state == State::kAtBarrier) {
      ++w.warps[w.threads[i].warp].runnable;
      make_ready(w, i);
    }
}

void finish_thread(Worker& w) {
  Thread& t = w.threads[w.current];
  t.state = State::kDone;
  ++w.done;
  lane_exited(w, t);
  if (w.at_barrier && w.at_barrier + w.done == w.threads.size()) release_barrier(w);
}

// Body of every fiber: run fresh threads one after the other; once somebody else can go on, hand over.
void run_threads() {
  for (;;) {
    Worker& w = *worker;
    int self = w.current_fiber;
    if (w.next_fresh < w.threads.size()) {
      uint32_t i = w.order[w.next_fresh++];
      w.threads[i].fiber = self;
      set_current(w, i);
      w.launch->invoke(w.launch->args);
      finish_thread(*worker);
    }
    // This fiber holds no suspended thread now.
    if (w.ready_count) {
      w.free_fibers.push_back(self);
      set_current(w, take_ready(w));
      switch_context(w.fibers[self]->context, w.fibers[w.current_fiber]->context);
      continue;  // not reached: a reused fiber starts anew
    }
    if (w.next_fresh < w.threads.size()) continue;
    if (w.done == w.threads.size()) {
      w.free_fibers.push_back(self);
      w.current = -1;
      switch_context(w.fibers[self]->context, w.main);
      continue;
    }
    report_stall(w);
  }
}

uint64_t block_at(const Launch& launch, uint64_t n) {
  if (!launch.block_order.empty()) return launch.block_order[n];
  return settings.order == Order::kReverse ? launch.blocks - 1 - n : n;
}

void prepare_worker(Worker& w, Launch& launch) {
  w.launch = &launch;
  uint32_t n = launch.block.x * launch.block.y * launch.block.z;
  w.threads.assign(n, Thread{});
  w.order.resize(n);
  std::iota(w.order.begin(), w.order.end(), 0u);
  if (settings.order == Order::kReverse) std::reverse(w.order.begin(), w.order.end());
  w.ready.assign(n + 1, 0);
  w.warps.assign((n + 31) / 32, Warp{});
  for (uint32_t i = 0; i < n; ++i) {
    Thread& t = w.threads[i];
    t.index = {i % launch.block.x, i / launch.block.x % launch.block.y, i / launch.block.x / launch.block.y};
    t.lane = i & 31, t.warp = static_cast<uint16_t>(i >> 5);
    w.warps[t.warp].existing |= 1u << t.lane;
  }
  w.stacks_bytes = (n + 1) * kStack;
  void* map = mmap(nullptr, w.stacks_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
  if (map == MAP_FAILED) {
    claim_end();
    Line("memory-limit").text("message", "no memory for the stacks of the threads").write();
    end_run();
  }
  w.stacks = static_cast<char*>(map);
  kf_block_dim = launch.block, kf_grid_dim = launch.grid;
}

void run_block(Worker& w, uint64_t linear) {
  w.block = linear;
  ++w.block_serial;
  kf_block_idx = block_index(*w.launch, linear);
  w.next_fresh = w.done = w.at_barrier = 0;
  w.ready_head = w.ready_count = 0;
  w.barrier_diverged = false;
  w.random = mix(settings.order_seed) ^ mix(linear + 1);
  if (settings.order == Order::kRandom) {
    std::sort(w.order.begin(), w.order.end());
    shuffle(w.order, w.random);
  }
  for (auto& t : w.threads) t.state = State::kFresh;
  for (auto& warp : w.warps) {
    warp.done = 0;
    warp.runnable = __builtin_popcount(warp.existing);
    reset_meetings(warp);
  }
  begin_block_memory(w);
  int fiber = new_fiber(w);
  w.current_fiber = fiber;
  switch_context(w.main, w.fibers[fiber]->context);
  end_block_memory(w);
}

void work(Launch& launch) {
  Worker w;
  worker = &w;
  give_signal_stack();
  prepare_worker(w, launch);
  if (launch.cooperative) {
    run_block(w, block_at(launch, launch.next++));
    std::lock_guard<std::mutex> lock(launch.grid_mutex);
    ++launch.grid_finished;
    launch.grid_met.notify_all();
  } else {
    for (uint64_t n; (n = launch.next++) < launch.blocks;) run_block(w, block_at(launch, n));
  }
  for (auto* fiber : w.fibers) delete fiber;
  munmap(w.stacks, w.stacks_bytes);
  for (auto& warp : w.warps)
    for (auto* meeting : warp.meetings) delete meeting;
  worker = nullptr;
  forget_worker();
}

}  // namespace

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

kf_dim3 block_index(const Launch& launch, uint64_t n) {
  return {static_cast<unsigned>(n % launch.grid.x), static_cast<unsigned>(n / launch.grid.x % launch.grid.y),
          static_cast<unsigned>(n / launch.grid.x / launch.grid.y)};
}

void make_ready(Worker& w, uint32_t i) {
  w.threads[i].state = State::kReady;
  w.ready[(w.ready_head + w.ready_count++) % w.ready.size()] = i;
}

void yield_to_others(Worker& w, bool fresh_first) {
  int self = w.current, self_fiber = w.current_fiber;
  if (w.ready_count && !(fresh_first && w.next_fresh < w.threads.size())) {
    uint32_t i = take_ready(w);
    set_current(w, i);
    if (static_cast<int>(i) != self) switch_context(w.fibers[self_fiber]->context, w.fibers[w.current_fiber]->context);
    return;
  }
  if (w.next_fresh < w.threads.size()) {
    w.current_fiber = new_fiber(w);
    switch_context(w.fibers[self_fiber]->context, w.fibers[w.current_fiber]->context);
    return;
  }
  report_stall(w);
}

void run_launch(Launch& launch) {
  if (settings.order == Order::kRandom && launch.blocks <= (1u << 22)) {
    launch.block_order.resize(launch.blocks);
    std::iota(launch.block_order.begin(), launch.block_order.end(), 0u);
    uint64_t state = mix(settings.order_seed ^ 0xb10c);
    shuffle(launch.block_order, state);
  }
  // Blocks of a cooperative launch are all alive at once, each on an OS thread of its own.
  uint64_t count = launch.cooperative ? launch.blocks : std::min<uint64_t>(settings.workers, launch.blocks);
  std::vector<std::thread> others;
  for (uint64_t i = 0; i < count; ++i) others.emplace_back([&launch] { work(launch); });
  for (auto& thread : others) thread.join();
}

}  // namespace kf

using namespace kf;

extern "C" {

int kf_block_barrier(int reduction, int predicate, int line, const char* file) {
  Worker& w = *worker;
  Thread& t = w.threads[w.current];
  t.state = State::kAtBarrier;
  t.site = {file, line};
  if (w.at_barrier == 0) {
    w.barrier_site = t.site;
    w.sum_true = 0, w.any_true = false, w.all_true = true;
  } else if (t.site != w.barrier_site) {
    w.barrier_diverged = true;
  }
  w.sum_true += predicate != 0, w.any_true |= predicate != 0, w.all_true &= predicate != 0;
  ++w.at_barrier;
  leave_warp_runnable(w, t);
  if (w.at_barrier + w.done == w.threads.size()) release_barrier(w);
  yield_to_others(w);
  return reduction == 1 ? w.result_count : reduction == 2 ? w.result_or : w.result_and;
}

void kf_grid_barrier(int line, const char* file) {
  Worker& w = *worker;
  Launch& launch = *w.launch;
  if (!launch.cooperative) {
    claim_end();
    Line("configuration").text("message", "grid.sync() needs a cooperative launch (cooperative = true)").write();
    end_run();
  }
  // The block meets; then its first thread meets the other blocks; then the block goes on.
  kf_block_barrier(0, 1, line, file);
  if (w.current == static_cast<int>(w.order[0])) {
    std::unique_lock<std::mutex> lock(launch.grid_mutex);
    uint64_t generation = launch.grid_generation;
    if (++launch.grid_arrived == launch.blocks) {
      launch.grid_arrived = 0;
      ++launch.grid_generation;
      launch.grid_met.notify_all();
    } else {
      launch.grid_met.wait(lock, [&] { return launch.grid_generation != generation || launch.grid_finished; });
      if (launch.grid_generation == generation) {
        claim_end();
        Line end("deadlock");
        end.thread(kf_block_idx, kf_thread_idx).open_list("sites");
        end.site(file, line, static_cast<int>(w.threads.size()), kf_thread_idx).close_list().write();
        end_run();
      }
    }
  }
  kf_block_barrier(0, 1, line, file);
}

void kf_spin() {
  Worker* w = worker;
  if (!w || w->current < 0) return;
  // In random order, let others in between a plain read and the atomic that follows it, where updates get lost.
  bool interrupt = settings.order == Order::kRandom && mix(++w->random) % 4 != 0;
  if (!interrupt && ++w->spins < 256) return;
  w->spins = 0;
  if (w->ready_count == 0 && w->next_fresh >= w->threads.size()) {
    sched_yield();
    return;
  }
  make_ready(*w, static_cast<uint32_t>(w->current));
  yield_to_others(*w, true);  // what it waits for may be up to a thread that has not begun
}

void kf_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

unsigned kf_lane_id() { return worker->threads[worker->current].lane; }
unsigned kf_warp_id() { return worker->threads[worker->current].warp; }
}

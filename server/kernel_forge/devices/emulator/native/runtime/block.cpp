// One block: CUDA threads as fibers, and their barriers.
#include <algorithm>
#include <numeric>

#include "dispatch.h"
#include "report.h"
#include "state.h"

__thread kf_dim3 kf_thread_idx, kf_block_idx, kf_block_dim, kf_grid_dim;

namespace kf {

Settings settings;
__thread Worker* worker = nullptr;

namespace {

void run_threads();

int new_fiber(Worker& w) {
  int id;
  if (!w.free_fibers.empty()) {
    id = w.free_fibers.back();
    w.free_fibers.pop_back();
  } else {
    id = static_cast<int>(w.fibers.size());
    auto* fiber = new Fiber;
    fiber->stack = open_stack(w, static_cast<size_t>(id));
    w.fibers.push_back(fiber);
  }
  // Stacks that began at the same offset in their pages would compete for the same few lines of the cache.
  size_t bytes = kStackBytes - static_cast<size_t>(id) % 16 * 192;
  prepare_context(w.fibers[id]->context, w.fibers[id]->stack, bytes, run_threads);
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
  pass_time(w, kSpinUnits);
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
  w.idle = 0;
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
      w.idle = 0;
      set_current(w, i);
      w.inside = false;
      w.launch->invoke(w.launch->args);
      w.inside = true;
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
    if (!release_held(w)) report_stall(w);
  }
}

}  // namespace

void shuffle(std::vector<uint32_t>& v, uint64_t& state) {
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[mix(++state) % i]);
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
  reserve_stacks(w, n + 1);
  kf_block_dim = launch.block, kf_grid_dim = launch.grid;
}

void run_block(Worker& w, uint64_t linear) {
  w.block = linear;
  ++w.block_serial;
  kf_block_idx = block_index(*w.launch, linear);
  w.next_fresh = w.done = w.at_barrier = 0;
  w.ready_head = w.ready_count = 0;
  w.held.clear();
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
  w.fresh_first = false;
  w.undisturbed = 0;
  begin_interleaving(w);
  w.spins = 0, w.idle = 0;
  w.next_turn = 0, w.turns = 0;
  int fiber = new_fiber(w);
  w.current_fiber = fiber;
  switch_context(w.main, w.fibers[fiber]->context);
  end_block_memory(w);
}

void release_worker(Worker& w) {
  for (auto* fiber : w.fibers) delete fiber;
  release_stacks(w);
  release_block_memory();
  for (auto& warp : w.warps)
    for (auto* meeting : warp.meetings) delete meeting;
}

kf_dim3 block_index(const Launch& launch, uint64_t n) {
  return {static_cast<unsigned>(n % launch.grid.x), static_cast<unsigned>(n / launch.grid.x % launch.grid.y),
          static_cast<unsigned>(n / launch.grid.x / launch.grid.y)};
}

void make_ready(Worker& w, uint32_t i) {
  w.threads[i].state = State::kReady;
  w.ready[(w.ready_head + w.ready_count++) % w.ready.size()] = i;
}

void make_ready_next(Worker& w, uint32_t i) {
  w.threads[i].state = State::kReady;
  w.ready_head = (w.ready_head + w.ready.size() - 1) % w.ready.size();
  w.ready[w.ready_head] = i;
  ++w.ready_count;
}

void yield_to_others(Worker& w) {
  int self = w.current, self_fiber = w.current_fiber;
  if (w.ready_count && !(w.fresh_first && w.next_fresh < w.threads.size())) {
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
  if (!release_held(w)) report_stall(w);
  yield_to_others(w);
}

bool release_held(Worker& w) {
  if (w.held.empty()) return false;
  shuffle(w.held, w.random);
  for (uint32_t i : w.held) make_ready(w, i);
  w.held.clear();
  return true;
}

void pass_time(Worker& w, uint64_t units) {
  constexpr uint64_t kShortest = 4096 * kSpinUnits, kPerThread = 512 * kSpinUnits;
  w.idle += units;
  if (w.idle < std::max(kShortest, kPerThread * (w.ready_count + 1))) return;
  w.idle = 0;
  // Those held back first: what is waited for may be up to them, and they may be on their way to a mask.
  bool settled = false;
  if (!release_held(w))
    for (unsigned warp = 0; warp < w.warps.size(); ++warp) settled |= settle_active_masks(w, warp);
  if (!settled) w.launch->dispatcher->park(w);
}

bool let_others_run(Worker& w) {
  if (w.ready_count == 0 && w.next_fresh >= w.threads.size() && !release_held(w)) return false;
  make_ready(w, static_cast<uint32_t>(w.current));
  w.fresh_first = true;  // what it waits for may be up to threads that have not begun
  yield_to_others(w);
  return true;
}

void preempt(Worker& w) {
  bool alone = w.ready_count == 0 && w.next_fresh >= w.threads.size();
  pass_time(w, (alone ? 4096 : 512) * kSpinUnits);
  let_others_run(w);
}

int block_barrier(int reduction, int predicate, Site site) {
  Worker& w = *worker;
  Thread& t = w.threads[w.current];
  t.state = State::kAtBarrier;
  t.site = site;
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

}  // namespace kf

using namespace kf;

extern "C" {

int kf_block_barrier(int reduction, int predicate, int line, const char* file) {
  Inside inside;
  return block_barrier(reduction, predicate, {file, line});
}

void kf_spin() {
  if (!worker || worker->current < 0) return;
  Inside inside;
  Worker& w = *worker;
  // In random order, let others in between a plain read and the atomic that follows it, where updates get lost.
  bool interrupt = settings.order == Order::kRandom && mix(++w.random) % 4 != 0;
  pass_time(w, kSpinUnits);
  if (!interrupt && ++w.spins < 256) return;
  w.spins = 0;
  let_others_run(w);
}

void kf_fence() {
  kf_spin();  // loops that wait for plain memory have one
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

unsigned kf_lane_id() { return worker->threads[worker->current].lane; }
unsigned kf_warp_id() { return worker->threads[worker->current].warp; }
}

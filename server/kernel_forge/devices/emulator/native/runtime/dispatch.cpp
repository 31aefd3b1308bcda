#include "dispatch.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "report.h"

namespace kf {

namespace {
// Kernels run on stacks of their own; this one holds the scheduler, and what a file declares thread_local.
constexpr size_t kWorkerStack = 2 << 20;
constexpr std::chrono::milliseconds kShortWait{5};
}  // namespace

Dispatcher::Dispatcher(Launch& launch) : launch_(launch), order_(launch.blocks) {
  uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  most_resident_ = std::max<uint64_t>(1, std::min(kMostResidentBlocks, kMostResidentThreads / threads));
}

void Dispatcher::run() {
  launch_.dispatcher = this;
  std::unique_lock<std::mutex> lock(mutex_);
  for (unsigned i = 0; i < std::max(1u, settings.workers); ++i) hand_on();
  all_ended_.wait(lock, [&] { return ended_ == launch_.blocks; });
}

bool Dispatcher::can_begin() const { return begun_ < launch_.blocks && begun_ - ended_ < most_resident_; }

uint64_t Dispatcher::begin() {
  if (!ascending_) return order_.block(begun_++);
  ++begun_;
  while (order_.position(next_ascending_) < begun_in_order_) ++next_ascending_;
  return next_ascending_++;
}

void Dispatcher::start_thread() {
  auto* start = new Start{this, begin()};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kWorkerStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, enter, start) != 0)
    end_for_lack_of("OS threads for " + std::to_string(begun_ - ended_) + " blocks that wait for each other");
  pthread_attr_destroy(&attributes);
}

void* Dispatcher::enter(void* start) {
  auto [dispatcher, block] = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  dispatcher->work(block);
  return nullptr;
}

void Dispatcher::work(uint64_t block) {
  Worker w;
  worker = &w;
  give_signal_stack();
  prepare_worker(w, launch_);
  w.holds_permit = true;
  clock_knows(w);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_.push_back(&w);
  }
  do run_block(w, block);
  while (end_block(w, block));
  worker = nullptr;
}

// Of the blocks that wait, the lowest that began before its turn and whose turn it is now.
Worker* Dispatcher::overdue() {
  uint64_t next = ascending_ ? next_ascending_ : 0;
  Worker* lowest = nullptr;
  for (auto* w : waiting_)
    if (w->block <= next && w->next_turn <= ended_ && (!lowest || w->block < lowest->block)) lowest = w;
  return lowest;
}

// Takes the next block for this OS thread, or hands its permit on and lets it end.
bool Dispatcher::end_block(Worker& w, uint64_t& next) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++ended_;
  note_change();
  release_held(ended_);
  if (!at_grid_.empty())
    grid_deadlock(launch_, at_grid_[0].worker->block, at_grid_[0].site, at_grid_[0].worker->threads.size());
  Worker* other = overdue();
  if (other) {
    // Seldom again, should it wait for something else.
    other->next_turn = ended_ + (uint64_t{1} << std::min(other->turns++, 40u));
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), other));
    released_.push_back(other);
  }
  if (released_.empty() && can_begin()) return next = begin(), true;
  clock_forgets(w);
  workers_.erase(std::find(workers_.begin(), workers_.end(), &w));
  release_worker(w);
  hand_on();
  if (ended_ == launch_.blocks) all_ended_.notify_all();
  return false;
}

// The caller gives up a permit.
void Dispatcher::hand_on() {
  std::deque<Worker*>* queue = &released_;
  if (released_.empty()) {
    if (can_begin()) return start_thread();
    queue = held_.empty() ? &waiting_ : &held_;
  }
  if (queue->empty()) {
    ++free_permits_;
    return;
  }
  auto next = queue->begin();
  if (queue == &waiting_) {
    // The lowest of those for whom a block has ended since they began to wait; else each in turn.
    auto news = [this](Worker* w) { return w->parked_at < ended_; };
    for (auto i = queue->begin(); i != queue->end(); ++i)
      if (news(*i) && (!news(*next) || (*i)->block < (*next)->block)) next = i;
  }
  (*next)->permitted = true;
  (*next)->woken.notify_one();
  queue->erase(next);
}

void Dispatcher::wait_for_permit(Worker& w, std::unique_lock<std::mutex>& lock) {
  w.holds_permit = false;
  w.woken.wait(lock, [&] { return w.permitted; });
  w.holds_permit = true;
}

void Dispatcher::note_change() {
  ++changes_;
  changed_.notify_all();
}

void Dispatcher::release_held(uint64_t ended) {
  for (auto i = held_.begin(); i != held_.end();) {
    if ((*i)->due > ended) {
      ++i;
      continue;
    }
    released_.push_back(*i);
    i = held_.erase(i);
  }
}

// Every block that is held keeps its threads' stacks.
constexpr size_t kMostHeld = 3;

void Dispatcher::hold(Worker& w, uint64_t ends) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!can_begin() || held_.size() >= kMostHeld) return;
  w.permitted = false;
  w.due = ended_ + ends;
  held_.push_back(&w);
  hand_on();
  wait_for_permit(w, lock);
}

void Dispatcher::park(Worker& w) {
  std::unique_lock<std::mutex> lock(mutex_);
  release_held(UINT64_MAX);  // it may be one of them that is waited for
  bool lower_runs = std::any_of(workers_.begin(), workers_.end(),
                                [&](Worker* other) { return other->holds_permit && other->block < w.block; });
  if (lower_runs) {
    // It is likely to be what is waited for, and needs the processor more than a further block does.
    changed_.wait_for(lock, kShortWait, [this, seen = changes_] { return changes_ != seen; });
    return;
  }
  if (released_.empty() && waiting_.empty() && !can_begin()) {
    lock.unlock();
    sched_yield();
    return;
  }
  if (!ascending_) ascending_ = true, begun_in_order_ = begun_;
  w.permitted = false;
  w.parked_at = ended_;
  waiting_.push_back(&w);
  note_change();
  hand_on();
  wait_for_permit(w, lock);
}

void Dispatcher::meet_grid(Worker& w, Site site) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (ended_) grid_deadlock(launch_, w.block, site, w.threads.size());
  w.permitted = false;
  at_grid_.push_back({&w, site});
  if (at_grid_.size() == launch_.blocks) {
    // They go on in the order of the schedule.
    std::sort(at_grid_.begin(), at_grid_.end(), [&](const AtGrid& a, const AtGrid& b) {
      return order_.position(a.worker->block) < order_.position(b.worker->block);
    });
    for (auto& waiter : at_grid_) released_.push_back(waiter.worker);
    at_grid_.clear();
    for (; free_permits_ && released_.size() > 1; --free_permits_) hand_on();
  }
  hand_on();
  wait_for_permit(w, lock);
}

// Never deleted: the OS thread of the last block may still be on its way out of it.
void run_launch(Launch& launch) { (new Dispatcher(launch))->run(); }

}  // namespace kf

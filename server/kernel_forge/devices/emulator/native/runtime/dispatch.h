// Which blocks of a launch run, and on which OS threads.
#pragma once
#include <deque>

#include "order.h"
#include "state.h"

namespace kf {

// A block that has begun keeps an OS thread until it has ended; `settings.workers` permits say how many run at a
// time. A block that waits for others hands its permit on: to a block that may go on, else to one that has not
// begun, else to one that waits as well. As on a GPU, the number of blocks that have begun and not ended is
// bounded, and once a block waits, the others run in ascending order, whatever the schedule: kernels exist that
// rely on it, and few blocks wait at a time.
class Dispatcher {
 public:
  explicit Dispatcher(Launch& launch);
  void run();
  // The block of this OS thread waits for memory to change. Returns when it should look again.
  void park(Worker& w);
  // Lets other blocks run until `ends` have ended, or nothing else can run.
  void hold(Worker& w, uint64_t ends);
  // Returns when every block of the launch has come here.
  void meet_grid(Worker& w, Site site);

 private:
  struct AtGrid {
    Worker* worker;
    Site site;
  };
  struct Start {
    Dispatcher* dispatcher;
    uint64_t block;
  };
  static void* enter(void* start);
  void work(uint64_t block);
  bool end_block(Worker& w, uint64_t& next);
  Worker* overdue();
  bool can_begin() const;
  uint64_t begin();
  void start_thread();
  void hand_on();
  void note_change();
  void release_held(uint64_t ended);
  void wait_for_permit(Worker& w, std::unique_lock<std::mutex>& lock);

  Launch& launch_;
  BlockOrder order_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::condition_variable changed_;  // a block has ended or waits
  uint64_t changes_ = 0;
  std::vector<Worker*> workers_;
  std::deque<Worker*> released_, held_, waiting_;  // released: likely to go on
  std::vector<AtGrid> at_grid_;
  unsigned free_permits_ = 0;
  uint64_t begun_ = 0, ended_ = 0, most_resident_ = 0;
  bool ascending_ = false;
  uint64_t begun_in_order_ = 0, next_ascending_ = 0;  // once ascending
};

void run_launch(Launch& launch);
[[noreturn]] void grid_deadlock(const Launch& launch, uint64_t block, Site site, size_t count);

// What the largest GPU holds at once (B300: 160 multiprocessors with 2048 threads and 32 blocks each).
constexpr uint64_t kMostResidentBlocks = 160 * 32, kMostResidentThreads = 160 * 2048;

}  // namespace kf

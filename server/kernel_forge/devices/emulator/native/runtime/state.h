// What the parts of the runtime share: settings of the run, the launch, and the block a worker runs.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "fiber.h"
#include "kf_abi.h"

namespace kf {

enum class Order { kForward, kReverse, kRandom };

struct Settings {
  Order order = Order::kForward;
  uint64_t order_seed = 0;
  uint64_t poison_seed = 0;
  unsigned workers = 1;
  double time_limit = 10;
  size_t output_limit = 1 << 20;
  size_t memory_limit = size_t{4} << 30;
};
extern Settings settings;

struct Launch {
  kf_dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
  kf_invoke invoke = nullptr;
  void* const* args = nullptr;
  uint64_t blocks = 0;
  std::atomic<uint64_t> next{0};
  std::vector<uint32_t> block_order;  // empty: computed from the index
  // Meeting of blocks at a grid barrier.
  std::mutex grid_mutex;
  std::condition_variable grid_met;
  uint64_t grid_arrived = 0, grid_generation = 0, grid_finished = 0;
};

struct Site {
  const char* file = nullptr;
  int line = 0;
  bool operator==(const Site& o) const { return line == o.line && file == o.file; }
  bool operator!=(const Site& o) const { return !(*this == o); }
};

enum class State : uint8_t { kFresh, kRunning, kReady, kAtBarrier, kAtWarp, kAtMask, kDone };

struct Fiber {
  Context context;
  char* stack = nullptr;
};

struct Thread {
  kf_dim3 index{};
  State state = State::kFresh;
  uint8_t lane = 0;
  uint16_t warp = 0;
  int fiber = -1;
  Site site;
  unsigned active = 0;  // answer to kf_active_mask
};

struct alignas(kf_slot_bytes) Slot {
  unsigned char bytes[kf_slot_bytes];
};

// Lanes that meet under one mask.
struct Meeting {
  unsigned mask = 0, arrived = 0, published = 0;
  unsigned size = 0;  // bytes exchanged; 0 is __syncwarp
  Site site;
  Slot incoming[32], outgoing[32];
};

struct Warp {
  unsigned existing = 0, done = 0;
  int runnable = 0;  // lanes that are fresh, ready or running
  std::vector<Meeting*> meetings;
};

// One OS thread that runs blocks, and the block it runs.
struct Worker {
  Launch* launch = nullptr;
  uint64_t block = 0;      // linear index of the running block
  uint64_t block_serial = 0;  // counts blocks this worker began: tells fresh shared memory from old
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<uint32_t> order;  // in which threads start and leave barriers
  std::vector<Fiber*> fibers;
  std::vector<int> free_fibers;
  std::vector<uint32_t> ready;  // ring buffer
  size_t ready_head = 0, ready_count = 0;
  uint32_t next_fresh = 0, done = 0, at_barrier = 0;
  int current = -1, current_fiber = -1;
  Context main;
  Site barrier_site;
  bool barrier_diverged = false;
  int sum_true = 0;
  bool any_true = false, all_true = true;
  int result_count = 0, result_or = 0, result_and = 0;
  uint64_t random = 1;
  unsigned spins = 0;
  char* stacks = nullptr;
  size_t stacks_bytes = 0;
};
extern __thread Worker* worker;  // null outside of a launch

// ---- block.cpp
void run_launch(Launch& launch);
void make_ready(Worker& w, uint32_t thread);
// The current thread is parked or queued: run somebody else.
void yield_to_others(Worker& w, bool fresh_first = false);
void leave_warp_runnable(Worker& w, Thread& t);
kf_dim3 block_index(const Launch& launch, uint64_t linear);
[[noreturn]] void report_stall(Worker& w);

// ---- warp.cpp
void settle_active_masks(Worker& w, unsigned warp);
void lane_exited(Worker& w, Thread& t);
void reset_meetings(Warp& warp);

// ---- memory.cpp
struct Region {
  char* base = nullptr;  // first byte the kernel may use
  size_t bytes = 0;
  char* map = nullptr;   // with guard pages
  size_t map_bytes = 0;
  int buffer = -1;       // index in the job, or -1
  const char* shared = nullptr;  // name of a shared variable
  bool writable = true;
};
// Pages that fault on either side: wide enough that a wrong stride or a swapped index does not reach the next buffer.
constexpr size_t kGuardBytes = 256 * 1024;
Region allocate_guarded(size_t bytes, size_t align);
void poison_outside(const Region& region, uint64_t salt);
void fill_poison(void* base, size_t bytes, uint64_t salt);
long long changed_outside(const Region& region, uint64_t salt);  // offset of a changed byte, or no_change
constexpr long long no_change = INT64_MIN;
std::vector<Region>& buffer_regions();
bool find_region(const void* address, Region& found);  // nearest buffer or shared variable
void begin_block_memory(Worker& w);
void end_block_memory(Worker& w);
size_t dynamic_shared_limit();

// ---- faults.cpp
void install_fault_handlers();
void give_signal_stack();  // for the calling OS thread, which the clock may then interrupt
void forget_worker();      // the calling OS thread is about to end
void start_clock();
void set_watch(char* base, size_t bytes);
void protect_watch();
void report_watch();

// ---- output.cpp
void open_text(const char* path);

uint64_t mix(uint64_t x);  // splitmix64: a different well-mixed value for every x

}  // namespace kf

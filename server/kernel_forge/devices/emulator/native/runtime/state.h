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

class Dispatcher;

struct Launch {
  kf_dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
  kf_invoke invoke = nullptr;
  void* const* args = nullptr;
  uint64_t blocks = 0;
  Dispatcher* dispatcher = nullptr;  // while the launch runs
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
  char* stack = nullptr;  // lowest byte it may use
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

// One OS thread that runs blocks, and the block it runs. A block keeps its OS thread until it has ended, also
// while it waits for other blocks: shared memory belongs to the OS thread.
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
  bool fresh_first = false;  // of the fresh and the ready, who runs first
  uint32_t next_fresh = 0, done = 0, at_barrier = 0;
  int current = -1, current_fiber = -1;
  Context main;
  Site barrier_site;
  bool barrier_diverged = false;
  int sum_true = 0;
  bool any_true = false, all_true = true;
  int result_count = 0, result_or = 0, result_and = 0;
  uint64_t random = 1;
  volatile bool is_late = false;
  volatile bool interleaves = false;    // at accesses to memory: see accesses.cpp
  volatile uint32_t accesses_left = 0;  // until the next interruption
  uint64_t holds_left = 0;     // how often other blocks are let in
  uint64_t threads_to_hold = 0;
  volatile unsigned undisturbed = 0;  // see kf_hold
  unsigned ahead = 0;  // see release_lanes
  std::vector<uint32_t> held;  // interrupted until nobody else can go on
  unsigned spins = 0;  // kf_spin calls since another thread of the block was let in
  uint64_t idle = 0;   // see pass_time
  char* stacks = nullptr;
  size_t stacks_bytes = 0, mapped_stacks = 0;
  // Read by the clock. `inside`: this OS thread is in the runtime, where it must not be preempted.
  volatile bool inside = true;
  std::atomic<bool> holds_permit{false};
  std::atomic<uint64_t> events{0};  // calls of the runtime by the kernel
  // Read by the dispatcher.
  std::condition_variable woken;
  bool permitted = false;
  uint64_t due = 0, parked_at = 0, next_turn = 0;  // in ended blocks
  unsigned turns = 0;
};
extern __thread Worker* worker;  // null outside of a launch

// Marks the time a kernel spends in the runtime: every function a kernel calls begins with one.
struct Inside {
  Inside() {
    if (!worker) return;
    worker->inside = true;
    worker->events.store(worker->events.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  ~Inside() {
    if (worker) worker->inside = false;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// ---- block.cpp
void prepare_worker(Worker& w, Launch& launch);
void run_block(Worker& w, uint64_t linear);
void release_worker(Worker& w);
int block_barrier(int reduction, int predicate, Site site);
void make_ready(Worker& w, uint32_t thread);
void make_ready_next(Worker& w, uint32_t thread);  // before all others
bool release_held(Worker& w);  // whether anybody was held
// The current thread is parked or queued: run somebody else.
void yield_to_others(Worker& w);
// A measure of how long no thread of the block has begun or ended. Threads that only wait for memory to change
// pass time and nothing else; after much of it, what they wait for is up to somebody who is held back: lanes at
// __activemask, or other blocks. The units are those of one warp operation of one thread.
void pass_time(Worker& w, uint64_t units);
constexpr uint64_t kSpinUnits = 16;
// The clock interrupts a thread that has long not called the runtime: it may be waiting for memory to change.
void preempt(Worker& w);
bool let_others_run(Worker& w);  // of the block; false where there are none
void leave_warp_runnable(Worker& w, Thread& t);
void shuffle(std::vector<uint32_t>& v, uint64_t& state);
kf_dim3 block_index(const Launch& launch, uint64_t linear);
[[noreturn]] void report_stall(Worker& w);

// ---- accesses.cpp
void begin_interleaving(Worker& w);  // a block begins
// Time is up: the next access of the worker ends the run and says where it is.
void end_at_next_access(Worker& w);
[[noreturn]] void end_for_time(void* pc);  // of the calling OS thread

// ---- warp.cpp
bool settle_active_masks(Worker& w, unsigned warp);  // whether any lane went on
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
size_t page_size();
void protect(void* base, size_t bytes, int access);  // ends the run where the system refuses
Region allocate_guarded(size_t bytes, size_t align);
void poison_outside(const Region& region, uint64_t salt);
void fill_poison(void* base, size_t bytes, uint64_t salt);
long long changed_outside(const Region& region, uint64_t salt);  // offset of a changed byte, or no_change
constexpr long long no_change = INT64_MIN;
std::vector<Region>& buffer_regions();
bool find_region(const void* address, Region& found);  // nearest buffer or shared variable
void end_block_memory(Worker& w);
void release_block_memory();  // the calling OS thread is about to end
size_t dynamic_shared_limit();

// ---- stacks.cpp
void reserve_stacks(Worker& w, size_t count);
void release_stacks(Worker& w);
char* open_stack(Worker& w, size_t index);  // lowest usable byte of kStackBytes; what is below it faults
// A thread of a GPU has at most 512 KiB of local memory (CUDA C++ guide, technical specifications); frames of the
// host are somewhat larger. No frame that fits can reach across the gap.
constexpr size_t kStackBytes = 704 * 1024, kStackGap = 576 * 1024;
[[noreturn]] void end_for_lack_of(const std::string& what);  // the emulator's limit, not the kernel's fault

// ---- faults.cpp
void* pc_of(void* context);
void install_fault_handlers();
void give_signal_stack();  // for the calling OS thread

// ---- clock.cpp
void install_clock_handlers();
void start_clock();
void stop_clock();
void clock_knows(Worker& w);
void clock_forgets(Worker& w);

// ---- watch.cpp
struct Watch {
  const char* base = nullptr;
  size_t bytes = 0;  // 0: nothing is watched
  bool hit = false;
  void* pc = nullptr;
  kf_dim3 block{}, thread{};
};
extern Watch watch;
void set_watch(char* base, size_t bytes);
void note_write(const void* address, size_t size, void* pc);
void report_watch();

// ---- output.cpp
void open_text(const char* path);

uint64_t mix(uint64_t x);  // splitmix64: a different well-mixed value for every x

}  // namespace kf

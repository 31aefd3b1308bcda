// Memory a kernel may touch: every piece ends at a page that faults, and carries poison around it.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "report.h"
#include "state.h"

namespace kf {

namespace {

constexpr size_t kStaticSharedLimit = 48 * 1024;  // of variables declared with a size, on every GPU; ptxas refuses more
constexpr size_t kSharedLimit = 227 * 1024;  // most shared memory a block can have, sm_90
constexpr uint64_t kSharedSalt = 0x5a4ed;

struct SharedVariable {
  const void* key;
  Region region;
  uint64_t serial;  // block it was poisoned for
};

struct SharedMemory {
  std::vector<SharedVariable> variables;
  Region dynamic;
  uint64_t dynamic_serial = 0;
  size_t static_bytes = 0;
};
thread_local SharedMemory shared;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

void check_slack(const Region& region, uint64_t salt) {
  long long offset = changed_outside(region, salt);
  if (offset == no_change) return;
  claim_end();
  Line("fault")
      .text("kind", "out-of-bounds")
      .number("write", 1)
      .text("shared", region.shared)
      .number("offset", offset)
      .number("bytes", static_cast<long long>(region.bytes))
      .thread(kf_block_idx, {})
      .text("message", "found after the block had ended")
      .write();
  end_run();
}

uint64_t shared_salt(const Worker& w) { return mix(w.block + 1) ^ kSharedSalt; }

}  // namespace

size_t page_size() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void protect(void* base, size_t bytes, int access) {
  if (bytes && mprotect(base, bytes, access) != 0)
    end_for_lack_of("guard pages for so many pieces of memory at once (vm.max_map_count is too low)");
}

Region allocate_guarded(size_t bytes, size_t align) {
  // [guard][poison ... body][guard]: the body ends at the upper guard up to the alignment's slack.
  size_t body = round_up(bytes, align < 16 ? 16 : align);
  size_t pages = round_up(body ? body : 1, page_size());
  size_t map_bytes = pages + 2 * kGuardBytes;
  void* map = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) end_for_lack_of("address space for the buffers of this run");
  Region region;
  region.map = static_cast<char*>(map);
  region.map_bytes = map_bytes;
  region.base = region.map + map_bytes - kGuardBytes - body;
  region.bytes = bytes;
  protect(region.map, kGuardBytes, PROT_NONE);
  protect(region.map + map_bytes - kGuardBytes, kGuardBytes, PROT_NONE);
  return region;
}

// Bytes of [begin, end) are a function of seed, salt and their offset from the mapping's end alone.
static unsigned char poison_byte(uint64_t pattern, size_t i) {
  return static_cast<unsigned char>(pattern >> (i % 8 * 8));
}

static uint64_t poison_pattern(uint64_t salt) {
  // Even seeds: NaN as half, bfloat16 and float32, 2^1021 or so as float64. Odd seeds: large finite numbers (half
  // 1e4, float32 6e29, float64 1e235). Any two of 256 consecutive seeds differ in every 16 bits.
  uint64_t pattern = 0;
  for (int lane = 0; lane < 4; ++lane) {
    uint64_t variant = (mix(salt * 4 + static_cast<uint64_t>(lane)) + settings.poison_seed / 2) & 0x7f;
    uint64_t nan = 0x7fc0 | (variant & 0x3f) | (variant & 0x40) << 9;  // the sign is the seventh bit
    pattern |= (settings.poison_seed % 2 ? 0x7100 | variant : nan) << (16 * lane);
  }
  return pattern;
}

void fill_poison(void* base, size_t bytes, uint64_t salt) {
  uint64_t pattern = poison_pattern(salt);
  auto* p = static_cast<unsigned char*>(base);
  size_t whole = bytes / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) memcpy(p + i, &pattern, 8);
  for (size_t i = whole; i < bytes; ++i) p[i] = poison_byte(pattern, i);
}

static size_t slack_bytes(const Region& r) {
  return static_cast<size_t>(r.map + r.map_bytes - kGuardBytes - (r.base + r.bytes));
}

void poison_outside(const Region& r, uint64_t salt) {
  char* low = r.map + kGuardBytes;
  fill_poison(low, static_cast<size_t>(r.base - low), salt);
  fill_poison(r.base + r.bytes, slack_bytes(r), salt + 1);
}

long long changed_outside(const Region& r, uint64_t salt) {
  uint64_t below = poison_pattern(salt), above = poison_pattern(salt + 1);
  const char* low = r.map + kGuardBytes;
  size_t low_bytes = static_cast<size_t>(r.base - low);
  for (size_t i = low_bytes; i-- > 0;)
    if (static_cast<unsigned char>(low[i]) != poison_byte(below, i))
      return static_cast<long long>(i) - static_cast<long long>(low_bytes);
  for (size_t i = 0; i < slack_bytes(r); ++i)
    if (static_cast<unsigned char>(r.base[r.bytes + i]) != poison_byte(above, i))
      return static_cast<long long>(r.bytes + i);
  return no_change;
}

std::vector<Region>& buffer_regions() {
  static std::vector<Region> regions;
  return regions;
}

bool find_region(const void* address, Region& found) {
  auto* p = static_cast<const char*>(address);
  auto inside = [&](const Region& r) { return r.map && p >= r.map && p < r.map + r.map_bytes; };
  for (auto& r : buffer_regions())
    if (inside(r)) return found = r, true;
  // Of shared memory, that of the block which faults.
  if (inside(shared.dynamic)) return found = shared.dynamic, true;
  for (auto& v : shared.variables)
    if (inside(v.region)) return found = v.region, true;
  // Far outside of everything: the nearest buffer within 1 MiB is the likely one.
  constexpr size_t kNear = 1 << 20;
  size_t best = kNear;
  bool any = false;
  for (auto& r : buffer_regions()) {
    size_t distance = p < r.base ? static_cast<size_t>(r.base - p) : static_cast<size_t>(p - (r.base + r.bytes));
    if (distance < best) best = distance, found = r, any = true;
  }
  return any;
}

void release_block_memory() {
  if (shared.dynamic.map) munmap(shared.dynamic.map, shared.dynamic.map_bytes);
  for (auto& v : shared.variables) munmap(v.region.map, v.region.map_bytes);
  shared = SharedMemory{};
}

void end_block_memory(Worker& w) {
  if (shared.dynamic_serial == w.block_serial && shared.dynamic.map)
    check_slack(shared.dynamic, shared_salt(w));
  for (auto& v : shared.variables)
    if (v.serial == w.block_serial) check_slack(v.region, shared_salt(w));
}

static void* enter_block(Worker& w, Region& region, uint64_t& serial) {
  if (serial != w.block_serial) {
    serial = w.block_serial;
    uint64_t salt = shared_salt(w);
    poison_outside(region, salt);
    fill_poison(region.base, region.bytes, salt + 2);
  }
  return region.base;
}

[[noreturn]] static void refuse_shared(const std::string& message) {
  claim_end();
  Line("configuration").text("message", message.c_str()).write();
  end_run();
}

[[noreturn]] static void too_much_shared(size_t bytes) {
  refuse_shared(std::to_string(bytes) + " bytes of shared memory in one block; the largest GPU has " +
                std::to_string(kSharedLimit));
}

[[noreturn]] static void too_much_static_shared(size_t bytes) {
  refuse_shared(std::to_string(bytes) + " bytes of static shared memory; CUDA allows " +
                std::to_string(kStaticSharedLimit) + ": take the rest as dynamic shared memory (extern __shared__)");
}

}  // namespace kf

using namespace kf;

extern "C" {

size_t kf_dynamic_shared_bytes() { return worker->launch->shared_bytes; }

void* kf_dynamic_shared() {
  Inside inside;
  Worker& w = *worker;
  if (!shared.dynamic.map) {
    shared.dynamic = allocate_guarded(w.launch->shared_bytes, 128);
    shared.dynamic.shared = "dynamic shared memory";
  }
  return enter_block(w, shared.dynamic, shared.dynamic_serial);
}

void* kf_shared_variable(const void* key, const char* name, size_t bytes, size_t align) {
  Inside inside;
  Worker& w = *worker;
  for (auto& v : shared.variables)
    if (v.key == key) return enter_block(w, v.region, v.serial);
  shared.static_bytes += bytes;
  if (shared.static_bytes > kStaticSharedLimit) too_much_static_shared(shared.static_bytes);
  if (shared.static_bytes + w.launch->shared_bytes > kSharedLimit)
    too_much_shared(shared.static_bytes + w.launch->shared_bytes);
  SharedVariable v{key, allocate_guarded(bytes, align), 0};
  v.region.shared = name;
  shared.variables.push_back(v);
  return enter_block(w, shared.variables.back().region, shared.variables.back().serial);
}
}

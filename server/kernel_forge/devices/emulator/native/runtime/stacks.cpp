// Stacks of the CUDA threads: reserved whole, opened one by one, each above a gap that faults.
#include <sys/mman.h>

#include <string>

#include "report.h"
#include "state.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102  // Linux 6.13
#endif

namespace kf {

namespace {

constexpr size_t kStride = kStackBytes + kStackGap;
// A stack beside inaccessible memory is two mappings of its own, and a process may have 65530 of them
// (vm.max_map_count). Beyond this many stacks, pages are marked as guards inside one mapping instead, where the
// system can.
constexpr size_t kMappedStacks = 12 * 1024;
std::atomic<size_t> mapped_stacks{0};

bool open_by_mapping(Worker& w, char* stack) {
  if (mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) != 0) return false;
  mapped_stacks.fetch_add(1);
  ++w.mapped_stacks;
  return true;
}

bool open_by_marking(char* stack) {
  // Neighbours that are open in the same way join into one mapping. The gap is marked first: it must never be
  // reachable, not even before there is a mark.
  char* gap = stack - kStackGap;
  if (mprotect(gap, kStackGap, PROT_READ | PROT_WRITE) != 0) return false;
  if (madvise(gap, kStackGap, MADV_GUARD_INSTALL) != 0) {
    mprotect(gap, kStackGap, PROT_NONE);
    return false;
  }
  return mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace

void end_for_lack_of(const std::string& what) {
  claim_end();
  Line("unsupported").text("what", what.c_str()).text("file", "").number("line", 0).write();
  end_run();
}

void reserve_stacks(Worker& w, size_t count) {
  w.stacks_bytes = count * kStride;
  void* map = mmap(nullptr, w.stacks_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) end_for_lack_of("address space for the stacks of the threads of one more block");
  w.stacks = static_cast<char*>(map);
}

void release_stacks(Worker& w) {
  munmap(w.stacks, w.stacks_bytes);
  mapped_stacks.fetch_sub(w.mapped_stacks);
}

char* open_stack(Worker& w, size_t index) {
  char* stack = w.stacks + index * kStride + kStackGap;
  bool opened = mapped_stacks.load() < kMappedStacks ? open_by_mapping(w, stack) || open_by_marking(stack)
                                                     : open_by_marking(stack) || open_by_mapping(w, stack);
  if (!opened) end_for_lack_of("stacks for so many threads that wait at once (vm.max_map_count or the overcommit limit is too low)");
  return stack;
}

}  // namespace kf

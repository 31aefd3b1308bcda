// The watch: which thread wrote some bytes last, and where. The compiler's calls before accesses tell (accesses.cpp).
#include "report.h"
#include "state.h"

namespace kf {

Watch watch;

void note_write(const void* address, size_t size, void* pc) {
  auto* byte = static_cast<const char*>(address);
  if (byte >= watch.base + watch.bytes || byte + size <= watch.base) return;
  watch.hit = true;
  watch.pc = static_cast<char*>(pc) - 1;  // within the call, which stands on the line of the write
  watch.block = kf_block_idx;
  watch.thread = kf_thread_idx;
}

void set_watch(char* base, size_t bytes) {
  watch.base = base;
  watch.bytes = bytes;
}

void report_watch() {
  if (watch.hit) Line("watch").address("pc", watch.pc).thread(watch.block, watch.thread).write();
}

}  // namespace kf

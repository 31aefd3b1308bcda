// What a kernel says and how it ends itself: printf, assert, trap, malloc, and what is not emulated.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "report.h"
#include "state.h"

namespace kf {

namespace {
int text_fd = -1;
std::mutex text_mutex;
size_t text_bytes = 0;

// The device heap of the CUDA runtime is 8 MiB unless the host asks for more (cudaLimitMallocHeapSize).
constexpr size_t kHeapLimit = 8 << 20;
std::mutex heap_mutex;
std::map<void*, size_t>& heap() {
  static std::map<void*, size_t> blocks;
  return blocks;
}
size_t heap_bytes = 0;
}  // namespace

void open_text(const char* path) { text_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

}  // namespace kf

using namespace kf;

extern "C" {

int kf_printf(const char* format, ...) {
  Inside inside;
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return length;
  size_t bytes = length < static_cast<int>(sizeof text) ? static_cast<size_t>(length) : sizeof text - 1;
  std::lock_guard<std::mutex> lock(text_mutex);
  text_bytes += bytes;
  if (text_bytes > settings.output_limit) {
    claim_end();
    Line("output-limit").text("message", "printf printed more than the limit").thread(kf_block_idx, kf_thread_idx).write();
    end_run();
  }
  if (text_fd >= 0 && write(text_fd, text, bytes) < 0) return -1;
  return length;
}

void kf_unsupported(const char* what, int line, const char* file) {
  claim_end();
  Line("unsupported").text("what", what).text("file", file).number("line", line).write();
  end_run();
}

void kf_assert_failed(const char* expression, int line, const char* file) {
  claim_end();
  Line("assert").text("expression", expression).text("file", file).number("line", line)
      .thread(kf_block_idx, kf_thread_idx).write();
  end_run();
}

void kf_trap(int line, const char* file) {
  claim_end();
  Line("trap").text("file", file).number("line", line).thread(kf_block_idx, kf_thread_idx).write();
  end_run();
}

long long kf_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void* kf_device_malloc(size_t bytes) {
  Inside inside;
  std::lock_guard<std::mutex> lock(heap_mutex);
  if (heap_bytes + bytes > kHeapLimit) return nullptr;
  void* pointer = malloc(bytes ? bytes : 1);
  if (pointer) {
    heap_bytes += bytes;
    heap()[pointer] = bytes;
  }
  return pointer;
}

void kf_device_free(void* pointer) {
  Inside inside;
  std::lock_guard<std::mutex> lock(heap_mutex);
  auto it = heap().find(pointer);
  if (it == heap().end()) return;
  heap_bytes -= it->second;
  heap().erase(it);
  free(pointer);
}
}

#include "report.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "state.h"

namespace kf {

namespace {
int report_fd = 2;
std::atomic_flag ended = ATOMIC_FLAG_INIT;
constexpr size_t kReserve = 64;  // room for the closing brackets
}  // namespace

void open_report(const char* path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd >= 0) report_fd = fd;
}

Line::Line(const char* event) {
  put("{\"event\":\"");
  put(event);
  put("\"");
}

void Line::put(const char* text) {
  size_t length = strlen(text);
  if (used_ + length + kReserve > sizeof buffer_) return;
  memcpy(buffer_ + used_, text, length);
  used_ += length;
}

void Line::quote(const char* text) {
  char one[8];
  put("\"");
  for (; *text; ++text) {
    auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') {
      one[0] = '\\', one[1] = static_cast<char>(c), one[2] = 0;
    } else if (c < 0x20) {
      snprintf(one, sizeof one, "\\u%04x", c);
    } else {
      one[0] = static_cast<char>(c), one[1] = 0;
    }
    put(one);
  }
  put("\"");
}

void Line::key(const char* name) {
  put(",\"");
  put(name);
  put("\":");
}

Line& Line::text(const char* name, const char* value) {
  key(name);
  quote(value ? value : "");
  return *this;
}

Line& Line::number(const char* name, long long value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", value);
  key(name);
  put(digits);
  return *this;
}

Line& Line::seconds(const char* name, double value) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.9f", value);
  key(name);
  put(digits);
  return *this;
}

Line& Line::address(const char* name, const void* value) {
  char digits[32];
  snprintf(digits, sizeof digits, "\"0x%llx\"",
           static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(value)));
  key(name);
  put(digits);
  return *this;
}

Line& Line::index(const char* name, kf_dim3 value) {
  char digits[64];
  snprintf(digits, sizeof digits, "[%u,%u,%u]", value.x, value.y, value.z);
  key(name);
  put(digits);
  return *this;
}

Line& Line::thread(kf_dim3 block, kf_dim3 thread) { return index("block", block).index("thread", thread); }

Line& Line::open_list(const char* name) {
  key(name);
  put("[");
  first_in_list_ = true;
  return *this;
}

Line& Line::site(const char* file, int line, int count, kf_dim3 thread) {
  if (used_ + strlen(file ? file : "") * 2 + 256 > sizeof buffer_) return *this;  // keep elements whole
  put(first_in_list_ ? "{\"file\":" : ",{\"file\":");
  first_in_list_ = false;
  quote(file ? file : "");
  number("line", line).number("count", count).index("thread", thread);
  put("}");
  return *this;
}

Line& Line::close_list() {
  buffer_[used_++] = ']';
  return *this;
}

void Line::write() {
  buffer_[used_++] = '}';
  buffer_[used_++] = '\n';
  size_t done = 0;
  while (done < used_) {
    ssize_t n = ::write(report_fd, buffer_ + done, used_ - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

void claim_end() {
  if (worker) worker->inside = true;  // the clock must not leave this OS thread to another CUDA thread now
  if (!ended.test_and_set()) return;
  for (;;) pause();
}

void end_run() { _exit(86); }

}  // namespace kf

// The report: JSON lines, safe to write from a signal handler.
#pragma once
#include <cstddef>

#include "kf_abi.h"

namespace kf {

void open_report(const char* path);

// One line under construction. Text that does not fit is cut at a field's end, never in the middle.
class Line {
 public:
  explicit Line(const char* event);
  Line& text(const char* key, const char* value);
  Line& number(const char* key, long long value);
  Line& seconds(const char* key, double value);
  Line& address(const char* key, const void* value);
  Line& index(const char* key, kf_dim3 value);
  Line& thread(kf_dim3 block, kf_dim3 thread);
  Line& open_list(const char* key);
  Line& site(const char* file, int line, int count, kf_dim3 thread);
  Line& close_list();
  void write();

 private:
  void put(const char* text);
  void quote(const char* text);
  void key(const char* name);
  char buffer_[8192];
  size_t used_ = 0;
  bool first_in_list_ = true;
};

// Only one thread may end the run: true for the first caller, others wait for the process to end.
void claim_end();
[[noreturn]] void end_run();

}  // namespace kf

// What an x86-64 instruction is about to write.
#pragma once
#include <cstddef>

namespace kf {

struct MemoryWrite {
  char* address = nullptr;
  size_t bytes = 0;       // where `modifies`
  bool modifies = false;  // reads the same memory first, as `add %eax, (%rdx)` does; not atomically
};

// True for moves to memory, and for instructions that modify memory without a lock prefix. False for all others, and
// for what no compiler emits without AVX. `context` is a ucontext_t that stopped before the instruction.
bool next_write(void* context, MemoryWrite& write);

}  // namespace kf

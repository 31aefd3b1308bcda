// What the compiler calls where an operation has no meaning in C++ (-fsanitize=..., no recovery): misaligned accesses,
// and operations whose result is one on a GPU and another on this processor.
#include <cstdio>
#include <cstring>

#include "report.h"
#include "state.h"

namespace {

// The layouts are those of the compilers' interface to their sanitizer library.
struct SourcePlace {
  const char* file;
  unsigned line, column;
};
struct Type {
  unsigned short kind, info;
  char name[1];  // in quotes
};
struct TypeMismatch {
  SourcePlace place;
  const void* type;
  unsigned char log_alignment, kind;
};
struct AlignmentAssumption {
  SourcePlace place, assumed;
  const void* type;
};
struct Conversion {
  SourcePlace place;
  const Type *from, *to;
};
struct Shift {
  SourcePlace place;
  const Type *value, *count;
};
enum : unsigned short { kInteger = 0, kFloat = 1 };

// `value` is the value where it fits, else its address.
template <class T>
T held(uintptr_t value) {
  T v;
  memcpy(&v, sizeof(T) <= sizeof value ? reinterpret_cast<const void*>(&value) : reinterpret_cast<const void*>(value),
         sizeof(T));
  return v;
}

void describe(const Type* type, uintptr_t value, char* text, size_t size) {
  if (type->kind == kFloat && type->info == 32) {
    snprintf(text, size, "%.9g", static_cast<double>(held<float>(value)));
  } else if (type->kind == kFloat && type->info == 64) {
    snprintf(text, size, "%.17g", held<double>(value));
  } else if (type->kind == kInteger && type->info >> 1 <= 6) {
    // A narrow value lies in the low bits; what is above them is not promised.
    unsigned unused = 64 - (1u << (type->info >> 1));
    auto bits = static_cast<unsigned long long>(value) << unused;
    if (type->info & 1)
      snprintf(text, size, "%lld", static_cast<long long>(bits) >> unused);
    else
      snprintf(text, size, "%llu", bits >> unused);
  } else {
    snprintf(text, size, "?");
  }
}

// The type's name without its quotes.
void name(const Type* type, char* text, size_t size) {
  snprintf(text, size, "%s", type->name[0] == '\'' ? type->name + 1 : type->name);
  if (char* end = strrchr(text, '\'')) *end = 0;
}

kf::Line& at(kf::Line& line, const SourcePlace& place, void* after) {
  // The place may lie in a header of ours; the address then leads to the user's line that called it.
  return line.text("file", place.file).number("line", place.line).number("column", place.column)
      .address("pc", static_cast<char*>(after) - 1);
}

[[noreturn]] void end(kf::Line& line) {
  line.thread(kf_block_idx, kf_thread_idx).write();
  kf::end_run();
}

[[noreturn]] void misaligned(const SourcePlace& place, void* after, uintptr_t address, unsigned long long alignment) {
  kf::claim_end();
  kf::Line line("misaligned");
  at(line, place, after);
  line.address("address", reinterpret_cast<void*>(address)).number("alignment", static_cast<long long>(alignment));
  end(line);
}

[[noreturn]] void out_of_range(const Conversion* data, void* after, uintptr_t value) {
  kf::claim_end();
  char from[48], to[48];
  describe(data->from, value, from, sizeof from);
  name(data->to, to, sizeof to);
  kf::Line line("conversion");
  end(at(line, data->place, after).text("value", from).text("type", to));
}

[[noreturn]] void shifted_too_far(const Shift* data, void* after, uintptr_t count) {
  kf::claim_end();
  char by[48], type[48];
  describe(data->count, count, by, sizeof by);
  name(data->value, type, sizeof type);
  kf::Line line("shift");
  end(at(line, data->place, after).text("value", by).text("type", type));
}

}  // namespace

#define KF_AFTER __builtin_return_address(0)
extern "C" {
void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* data, uintptr_t address) {
  misaligned(data->place, KF_AFTER, address, 1ull << data->log_alignment);
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t address) {
  misaligned(data->place, KF_AFTER, address, 1ull << data->log_alignment);
}
void __ubsan_handle_alignment_assumption_abort(AlignmentAssumption* data, uintptr_t address, uintptr_t alignment,
                                               uintptr_t) {
  misaligned(data->place, KF_AFTER, address, alignment);
}
void __ubsan_handle_alignment_assumption(AlignmentAssumption* data, uintptr_t address, uintptr_t alignment,
                                         uintptr_t) {
  misaligned(data->place, KF_AFTER, address, alignment);
}
void __ubsan_handle_float_cast_overflow_abort(Conversion* data, uintptr_t value) {
  out_of_range(data, KF_AFTER, value);
}
void __ubsan_handle_float_cast_overflow(Conversion* data, uintptr_t value) { out_of_range(data, KF_AFTER, value); }
void __ubsan_handle_shift_out_of_bounds_abort(Shift* data, uintptr_t, uintptr_t count) {
  shifted_too_far(data, KF_AFTER, count);
}
void __ubsan_handle_shift_out_of_bounds(Shift* data, uintptr_t, uintptr_t count) {
  shifted_too_far(data, KF_AFTER, count);
}
}

// What the compiler calls before every access of a kernel to memory that other threads can reach: the
// instrumentation of ThreadSanitizer, with this in place of its library.
//
// In random order a thread is interrupted at some of these points, between the load and the store of `s += x` too,
// where a GPU's threads interleave as well. Any interleaving at accesses is a legal one, so a difference in the
// result is a race and never a false alarm.
#include <cstddef>
#include <cstdint>

#include "dispatch.h"
#include "state.h"

namespace kf {

namespace {

// Accesses until the next interruption. The rate changes now and then: some races need two threads to be
// interrupted close together, others one to be held back for long.
uint32_t next_gap(Worker& w) {
  uint64_t random = mix(++w.random);
  static const uint32_t mean[] = {2, 6, 20, 80};
  return 1 + static_cast<uint32_t>((random >> 8) % (2 * mean[random & 3]));
}

// Before a write, whose value has been computed, others are let in for longer: what it was computed from may be old then.
void let_in_others(Worker& w, bool writes) {
  uint64_t random = mix(++w.random);
  if (writes && (random & 3) == 0 && w.holds_left && w.holds_left--) w.launch->dispatcher->hold(w, 1 + (random >> 8) % 8);
  if (w.ready_count == 0 && w.next_fresh >= w.threads.size()) return;
  // Held back until nobody else can go on, or sent to the end of the queue.
  if (writes && (random & 3) <= 1 && w.threads_to_hold && w.threads_to_hold--)
    w.held.push_back(static_cast<uint32_t>(w.current));
  else
    make_ready(w, static_cast<uint32_t>(w.current));
  w.threads[w.current].state = State::kReady;
  w.fresh_first = random >> 7 & 1;
  yield_to_others(w);
}

void interleave(Worker& w, const void* address, bool writes, void* pc) {
  if (w.is_late) end_for_time(pc);
  auto* byte = static_cast<const char*>(address);
  if (byte >= w.stacks && byte < w.stacks + w.stacks_bytes) {  // a thread's own memory: nobody else looks there
    w.accesses_left = 1;
    return;
  }
  uint32_t gap = w.accesses_left = next_gap(w);
  if (w.current < 0 || w.inside || w.undisturbed) return;
  w.inside = true;  // but no event for the clock: a thread that waits for memory accesses it all the time
  pass_time(w, gap);
  let_in_others(w, writes);
  worker->inside = false;
}

__attribute__((always_inline)) inline void before_access(const void* address, size_t size, bool writes) {
  if (writes && watch.bytes) note_write(address, size, __builtin_return_address(0));
  Worker* w = worker;
  if (w && w->interleaves && --w->accesses_left == 0) interleave(*w, address, writes, __builtin_return_address(0));
}

}  // namespace

void begin_interleaving(Worker& w) {
  w.interleaves = settings.order == Order::kRandom;
  w.accesses_left = next_gap(w);
  w.threads_to_hold = w.threads.size();
  w.holds_left = 1 + mix(++w.random) % 4;
}

void end_at_next_access(Worker& w) {
  w.is_late = true;
  w.accesses_left = 1;
  w.interleaves = true;
}

}  // namespace kf

using kf::before_access;

// An atomic operation lets others in by itself (kf_spin); here it is only watched.
#define KF_WATCHED(p) \
  if (kf::watch.bytes) kf::note_write(const_cast<const void*>(static_cast<const volatile void*>(p)), sizeof *(p), __builtin_return_address(0))

extern "C" {
void kf_hold() {
  if (kf::worker) ++kf::worker->undisturbed;
}
void kf_release() {
  if (kf::worker) --kf::worker->undisturbed;
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* p, size_t size) { before_access(p, size, false); }
void __tsan_write_range(void* p, size_t size) { before_access(p, size, true); }

#define KF_ACCESS(size)                                      \
  void __tsan_read##size(void* p) { before_access(p, size, false); }         \
  void __tsan_write##size(void* p) { before_access(p, size, true); }        \
  void __tsan_unaligned_read##size(void* p) { before_access(p, size, false); } \
  void __tsan_unaligned_write##size(void* p) { before_access(p, size, true); } \
  void __tsan_volatile_read##size(void* p) { before_access(p, size, false); } \
  void __tsan_volatile_write##size(void* p) { before_access(p, size, true); } \
  void __tsan_read_write##size(void* p) { before_access(p, size, true); }
KF_ACCESS(1)
KF_ACCESS(2)
KF_ACCESS(4)
KF_ACCESS(8)
KF_ACCESS(16)
#undef KF_ACCESS

void* __tsan_memcpy(void* to, const void* from, size_t size) {
  before_access(to, size, true);
  return __builtin_memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, size_t size) {
  before_access(to, size, true);
  return __builtin_memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, size_t size) {
  before_access(to, size, true);
  return __builtin_memset(to, value, size);
}

// Atomic builtins are calls in instrumented code. The order argument is made the strongest: what a weaker one allows
// is not emulated.
#define KF_FETCH(bits, type, operation)                                                  \
  type __tsan_atomic##bits##_fetch_##operation(volatile type* p, type v, int) {             \
    KF_WATCHED(p);                                                                          \
    return __atomic_fetch_##operation(p, v, __ATOMIC_SEQ_CST);                              \
  }
#define KF_ATOMIC(bits, type)                                                               \
  type __tsan_atomic##bits##_load(const volatile type* p, int) {                            \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                         \
    KF_WATCHED(p);                                                                          \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                      \
    KF_WATCHED(p);                                                                          \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  KF_FETCH(bits, type, add)                                                                 \
  KF_FETCH(bits, type, sub)                                                                 \
  KF_FETCH(bits, type, and)                                                                 \
  KF_FETCH(bits, type, or)                                                                  \
  KF_FETCH(bits, type, xor)                                                                 \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type e, type v, int, int) { \
    if (__atomic_compare_exchange_n(p, &e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) { \
      KF_WATCHED(p);                                                                        \
    }                                                                                       \
    return e;                                                                               \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* e, type v, int, int) { \
    bool done = __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    if (done) {                                                                             \
      KF_WATCHED(p);                                                                        \
    }                                                                                       \
    return done;                                                                            \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* e, type v, int, int) { \
    bool done = __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    if (done) {                                                                             \
      KF_WATCHED(p);                                                                        \
    }                                                                                       \
    return done;                                                                            \
  }
KF_ATOMIC(8, uint8_t)
KF_ATOMIC(16, uint16_t)
KF_ATOMIC(32, uint32_t)
KF_ATOMIC(64, uint64_t)
#undef KF_ATOMIC
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
}

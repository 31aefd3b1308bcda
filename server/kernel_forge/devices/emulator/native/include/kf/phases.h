// Barriers that threads arrive at and wait for separately: cuda::barrier and the __mbarrier functions.
#pragma once
#include "async.h"
#include "scopes.h"

namespace kf {

// In 8 bytes, as on the hardware, because kernels lay barriers out by hand. From the low end: 20 bits of arrivals that
// the phase still waits for, 20 bits that every phase expects, 24 bits of phases completed.
struct Phases {
  static constexpr uint64_t most = (1u << 20) - 1;
  uint64_t bits;

  static uint64_t pack(uint64_t pending, uint64_t expected, uint64_t phase) { return pending | expected << 20 | phase << 40; }
  static uint64_t pending(uint64_t v) { return v & most; }
  static uint64_t expected(uint64_t v) { return v >> 20 & most; }
  static uint64_t phase(uint64_t v) { return v >> 40; }
  uint64_t now() const { return __atomic_load_n(&bits, __ATOMIC_SEQ_CST); }

  void reset(uint64_t count) { __atomic_store_n(&bits, pack(count, count, 0), __ATOMIC_SEQ_CST); }
  // The value before the arrival, whose phase is the one to wait for.
  template <class Completion>
  uint64_t arrive(uint64_t count, uint64_t drop, Completion&& completion, KF_SITE) {
    kf_spin();
    Undisturbed undisturbed;  // who lets the copies arrive also ends the phase
    uint64_t old = now(), made;
    do {
      if (pending(old) < count) kf_assert_failed("a barrier does not expect this many arrivals in one phase", KF_AT);
      uint64_t left = pending(old) - count, each = expected(old) - drop;
      if (left == 0) {
        copies_of(this).arrive_all();
        completion();
      }
      made = left ? pack(left, each, phase(old)) : pack(each, each, phase(old) + 1);
    } while (!__atomic_compare_exchange_n(&bits, &old, made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
  }
  bool passed(uint64_t token) const { return phase(now()) != phase(token); }
  bool passed_parity(bool parity) const { return (phase(now()) & 1) != static_cast<uint64_t>(parity); }
};

}  // namespace kf

typedef uint64_t __mbarrier_t;
typedef uint64_t __mbarrier_token_t;
static inline kf::Phases* kf_phases(__mbarrier_t* b) { return reinterpret_cast<kf::Phases*>(b); }
static inline unsigned __mbarrier_maximum_count() { return kf::Phases::most; }
static inline void __mbarrier_init(__mbarrier_t* b, unsigned count) { kf_phases(b)->reset(count); }
static inline void __mbarrier_inval(__mbarrier_t*) {}
static inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* b, KF_SITE) { return kf_phases(b)->arrive(1, 0, [] {}, KF_AT); }
static inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* b, KF_SITE) { return kf_phases(b)->arrive(1, 1, [] {}, KF_AT); }
static inline bool __mbarrier_test_wait(__mbarrier_t* b, __mbarrier_token_t token) { kf_spin(); return kf_phases(b)->passed(token); }
static inline bool __mbarrier_test_wait_parity(__mbarrier_t* b, bool parity) { kf_spin(); return kf_phases(b)->passed_parity(parity); }
static inline bool __mbarrier_try_wait(__mbarrier_t* b, __mbarrier_token_t token, unsigned = 0) { return __mbarrier_test_wait(b, token); }
static inline bool __mbarrier_try_wait_parity(__mbarrier_t* b, bool parity, unsigned = 0) { return __mbarrier_test_wait_parity(b, parity); }
static inline unsigned __mbarrier_token_pending_count(__mbarrier_token_t token) { return static_cast<unsigned>(kf::Phases::pending(token)); }
static inline void __pipeline_arrive_on(__mbarrier_t* b) { kf::my_copies().move_open_to(kf::copies_of(b)); }

namespace cuda {

// A size known to be a multiple of an alignment.
template <size_t Alignment> struct aligned_size_t {
  static constexpr size_t align = Alignment;
  size_t value;
  explicit constexpr aligned_size_t(size_t v) : value(v) {}
  constexpr operator size_t() const { return value; }
};

namespace details {
struct NoCompletion {
  void operator()() const {}
};
}  // namespace details

template <thread_scope Scope, class Completion = details::NoCompletion> class barrier : public kf::Phases, Completion {
 public:
  class arrival_token {
    friend class barrier;
    uint64_t value_;
    explicit arrival_token(uint64_t v) : value_(v) {}
  };
  barrier() = default;
  explicit barrier(ptrdiff_t expected, Completion completion = Completion()) : Completion(completion) { reset(static_cast<uint64_t>(expected)); }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  static constexpr ptrdiff_t max() { return most; }

  arrival_token arrive(ptrdiff_t count = 1, KF_SITE) {
    return arrival_token(Phases::arrive(static_cast<uint64_t>(count), 0, static_cast<Completion&>(*this), KF_AT));
  }
  __attribute__((always_inline)) inline void wait(arrival_token&& token) const {
    while (!passed(token.value_)) kf_spin();
  }
  __attribute__((always_inline)) inline void wait_parity(bool parity) const {
    while (!passed_parity(parity)) kf_spin();
  }
  bool try_wait(arrival_token&& token) const { kf_spin(); return passed(token.value_); }
  bool try_wait_parity(bool parity) const { kf_spin(); return passed_parity(parity); }
  __attribute__((always_inline)) inline void arrive_and_wait(KF_SITE) { wait(arrive(1, KF_AT)); }
  void arrive_and_drop(KF_SITE) { Phases::arrive(1, 1, static_cast<Completion&>(*this), KF_AT); }
  friend void init(barrier* b, ptrdiff_t expected) { new (b) barrier(expected); }
  friend void init(barrier* b, ptrdiff_t expected, Completion completion) { new (b) barrier(expected, completion); }
};
namespace std {
template <class Completion = details::NoCompletion> using barrier = ::cuda::barrier<thread_scope_system, Completion>;
}

namespace details {
struct Alone {
  static unsigned thread_rank() { return 0; }
  static unsigned size() { return 1; }
};
}  // namespace details
template <class Group, class T, class Size, thread_scope Scope, class C>
inline void memcpy_async(const Group& g, T* to, const T* from, const Size& bytes, barrier<Scope, C>& b, KF_SITE) {
  kf::share_copy(kf::copies_of(static_cast<kf::Phases*>(&b)), g, to, from, static_cast<size_t>(bytes), KF_AT);
}
template <class T, class Size, thread_scope Scope, class C>
inline void memcpy_async(T* to, const T* from, const Size& bytes, barrier<Scope, C>& b, KF_SITE) {
  memcpy_async(details::Alone(), to, from, bytes, b, KF_AT);
}

namespace device {
template <class B> inline uint64_t* barrier_native_handle(B& b) { return &b.bits; }
template <class... A> inline void barrier_expect_tx(A&&...) { kf_unsupported("cuda::device::barrier_expect_tx", __builtin_LINE(), __builtin_FILE()); }
template <class B> inline typename B::arrival_token barrier_arrive_tx(B&, ptrdiff_t, ptrdiff_t, KF_SITE) { kf_unsupported("cuda::device::barrier_arrive_tx", KF_AT); }
}  // namespace device

}  // namespace cuda

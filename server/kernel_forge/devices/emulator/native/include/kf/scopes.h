// cuda::atomic and cuda::atomic_ref: sequentially consistent whatever order is asked for, and visible everywhere whatever
// the scope. cuda::std is C++'s std.
#pragma once
#include "groups.h"

namespace cuda {
namespace std {
using namespace ::std;
}

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;
inline void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) { kf_fence(); }

namespace details {
// The operations on a place, for both. `Place` gives T* address().
template <class T, class Place> class AtomicOperations {
  static_assert(::std::is_trivially_copyable<T>::value, "an atomic type must be trivially copyable");
  static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0, "atomics of this size are not emulated");
  T* at() const { return const_cast<Place*>(static_cast<const Place*>(this))->address(); }

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;
  bool is_lock_free() const { return true; }
  T load(memory_order = memory_order_seq_cst) const {
    kf_spin();
    T value;
    __atomic_load(at(), &value, __ATOMIC_SEQ_CST);
    return value;
  }
  void store(T value, memory_order = memory_order_seq_cst) const {
    kf_spin();
    __atomic_store(at(), &value, __ATOMIC_SEQ_CST);
  }
  T exchange(T value, memory_order = memory_order_seq_cst) const { return change([&](T) { return value; }); }
  bool compare_exchange_strong(T& expected, T desired, memory_order = memory_order_seq_cst, memory_order = memory_order_seq_cst) const {
    kf_spin();
    return __atomic_compare_exchange(at(), &expected, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, desired, a, b);
  }
  template <class D> T fetch_add(D v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return static_cast<T>(old + v); }); }
  template <class D> T fetch_sub(D v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return static_cast<T>(old - v); }); }
  T fetch_and(T v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return static_cast<T>(old & v); }); }
  T fetch_or(T v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return static_cast<T>(old | v); }); }
  T fetch_xor(T v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return static_cast<T>(old ^ v); }); }
  T fetch_min(T v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return v < old ? v : old; }); }
  T fetch_max(T v, memory_order = memory_order_seq_cst) const { return change([&](T old) { return old < v ? v : old; }); }
  void wait(T old, memory_order = memory_order_seq_cst) const {
    T now = load();
    while (memcmp(&now, &old, sizeof(T)) == 0) now = load();
  }
  void notify_one() const {}
  void notify_all() const {}
  operator T() const { return load(); }
  T operator=(T v) const { store(v); return v; }
  T operator++() const { return static_cast<T>(fetch_add(1) + 1); }
  T operator--() const { return static_cast<T>(fetch_sub(1) - 1); }
  T operator++(int) const { return fetch_add(1); }
  T operator--(int) const { return fetch_sub(1); }
  template <class D> T operator+=(D v) const { return static_cast<T>(fetch_add(v) + v); }
  template <class D> T operator-=(D v) const { return static_cast<T>(fetch_sub(v) - v); }
  T operator&=(T v) const { return static_cast<T>(fetch_and(v) & v); }
  T operator|=(T v) const { return static_cast<T>(fetch_or(v) | v); }
  T operator^=(T v) const { return static_cast<T>(fetch_xor(v) ^ v); }

 private:
  template <class F> T change(F f) const {
    kf_spin();
    T old, made;
    __atomic_load(at(), &old, __ATOMIC_SEQ_CST);
    do made = f(old);
    while (!__atomic_compare_exchange(at(), &old, &made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
  }
};
}  // namespace details

template <class T, thread_scope Scope = thread_scope_system>
class atomic : public details::AtomicOperations<T, atomic<T, Scope>> {
  alignas(sizeof(T)) T value_;

 public:
  atomic() = default;
  constexpr atomic(T v) : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  using details::AtomicOperations<T, atomic>::operator=;
  T* address() { return &value_; }
};

template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref : public details::AtomicOperations<T, atomic_ref<T, Scope>> {
  T* place_;

 public:
  static constexpr size_t required_alignment = sizeof(T);
  explicit atomic_ref(T& place) : place_(&place) {}
  atomic_ref(const atomic_ref&) = default;
  atomic_ref& operator=(const atomic_ref&) = delete;
  using details::AtomicOperations<T, atomic_ref>::operator=;
  T* address() { return place_; }
};

template <thread_scope Scope = thread_scope_system> class atomic_flag {
  atomic<unsigned, Scope> set_{0};

 public:
  bool test(memory_order = memory_order_seq_cst) const { return set_.load() != 0; }
  bool test_and_set(memory_order = memory_order_seq_cst) { return set_.exchange(1) != 0; }
  void clear(memory_order = memory_order_seq_cst) { set_.store(0); }
};

namespace std {
template <class T> using atomic = ::cuda::atomic<T, thread_scope_system>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T, thread_scope_system>;
}  // namespace std

}  // namespace cuda

// Asynchronous copies. The source is read and the destination overwritten with poison when the copy is issued, so that a
// bad address faults there; the data arrives when somebody waits for it, so that a missing wait shows.
#pragma once
#include <unordered_map>

#include "groups.h"

namespace kf {

// While one lives, no other thread of the block runs.
struct Undisturbed {
  Undisturbed() { kf_hold(); }
  ~Undisturbed() { kf_release(); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
};

class Copies {
 public:
  void issue(void* to, const void* from, size_t bytes, size_t zeros, KF_SITE) {
    Undisturbed undisturbed;
    size_t start = data_.size();
    data_.resize(start + bytes, 0);
    memcpy(data_.data() + start, from, bytes - zeros);
    if (bytes) kf_warp_absent(0, 32, to, static_cast<unsigned>(bytes), KF_AT);  // fills with poison
    list_.push_back({to, start, bytes, committed_});
  }
  void commit() { ++committed_; }
  unsigned committed() const { return committed_; }
  // Lets batches numbered below `end` arrive.
  void arrive(unsigned end) {
    Undisturbed undisturbed;
    while (done_ < list_.size() && list_[done_].batch < end) {
      memcpy(list_[done_].to, data_.data() + list_[done_].start, list_[done_].bytes);
      ++done_;
    }
    if (done_ == list_.size()) list_.clear(), data_.clear(), done_ = 0;
  }
  // Of a thread's own batches, all but the last `n` arrive.
  void arrive_prior(unsigned n) { arrive(committed_ > n ? committed_ - n : 0); }
  void arrive_all() { arrive(committed_ + 1); }
  // Hands the batch that is not committed yet to whoever `other` belongs to.
  void move_open_to(Copies& other) {
    Undisturbed undisturbed;
    size_t i = list_.size();
    while (i > done_ && list_[i - 1].batch == committed_) --i;
    for (size_t k = i; k < list_.size(); ++k) {
      size_t start = other.data_.size();
      other.data_.insert(other.data_.end(), data_.begin() + static_cast<long>(list_[k].start),
                         data_.begin() + static_cast<long>(list_[k].start + list_[k].bytes));
      other.list_.push_back({list_[k].to, start, list_[k].bytes, other.committed_});
    }
    list_.resize(i);
  }

 private:
  struct Copy {
    void* to;
    size_t start, bytes;
    unsigned batch;
  };
  std::vector<Copy> list_;
  std::vector<unsigned char> data_;
  size_t done_ = 0;
  unsigned committed_ = 0;
};

// Copies of the running block by what they are bound to: a thread, a barrier, a pipeline.
inline Copies& copies_of(const void* owner) {
  Undisturbed undisturbed;
  static thread_local std::unordered_map<const void*, Copies> all;
  static char key;
  // Shared memory is poisoned at the start of a block: without the mark, what is in `all` is of an earlier one.
  constexpr uint64_t mark = 0x6b662d636f706965;
  auto* seen = static_cast<uint64_t*>(kf_shared_variable(&key, "asynchronous copies", sizeof(uint64_t), 16));
  if (*seen != mark) all.clear(), *seen = mark;
  return all[owner];
}
inline Copies& my_copies() {
  return copies_of(reinterpret_cast<const void*>(static_cast<size_t>(cooperative_groups::details::rank_in_block()) + 1));
}

}  // namespace kf

// ---- cuda_pipeline_primitives.h ------------------------------------------------------------------------------
static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0, KF_SITE) {
  if (bytes != 4 && bytes != 8 && bytes != 16) kf_assert_failed("__pipeline_memcpy_async copies 4, 8 or 16 bytes", KF_AT);
  if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from)) % bytes)
    kf_assert_failed("__pipeline_memcpy_async needs addresses aligned to the size of the copy", KF_AT);
  if (zero_fill > bytes) kf_assert_failed("__pipeline_memcpy_async cannot fill more than it copies", KF_AT);
  kf::my_copies().issue(to, from, bytes, zero_fill, KF_AT);
}
static inline void __pipeline_commit() { kf::my_copies().commit(); }
static inline void __pipeline_wait_prior(unsigned n) { kf::my_copies().arrive_prior(n); }

// ---- cooperative_groups/memcpy_async.h: every call is a batch of its own -------------------------------------------
namespace kf {
// The share of the calling thread: interleaved pieces of 16 bytes.
template <class Group> inline void share_copy(Copies& copies, const Group& g, void* to, const void* from, size_t bytes, KF_SITE) {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<const unsigned char*>(from);
  for (size_t i = 16 * static_cast<size_t>(g.thread_rank()); i < bytes; i += 16 * static_cast<size_t>(g.size()))
    copies.issue(out + i, in + i, bytes - i < 16 ? bytes - i : 16, 0, KF_AT);
}
}  // namespace kf
namespace cooperative_groups {
template <class Group, class T, class Shape>
inline void memcpy_async(const Group& g, T* to, const T* from, const Shape& bytes, KF_SITE) {
  kf::share_copy(kf::my_copies(), g, to, from, static_cast<size_t>(bytes), KF_AT);
  kf::my_copies().commit();
}
// In elements: as many as both sides have.
template <class Group, class T, class ShapeTo, class ShapeFrom>
inline void memcpy_async(const Group& g, T* to, const ShapeTo& to_count, const T* from, const ShapeFrom& from_count, KF_SITE) {
  size_t a = static_cast<size_t>(to_count), b = static_cast<size_t>(from_count);
  kf::share_copy(kf::my_copies(), g, to, from, (a < b ? a : b) * sizeof(T), KF_AT);
  kf::my_copies().commit();
}
template <class Group> inline void wait(const Group& g, KF_SITE) {
  kf::my_copies().arrive_prior(0);
  g.sync(KF_AT);
}
template <unsigned N, class Group> inline void wait_prior(const Group& g, KF_SITE) {
  kf::my_copies().arrive_prior(N);
  g.sync(KF_AT);
}
}  // namespace cooperative_groups

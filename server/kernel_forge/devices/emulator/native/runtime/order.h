// Orders that need no table.
#pragma once
#include <cstdint>

namespace kf {

// A permutation of 0 .. count-1: a Feistel network over the next power of four, walked until it falls inside.
class Permutation {
 public:
  Permutation() = default;
  Permutation(uint64_t count, uint64_t seed);
  uint64_t operator()(uint64_t position) const;
  uint64_t inverse(uint64_t value) const;

 private:
  uint64_t once(uint64_t value, bool backward) const;
  uint64_t count_ = 0, seed_ = 0;
  unsigned half_bits_ = 0;
};

// In which order the blocks of a launch begin.
class BlockOrder {
 public:
  BlockOrder() = default;
  explicit BlockOrder(uint64_t count);  // by the schedule of the run
  uint64_t block(uint64_t position) const;
  uint64_t position(uint64_t block) const;

 private:
  uint64_t count_ = 0;
  Permutation permutation_;
};

}  // namespace kf

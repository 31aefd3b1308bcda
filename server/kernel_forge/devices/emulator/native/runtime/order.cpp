#include "order.h"

#include "state.h"

namespace kf {

namespace {
constexpr int kRounds = 4;
}

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Permutation::Permutation(uint64_t count, uint64_t seed) : count_(count), seed_(mix(seed)) {
  while (uint64_t{1} << (2 * half_bits_) < count) ++half_bits_;
}

uint64_t Permutation::once(uint64_t value, bool backward) const {
  uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (int i = 0; i < kRounds; ++i) {
    uint64_t round = static_cast<uint64_t>(backward ? kRounds - 1 - i : i);
    if (backward) {
      uint64_t before = left;
      left = right ^ (mix(before ^ mix(seed_ + round)) & mask);
      right = before;
    } else {
      uint64_t before = right;
      right = left ^ (mix(before ^ mix(seed_ + round)) & mask);
      left = before;
    }
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t position) const {
  do position = once(position, false);
  while (position >= count_);
  return position;
}

uint64_t Permutation::inverse(uint64_t value) const {
  do value = once(value, true);
  while (value >= count_);
  return value;
}

BlockOrder::BlockOrder(uint64_t count) : count_(count), permutation_(count, settings.order_seed ^ 0xb10c) {}

uint64_t BlockOrder::block(uint64_t position) const {
  switch (settings.order) {
    case Order::kForward: return position;
    case Order::kReverse: return count_ - 1 - position;
    case Order::kRandom: break;
  }
  return permutation_(position);
}

uint64_t BlockOrder::position(uint64_t block) const {
  switch (settings.order) {
    case Order::kForward: return block;
    case Order::kReverse: return count_ - 1 - block;
    case Order::kRandom: break;
  }
  return permutation_.inverse(block);
}

}  // namespace kf

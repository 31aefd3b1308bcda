// Textures of a run: made from the job, read by kernels through their objects.
#pragma once
#include <cstdint>
#include <vector>

#include "kf_abi.h"

namespace kf {

enum class Address { kClamp, kBorder, kWrap, kMirror };

struct Texture {
  std::vector<unsigned char> texels;  // x varies fastest, the lanes of a texel lie together
  kf_texel kind = kf_float32;
  unsigned lanes = 1, dimensions = 1;
  int64_t extent[3] = {1, 1, 1};  // x, y, z
  bool is_linear = false;         // filtered
  Address address = Address::kClamp;
  bool is_normalized = false;     // the coordinates
  bool is_scaled = false;         // integers to floats
  bool in_memory = false;         // linear memory, for tex1Dfetch
};

unsigned element_bytes(kf_texel kind);
unsigned long long add_texture(Texture texture);  // its object; before the first launch

}  // namespace kf

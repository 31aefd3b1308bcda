// Texture fetches as the CUDA C++ Programming Guide defines them (appendix on texture fetching): nearest-point sampling
// takes the texel that the coordinate lies in, linear filtering blends the texels around it with weights that have eight
// bits of fraction.
#include "texture.h"

#include <cmath>
#include <cstring>
#include <string>

namespace kf {

namespace {

// Objects are no addresses: whoever reads through one faults.
constexpr unsigned long long kFirstObject = 0x7e80000000000000ull;
constexpr double kWeights = 256.0;  // steps between two texels
constexpr const char* kNames[] = {"float", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int"};

std::vector<Texture>& textures() {
  static std::vector<Texture> all;
  return all;
}

// One fetch: what is asked, where, and where it stands in the source.
struct Fetch {
  const char* name;
  kf_texel kind;
  unsigned lanes;
  int line;
  const char* file;

  [[noreturn]] void refuse(const std::string& why) const {
    std::string what = std::string(name) + " " + why;
    kf_unsupported(what.c_str(), line, file);
  }
};

const Texture& texture_of(unsigned long long object, const Fetch& fetch) {
  unsigned long long index = object - kFirstObject;
  if (index >= textures().size()) fetch.refuse("of a texture object that no argument of the launch is");
  const Texture& texture = textures()[index];
  kf_texel given = texture.is_scaled ? kf_float32 : texture.kind;
  if (given != fetch.kind)
    fetch.refuse(std::string("of ") + kNames[fetch.kind] + " from a texture that gives " + kNames[given] +
                 ": CUDA leaves open what that reads");
  if (texture.lanes < fetch.lanes)
    fetch.refuse("of " + std::to_string(fetch.lanes) + " lanes from a texture of " + std::to_string(texture.lanes) +
                 ": CUDA leaves open what the others hold");
  return texture;
}

template <class T> T element(const Texture& t, size_t i) {
  T value;
  memcpy(&value, t.texels.data() + i * sizeof value, sizeof value);
  return value;
}

template <class T> float scaled(const Texture& t, size_t i, float most) {
  float value = static_cast<float>(element<T>(t, i)) / most;
  return value < -1.0f ? -1.0f : value;  // the most negative integer is -1 too
}

float as_float(const Texture& t, size_t i) {
  switch (t.kind) {
    case kf_int8: return scaled<int8_t>(t, i, 127.0f);
    case kf_uint8: return scaled<uint8_t>(t, i, 255.0f);
    case kf_int16: return scaled<int16_t>(t, i, 32767.0f);
    case kf_uint16: return scaled<uint16_t>(t, i, 65535.0f);
    default: return element<float>(t, i);
  }
}

// The texel that number `i` along a dimension of `n` stands for; -1 for zero.
int64_t resolve(double i, int64_t n, Address address) {
  auto within = [i](int64_t period) {  // exact, also where the coordinate is huge
    auto rest = static_cast<int64_t>(std::fmod(i, static_cast<double>(period)));
    return rest < 0 ? rest + period : rest;
  };
  auto size = static_cast<double>(n);
  switch (address) {
    case Address::kClamp: return i < 0 ? 0 : i >= size ? n - 1 : static_cast<int64_t>(i);
    case Address::kBorder: return i < 0 || i >= size ? -1 : static_cast<int64_t>(i);
    case Address::kWrap: return within(n);
    case Address::kMirror: break;
  }
  int64_t turned = within(2 * n);
  return turned < n ? turned : 2 * n - 1 - turned;
}

// Along one dimension: one texel, or two with the weight of the second.
struct Along {
  int64_t first, second;
  double weight;
};

Along along(const Texture& t, unsigned d, float coordinate, const Fetch& fetch) {
  double x = coordinate;
  if (t.is_normalized) x *= static_cast<double>(t.extent[d]);
  bool repeats = t.address == Address::kWrap || t.address == Address::kMirror;
  if (std::isnan(x) || (repeats && std::isinf(x))) fetch.refuse("at a coordinate that is not a finite number");
  if (!t.is_linear) return {resolve(std::floor(x), t.extent[d], t.address), 0, 0.0};
  x -= 0.5;
  double i = std::floor(x);
  double weight = std::isinf(x) ? 0.0 : std::rint((x - i) * kWeights) / kWeights;
  return {resolve(i, t.extent[d], t.address), resolve(i + 1, t.extent[d], t.address), weight};
}

// Index of the first element of a texel; false outside of the border.
bool place(const Texture& t, const int64_t* at, size_t& index) {
  if (at[0] < 0 || at[1] < 0 || at[2] < 0) return false;
  index = static_cast<size_t>((at[2] * t.extent[1] + at[1]) * t.extent[0] + at[0]) * t.lanes;
  return true;
}

void copy_texel(const Texture& t, size_t index, unsigned lanes, void* into) {
  if (t.is_scaled) {
    for (unsigned lane = 0; lane < lanes; ++lane) static_cast<float*>(into)[lane] = as_float(t, index + lane);
  } else {
    unsigned bytes = element_bytes(t.kind);
    memcpy(into, t.texels.data() + index * bytes, size_t{lanes} * bytes);
  }
}

void blend(const Texture& t, const Along* places, unsigned lanes, float* into) {
  double sums[4] = {0, 0, 0, 0};
  for (unsigned corner = 0; corner < 1u << t.dimensions; ++corner) {
    int64_t at[3] = {0, 0, 0};
    double weight = 1.0;
    for (unsigned d = 0; d < t.dimensions; ++d) {
      bool is_second = corner >> d & 1;
      at[d] = is_second ? places[d].second : places[d].first;
      weight *= is_second ? places[d].weight : 1.0 - places[d].weight;
    }
    size_t index;
    if (weight == 0.0 || !place(t, at, index)) continue;
    for (unsigned lane = 0; lane < lanes; ++lane) sums[lane] += weight * static_cast<double>(as_float(t, index + lane));
  }
  for (unsigned lane = 0; lane < lanes; ++lane) into[lane] = static_cast<float>(sums[lane]);
}

}  // namespace

unsigned element_bytes(kf_texel kind) {
  return kind == kf_int8 || kind == kf_uint8 ? 1 : kind == kf_int16 || kind == kf_uint16 ? 2 : 4;
}

unsigned long long add_texture(Texture texture) {
  textures().push_back(std::move(texture));
  return kFirstObject + textures().size() - 1;
}

}  // namespace kf

using namespace kf;

void kf_texture_sample(unsigned long long object, const char* name, unsigned dimensions, const float* at,
                       kf_texel kind, unsigned lanes, void* into, int line, const char* file) {
  Fetch fetch{name, kind, lanes, line, file};
  const Texture& t = texture_of(object, fetch);
  if (t.in_memory) fetch.refuse("of a texture in linear memory: CUDA has tex1Dfetch for it");
  if (t.dimensions != dimensions) fetch.refuse("of a texture of " + std::to_string(t.dimensions) + " dimensions");
  Along places[3] = {{0, 0, 0.0}, {0, 0, 0.0}, {0, 0, 0.0}};
  for (unsigned d = 0; d < dimensions; ++d) places[d] = along(t, d, at[d], fetch);
  if (t.is_linear) {
    blend(t, places, lanes, static_cast<float*>(into));
    return;
  }
  int64_t texel[3] = {places[0].first, places[1].first, places[2].first};
  size_t index;
  memset(into, 0, size_t{lanes} * element_bytes(kind));
  if (place(t, texel, index)) copy_texel(t, index, lanes, into);
}

void kf_texture_fetch(unsigned long long object, const char* name, int index, kf_texel kind, unsigned lanes,
                      void* into, int line, const char* file) {
  Fetch fetch{name, kind, lanes, line, file};
  const Texture& t = texture_of(object, fetch);
  if (!t.in_memory) fetch.refuse("of a texture in a CUDA array: it reads linear memory");
  memset(into, 0, size_t{lanes} * element_bytes(kind));
  if (index >= 0 && index < t.extent[0]) copy_texel(t, static_cast<size_t>(index) * t.lanes, lanes, into);
}

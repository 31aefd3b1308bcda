// Texture objects: fetches of single texels and filtered ones in one, two and three dimensions. Layers, cube maps, levels,
// gathers, sparse textures and surfaces are not emulated.
#pragma once
#include "vectors.h"

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;

namespace kf {
// A texture or surface object that knows where it is used.
struct Handle : Place {
  unsigned long long object;
  Handle(unsigned long long o, KF_PLACE) : Place(kf_place), object(o) {}
};

// What a type asks of a texture.
template <class T> struct Texel;
#define KF_TEXEL(T, KIND, LANES) \
  template <> struct Texel<T> { static constexpr kf_texel kind = KIND; static constexpr unsigned lanes = LANES; };
#define KF_TEXELS(T, NAME, KIND) KF_TEXEL(T, KIND, 1) KF_TEXEL(NAME##1, KIND, 1) KF_TEXEL(NAME##2, KIND, 2) KF_TEXEL(NAME##4, KIND, 4)
KF_TEXELS(float, float, kf_float32)
KF_TEXELS(signed char, char, kf_int8)
KF_TEXEL(char, kf_int8, 1)
KF_TEXELS(unsigned char, uchar, kf_uint8)
KF_TEXELS(short, short, kf_int16)
KF_TEXELS(unsigned short, ushort, kf_uint16)
KF_TEXELS(int, int, kf_int32)
KF_TEXELS(unsigned, uint, kf_uint32)
#undef KF_TEXELS
#undef KF_TEXEL

template <class T, class... C> inline T sample(Handle h, const char* name, C... at) {
  const float coordinates[] = {at...};
  T texel;
  kf_texture_sample(h.object, name, sizeof...(C), coordinates, Texel<T>::kind, Texel<T>::lanes, &texel, h.line, h.file);
  return texel;
}
}  // namespace kf

template <class T> static inline T tex1Dfetch(kf::Handle h, int x) {
  T texel;
  kf_texture_fetch(h.object, "tex1Dfetch", x, kf::Texel<T>::kind, kf::Texel<T>::lanes, &texel, h.line, h.file);
  return texel;
}
template <class T> static inline T tex1D(kf::Handle h, float x) { return kf::sample<T>(h, "tex1D", x); }
template <class T> static inline T tex2D(kf::Handle h, float x, float y) { return kf::sample<T>(h, "tex2D", x, y); }
template <class T> static inline T tex3D(kf::Handle h, float x, float y, float z) { return kf::sample<T>(h, "tex3D", x, y, z); }
// The same through a pointer, as older code has it.
template <class T> static inline void tex1Dfetch(T* p, kf::Handle h, int x) { *p = tex1Dfetch<T>(h, x); }
template <class T> static inline void tex1D(T* p, kf::Handle h, float x) { *p = tex1D<T>(h, x); }
template <class T> static inline void tex2D(T* p, kf::Handle h, float x, float y) { *p = tex2D<T>(h, x, y); }
template <class T> static inline void tex3D(T* p, kf::Handle h, float x, float y, float z) { *p = tex3D<T>(h, x, y, z); }
// Sparse textures tell whether the texel is there.
template <class T> static inline T tex2D(kf::Handle h, float, float, bool*) { kf_unsupported("tex2D of a sparse texture", h.line, h.file); }
template <class T> static inline T tex3D(kf::Handle h, float, float, float, bool*) { kf_unsupported("tex3D of a sparse texture", h.line, h.file); }

// The calls are variadic and take no default arguments.
#define KF_READ(NAME)                                                                                                   \
  template <class T, class... A> static inline T NAME(kf::Handle h, A...) { kf_unsupported(#NAME, h.line, h.file); }    \
  template <class T, class... A> static inline void NAME(T*, kf::Handle h, A...) { kf_unsupported(#NAME, h.line, h.file); }
#define KF_LEVELS(SHAPE) KF_READ(tex##SHAPE##Lod) KF_READ(tex##SHAPE##Grad)
#define KF_TEXTURE(SHAPE) KF_READ(tex##SHAPE) KF_LEVELS(SHAPE)
#define KF_SURFACE(SHAPE)                                                                                               \
  KF_READ(surf##SHAPE##read)                                                                                            \
  template <class T, class... A> static inline void surf##SHAPE##write(T, kf::Handle h, A...) { kf_unsupported("surf" #SHAPE "write", h.line, h.file); }
KF_READ(tex2Dgather) KF_LEVELS(1D) KF_LEVELS(2D) KF_LEVELS(3D) KF_TEXTURE(1DLayered) KF_TEXTURE(2DLayered)
KF_TEXTURE(Cubemap) KF_TEXTURE(CubemapLayered) KF_SURFACE(1D) KF_SURFACE(2D) KF_SURFACE(3D) KF_SURFACE(1DLayered) KF_SURFACE(2DLayered)
KF_SURFACE(Cubemap) KF_SURFACE(CubemapLayered)
#undef KF_TEXTURE
#undef KF_LEVELS
#undef KF_SURFACE
#undef KF_READ
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

// SIMD within a word: bytes and 16-bit halves of a 32-bit register, and the DPX functions. Macros rather than templates:
// see math.h.
#pragma once
#include "qualifiers.h"

// EXPRESSION over the lanes x of a and y of b; what it has above the lane's bits is cut off.
#define KF_LANES(NAME, T, BITS, EXPRESSION)                                                              \
  static inline unsigned NAME(unsigned a, unsigned b) {                                                  \
    unsigned r = 0;                                                                                      \
    for (int s = 0; s < 32; s += BITS) {                                                                 \
      int x = static_cast<T>(a >> s), y = static_cast<T>(b >> s);                                        \
      r |= (static_cast<unsigned>(EXPRESSION) & ((1u << BITS) - 1)) << s;                                \
    }                                                                                                    \
    return r;                                                                                            \
  }
#define KF_SIGNED(NAME, EXPRESSION) KF_LANES(NAME##4, int8_t, 8, EXPRESSION) KF_LANES(NAME##2, int16_t, 16, EXPRESSION)
#define KF_UNSIGNED(NAME, EXPRESSION) KF_LANES(NAME##4, uint8_t, 8, EXPRESSION) KF_LANES(NAME##2, uint16_t, 16, EXPRESSION)
#define KF_CLAMP(V, LOW, HIGH) ((V) < (LOW) ? (LOW) : (V) > (HIGH) ? (HIGH) : (V))
#define KF_SATURATED(NAME, EXPRESSION)                                                   \
  KF_LANES(NAME##ss4, int8_t, 8, KF_CLAMP(EXPRESSION, -128, 127))                        \
  KF_LANES(NAME##ss2, int16_t, 16, KF_CLAMP(EXPRESSION, -32768, 32767))                  \
  KF_LANES(NAME##us4, uint8_t, 8, KF_CLAMP(EXPRESSION, 0, 255))                          \
  KF_LANES(NAME##us2, uint16_t, 16, KF_CLAMP(EXPRESSION, 0, 65535))
KF_UNSIGNED(__vadd, x + y) KF_UNSIGNED(__vsub, x - y) KF_SATURATED(__vadd, x + y) KF_SATURATED(__vsub, x - y)
KF_UNSIGNED(__vabsdiffu, x > y ? x - y : y - x) KF_SIGNED(__vabsdiffs, x > y ? x - y : y - x)
KF_UNSIGNED(__vmaxu, x > y ? x : y) KF_UNSIGNED(__vminu, x < y ? x : y) KF_SIGNED(__vmaxs, x > y ? x : y) KF_SIGNED(__vmins, x < y ? x : y)
KF_UNSIGNED(__vavgu, (x + y + 1) >> 1) KF_SIGNED(__vavgs, (x + y + (x + y >= 0)) >> 1) KF_UNSIGNED(__vhaddu, (x + y) >> 1)
#define KF_COMPARED(NAME, OP)                                                                               \
  KF_UNSIGNED(__vcmp##NAME##u, x OP y ? -1 : 0) KF_SIGNED(__vcmp##NAME##s, x OP y ? -1 : 0)                 \
  KF_UNSIGNED(__vset##NAME##u, x OP y ? 1 : 0) KF_SIGNED(__vset##NAME##s, x OP y ? 1 : 0)
KF_COMPARED(ge, >=) KF_COMPARED(gt, >) KF_COMPARED(le, <=) KF_COMPARED(lt, <)
KF_UNSIGNED(__vcmpeq, x == y ? -1 : 0) KF_UNSIGNED(__vcmpne, x != y ? -1 : 0) KF_UNSIGNED(__vseteq, x == y ? 1 : 0) KF_UNSIGNED(__vsetne, x != y ? 1 : 0)
#undef KF_COMPARED
#undef KF_SATURATED
KF_SIGNED(kf_vabs, ((void)y, x < 0 ? -x : x)) KF_SIGNED(kf_vneg, ((void)y, -x))
static inline unsigned __vabs4(unsigned a) { return kf_vabs4(a, 0); }
static inline unsigned __vabs2(unsigned a) { return kf_vabs2(a, 0); }
static inline unsigned __vabsss4(unsigned a) { return __vminu4(kf_vabs4(a, 0), 0x7f7f7f7fu); }
static inline unsigned __vabsss2(unsigned a) { return __vminu2(kf_vabs2(a, 0), 0x7fff7fffu); }
static inline unsigned __vneg4(unsigned a) { return kf_vneg4(a, 0); }
static inline unsigned __vneg2(unsigned a) { return kf_vneg2(a, 0); }
static inline unsigned __vnegss4(unsigned a) { return __vsubss4(0, a); }
static inline unsigned __vnegss2(unsigned a) { return __vsubss2(0, a); }
#define KF_SUM(NAME, FROM, BITS)                                                        \
  static inline unsigned NAME(unsigned a, unsigned b) {                                 \
    unsigned d = FROM(a, b), r = 0;                                                     \
    for (int s = 0; s < 32; s += BITS) r += d >> s & ((1u << BITS) - 1);                \
    return r;                                                                           \
  }
KF_SUM(__vsads4, __vabsdiffs4, 8) KF_SUM(__vsads2, __vabsdiffs2, 16) KF_SUM(__vsadu4, __vabsdiffu4, 8) KF_SUM(__vsadu2, __vabsdiffu2, 16)
#undef KF_SUM

// ---- DPX: min and max of up to three, with a wrapping sum or a clamp to zero ---------------------------------
#define KF_MAX(a, b) ((a) < (b) ? (b) : (a))
#define KF_MIN(a, b) ((b) < (a) ? (b) : (a))
#define KF_HALVES(NAME, T, EXPRESSION)                                                                    \
  static inline unsigned NAME(unsigned a, unsigned b, unsigned c) {                                       \
    unsigned r = 0;                                                                                       \
    for (int s = 0; s < 32; s += 16) {                                                                    \
      T x = static_cast<T>(a >> s), y = static_cast<T>(b >> s), z = static_cast<T>(c >> s);               \
      r |= (static_cast<unsigned>(EXPRESSION) & 0xffffu) << s;                                            \
    }                                                                                                     \
    return r;                                                                                             \
  }
#define KF_DPX(NAME, M, OTHER)                                                                                           \
  static inline int __viadd##NAME##_s32(int x, int y, int z) { return M(x + y, z); }                                     \
  static inline int __viadd##NAME##_s32_relu(int x, int y, int z) { return KF_MAX(M(x + y, z), 0); }                     \
  static inline unsigned __viadd##NAME##_u32(unsigned x, unsigned y, unsigned z) { return M(x + y, z); }                 \
  KF_HALVES(__viadd##NAME##_s16x2, int16_t, M(static_cast<int16_t>(x + y), z))                                           \
  KF_HALVES(__viadd##NAME##_s16x2_relu, int16_t, KF_MAX(M(static_cast<int16_t>(x + y), z), 0))                           \
  KF_HALVES(__viadd##NAME##_u16x2, uint16_t, M(static_cast<uint16_t>(x + y), z))                                         \
  static inline int __vi##NAME##3_s32(int x, int y, int z) { return M(M(x, y), z); }                                     \
  static inline int __vi##NAME##3_s32_relu(int x, int y, int z) { return KF_MAX(M(M(x, y), z), 0); }                     \
  static inline unsigned __vi##NAME##3_u32(unsigned x, unsigned y, unsigned z) { return M(M(x, y), z); }                 \
  KF_HALVES(__vi##NAME##3_s16x2, int16_t, M(M(x, y), z))                                                                 \
  KF_HALVES(__vi##NAME##3_s16x2_relu, int16_t, KF_MAX(M(M(x, y), z), 0))                                                 \
  KF_HALVES(__vi##NAME##3_u16x2, uint16_t, M(M(x, y), z))                                                                \
  static inline int __vi##NAME##_s32_relu(int x, int y) { return KF_MAX(M(x, y), 0); }                                   \
  static inline unsigned __vi##NAME##_s16x2_relu(unsigned a, unsigned b) { return __vi##NAME##3_s16x2_relu(a, b, b); }   \
  static inline int __vib##NAME##_s32(int a, int b, bool* first) { *first = a OTHER b; return M(a, b); }                 \
  static inline unsigned __vib##NAME##_u32(unsigned a, unsigned b, bool* first) { *first = a OTHER b; return M(a, b); }  \
  static inline unsigned __vib##NAME##_s16x2(unsigned a, unsigned b, bool* high, bool* low) {                            \
    *high = static_cast<int16_t>(a >> 16) OTHER static_cast<int16_t>(b >> 16);                                           \
    *low = static_cast<int16_t>(a) OTHER static_cast<int16_t>(b);                                                        \
    return __v##NAME##s2(a, b);                                                                                          \
  }                                                                                                                      \
  static inline unsigned __vib##NAME##_u16x2(unsigned a, unsigned b, bool* high, bool* low) {                            \
    *high = a >> 16 OTHER b >> 16;                                                                                       \
    *low = (a & 0xffffu) OTHER (b & 0xffffu);                                                                            \
    return __v##NAME##u2(a, b);                                                                                          \
  }
KF_DPX(max, KF_MAX, >=) KF_DPX(min, KF_MIN, <=)
#undef KF_DPX
#undef KF_HALVES
#undef KF_MAX
#undef KF_MIN
#undef KF_CLAMP
#undef KF_SIGNED
#undef KF_UNSIGNED
#undef KF_LANES

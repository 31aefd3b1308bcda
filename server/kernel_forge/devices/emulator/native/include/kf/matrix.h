// nvcuda::wmma: matrix multiplication by a warp. Which lane holds which element is our own choice, as it is the
// hardware's: CUDA leaves it open. Products are exact, and summed before one rounding to the type of the accumulator.
#pragma once
#include "groups.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

namespace details {
template <class T> struct Element { using type = T; using wide = float; };
template <> struct Element<precision::tf32> { using type = float; using wide = float; };
template <> struct Element<double> { using type = double; using wide = double; };
template <> struct Element<int> { using type = int; using wide = long long; };

template <class Use, int M, int N, int K> struct Shape { static constexpr int rows = M, columns = N; };
template <int M, int N, int K> struct Shape<matrix_a, M, N, K> { static constexpr int rows = M, columns = K; };
template <int M, int N, int K> struct Shape<matrix_b, M, N, K> { static constexpr int rows = K, columns = N; };

// half operands have 16 elements in every lane on all hardware, so that some are there twice.
template <class Use, class T> struct Copies { static constexpr bool sixteen = false; };
template <> struct Copies<matrix_a, __half> { static constexpr bool sixteen = true; };
template <> struct Copies<matrix_b, __half> { static constexpr bool sixteen = true; };
}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  using S = details::Shape<Use, M, N, K>;
  static constexpr int held = S::rows * S::columns / 32;  // elements that are this lane's own
  static constexpr int num_elements = details::Copies<Use, T>::sixteen ? 16 : held;
  static constexpr int num_storage_elements = num_elements;
  using element_type = T;
  using storage_element_type = typename details::Element<T>::type;
  storage_element_type x[num_elements];
};

namespace details {
template <class F> inline int row(int i) { return (static_cast<int>(kf_lane_id()) * F::held + i % F::held) / F::S::columns; }
template <class F> inline int column(int i) { return (static_cast<int>(kf_lane_id()) * F::held + i % F::held) % F::S::columns; }
inline void check(const void* p, unsigned ldm, size_t size, KF_SITE) {
  if (reinterpret_cast<size_t>(p) % 16 || ldm * size % 16)
    kf_assert_failed("wmma needs a pointer and rows that are aligned to 16 bytes", KF_AT);
}

// All elements of a fragment, from all lanes; `all` is in rows.
template <class W, class F> inline void gather(const F& f, W* all, KF_SITE) {
  constexpr int step = kf_slot_bytes / static_cast<int>(sizeof(W));
  for (int first = 0; first < F::held; first += step) {
    struct { W v[step]; } mine;
    int n = F::held - first < step ? F::held - first : step;
    for (int i = 0; i < step; ++i) mine.v[i] = i < n ? static_cast<W>(f.x[first + i]) : W();
    kf::Lanes lanes = kf::exchange(0xffffffffu, mine, KF_AT);
    for (int lane = 0; lane < 32; ++lane) {
      auto got = lanes.get<decltype(mine)>(static_cast<unsigned>(lane), KF_AT);
      for (int i = 0; i < n; ++i) all[lane * F::held + first + i] = got.v[i];
    }
  }
}
inline float truncated(float v) { return __uint_as_float(__float_as_uint(v) & 0xffffe000u); }
inline double operand(double v, const void*) { return v; }
inline double operand(float v, const precision::tf32*) { return truncated(v); }
template <class T> inline T finish(double sum, bool) { return static_cast<T>(sum); }
template <> inline __half finish<__half>(double sum, bool) { return __half::round(sum); }
template <> inline int finish<int>(double sum, bool saturate) {
  auto whole = static_cast<long long>(sum);  // exact: far below 2^53
  if (saturate) return whole > INT_MAX ? INT_MAX : whole < INT_MIN ? INT_MIN : static_cast<int>(whole);
  return static_cast<int>(static_cast<unsigned long long>(whole));
}
}  // namespace details

template <class Use, int M, int N, int K, class T, class L, class V>
inline void fill_fragment(fragment<Use, M, N, K, T, L>& f, const V& v) {
  for (auto& x : f.x) x = static_cast<typename details::Element<T>::type>(v);
}

template <class Use, int M, int N, int K, class T, class L, class P>
__attribute__((always_inline)) inline void load_matrix_sync(fragment<Use, M, N, K, T, L>& f, const P* p, unsigned ldm, KF_SITE) {
  static_assert(!std::is_void<L>::value, "loading an accumulator takes a layout");
  static_assert(std::is_same<P, typename details::Element<T>::type>::value, "the pointer's type is not the fragment's");
  using F = fragment<Use, M, N, K, T, L>;
  details::check(p, ldm, sizeof(P), KF_AT);
  kf_warp_barrier(0xffffffffu, KF_AT);
  for (int i = 0; i < F::num_elements; ++i) {
    size_t r = static_cast<size_t>(details::row<F>(i)), c = static_cast<size_t>(details::column<F>(i));
    f.x[i] = std::is_same<L, row_major>::value ? p[r * ldm + c] : p[c * ldm + r];
  }
}
template <int M, int N, int K, class T, class P>
__attribute__((always_inline)) inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const P* p, unsigned ldm, layout_t layout, KF_SITE) {
  using F = fragment<accumulator, M, N, K, T>;
  details::check(p, ldm, sizeof(P), KF_AT);
  kf_warp_barrier(0xffffffffu, KF_AT);
  for (int i = 0; i < F::num_elements; ++i) {
    size_t r = static_cast<size_t>(details::row<F>(i)), c = static_cast<size_t>(details::column<F>(i));
    f.x[i] = layout == mem_row_major ? p[r * ldm + c] : p[c * ldm + r];
  }
}
template <int M, int N, int K, class T, class P>
__attribute__((always_inline)) inline void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T>& f, unsigned ldm, layout_t layout, KF_SITE) {
  using F = fragment<accumulator, M, N, K, T>;
  details::check(p, ldm, sizeof(P), KF_AT);
  kf_warp_barrier(0xffffffffu, KF_AT);
  for (int i = 0; i < F::num_elements; ++i) {
    size_t r = static_cast<size_t>(details::row<F>(i)), c = static_cast<size_t>(details::column<F>(i));
    p[layout == mem_row_major ? r * ldm + c : c * ldm + r] = f.x[i];
  }
}

template <int M, int N, int K, class TA, class TB, class LA, class LB, class TC, class TD>
inline void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
                     const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c,
                     bool satf = false, KF_SITE) {
  static_assert((M * N * K == 4096 && M >= 8 && N >= 8) || (M * N == 256 && K == 8) || (M == 8 && N == 8 && K == 4), "no such shape");
  using D = fragment<accumulator, M, N, K, TD>;
  using W = typename details::Element<TA>::wide;
  W left[M * K], right[K * N];
  details::gather(a, left, KF_AT);
  details::gather(b, right, KF_AT);
  for (int i = 0; i < D::held; ++i) {
    int r = details::row<D>(i), n = details::column<D>(i);
    double sum = 0;
    for (int k = 0; k < K; ++k)
      sum += details::operand(left[r * K + k], static_cast<const TA*>(nullptr)) * details::operand(right[k * N + n], static_cast<const TB*>(nullptr));
    d.x[i] = details::finish<TD>(sum + static_cast<double>(c.x[i]), satf);
  }
}

// To the nearest, ties away from zero (PTX cvt.rna.tf32.f32); a NaN stays one.
inline float __float_to_tf32(float v) {
  unsigned bits = __float_as_uint(v);
  if ((bits & 0x7f800000u) == 0x7f800000u) return v;
  return __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}

}  // namespace wmma
}  // namespace nvcuda

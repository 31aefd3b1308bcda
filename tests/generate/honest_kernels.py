"""Kernels of varied style, each within the rules."""

from tests.generate.refused_kernels import PLAIN, body

_ELEMENT = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"

HONEST: dict[str, str] = {
    "plain": PLAIN,
    "C name": 'extern "C" ' + PLAIN,
    "launch bounds and restrict": (
        "__global__ void __launch_bounds__(256, 2) k(const float* __restrict__ x, float* __restrict__ y, int n) {\n"
        + _ELEMENT
        + "  for (; i < n; i += gridDim.x * blockDim.x) y[i] = fmaxf(x[i], 0.f);\n}\n"
    ),
    "vector loads": body(
        "float4 v = reinterpret_cast<const float4*>(x)[i];\nv.x *= 2; v.y *= 2; reinterpret_cast<float4*>(y)[i] = v;"
    ),
    "C casts of pointers": body(
        "float4 v = ((const float4*)(x + 4 * i))[0]; *(float2*)&y[2 * i] = make_float2(v.x, v.w);"
    ),
    "tunable macros": (
        "#ifndef TILE\n#define TILE 16\n#endif\n#define PAD (TILE + 1)\n#define IDX(r, c) ((r) * n + (c))\n"
        "__global__ void transpose(const float* in, float* out, int n) {\n"
        "  __shared__ float tile[TILE][PAD];\n"
        "  int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;\n"
        "  if (r < n && c < n) tile[threadIdx.y][threadIdx.x] = in[IDX(r, c)];\n"
        "  __syncthreads();\n"
        "  r = blockIdx.x * TILE + threadIdx.y; c = blockIdx.y * TILE + threadIdx.x;\n"
        "  if (r < n && c < n) out[IDX(r, c)] = tile[threadIdx.x][threadIdx.y];\n}\n"
    ),
    "warp and block reduction": (
        "__device__ __forceinline__ float warp_sum(float v) {\n"
        "#pragma unroll\n  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);\n  return v;\n}\n"
        "__global__ void sum(const float* x, float* out, int n) {\n  __shared__ float part[32];\n  float v = 0;\n"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += __ldg(x + i);\n"
        "  v = warp_sum(v);\n  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;\n  __syncthreads();\n"
        "  if (threadIdx.x < 32) { v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f; v = warp_sum(v);\n"
        "    if (threadIdx.x == 0) atomicAdd(out, v); }\n}\n"
    ),
    "template with a functor": (
        "struct Square { __device__ float operator()(float v) const { return v * v; } };\n"
        "template <typename T, int N, class F>\n__device__ void apply(const T* x, T* y, F f) {\n"
        "#pragma unroll N\n  for (int j = 0; j < N; ++j) y[j] = f(x[j]);\n}\n"
        + body("apply<float, 4>(x + 4 * i, y + 4 * i, Square{});")
    ),
    "template recursion": (
        "template <int N> __device__ float power(float v) {\n"
        "  if constexpr (N == 0) return 1.f; else return v * power<N - 1>(v);\n}\n" + body("y[i] = power<5>(x[i]);")
    ),
    "overloads": (
        "__device__ float twice(float v) { return v + v; }\n"
        "__device__ float2 twice(float2 v) { return make_float2(twice(v.x), twice(v.y)); }\n"
        + body("float2 v = twice(make_float2(x[i], 1.f)); y[i] = v.x;")
    ),
    "lambda": body("auto f = [&](float v) { return v * x[0]; };\ny[i] = f(x[i]);"),
    "dynamic shared memory in parts": (
        "__global__ void k(const float* x, float* y, int n) {\n  extern __shared__ __align__(16) unsigned char raw[];\n"
        "  float* a = reinterpret_cast<float*>(raw);\n  int* b = (int*)(a + blockDim.x);\n"
        "  a[threadIdx.x] = x[threadIdx.x]; b[threadIdx.x] = threadIdx.x;\n  __syncthreads();\n"
        "  if (threadIdx.x < n) y[threadIdx.x] = a[b[threadIdx.x]];\n}\n"
    ),
    "half precision": (
        "#include <cuda_fp16.h>\n__global__ void k(const __half* x, __half2* y, int n) {\n"
        + _ELEMENT
        + "  if (i < n) y[i] = __hfma2(__half2half2(x[i]), __float2half2_rn(2.f), __floats2half2_rn(0.f, 1.f));\n}\n"
    ),
    "bfloat16": (
        "#include <cuda_bf16.h>\n__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {\n"
        + _ELEMENT
        + "  if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * 2.f);\n}\n"
    ),
    "wmma": (
        "#include <mma.h>\nusing namespace nvcuda;\n"
        "__global__ void k(const half* a, const half* b, float* c) {\n"
        "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;\n"
        "  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;\n"
        "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;\n"
        "  wmma::fill_fragment(fc, 0.0f);\n  wmma::load_matrix_sync(fa, a, 16);\n  wmma::load_matrix_sync(fb, b, 16);\n"
        "  wmma::mma_sync(fc, fa, fb, fc);\n  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);\n}\n"
    ),
    "mma in PTX": body(
        "unsigned a[4] = {}, b[2] = {}; float c[4] = {};\n"
        'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "\n'
        '  "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\\n"\n'
        '  : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])\n'
        '  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));\ny[i] = c[0];'
    ),
    "ldmatrix and cp.async in PTX": (
        "__device__ __forceinline__ void copy16(void* to, const void* from) {\n"
        "  unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(to));\n"
        '  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\\n" :: "r"(s), "l"(from) : "memory");\n}\n'
        "__device__ void load(unsigned (&r)[4], const void* from) {\n"
        "  unsigned s = (unsigned)__cvta_generic_to_shared(from);\n"
        '  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"\n'
        '    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s));\n}\n'
        "__global__ void k(const float* x, float* y) {\n  __shared__ __align__(16) float s[1024];\n  unsigned r[4];\n"
        "  copy16(&s[4 * threadIdx.x], x + 4 * threadIdx.x);\n"
        '  asm volatile("cp.async.commit_group;\\n" ::);\n  asm volatile("cp.async.wait_group %0;\\n" :: "n"(0));\n'
        "  __syncthreads();\n  load(r, s + 4 * threadIdx.x);\n  y[threadIdx.x] = __uint_as_float(r[0]);\n}\n"
    ),
    "predicated load in PTX": body(
        "float v;\n"
        'asm volatile("{\\n .reg .pred p;\\n setp.ne.b32 p, %2, 0;\\n mov.b32 %0, 0;\\n"\n'
        '             " @p ld.global.nc.f32 %0, [%1];\\n}" : "=f"(v) : "l"(x + i), "r"(i & 1));\ny[i] = v;'
    ),
    "cooperative groups": (
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;\n"
        + body(
            "auto block = cg::this_thread_block();\nauto warp = cg::tiled_partition<32>(block);\n"
            "float s = cg::reduce(warp, x[i], cg::plus<float>());\nif (warp.thread_rank() == 0) y[i] = s;"
        )
    ),
    "pipeline": (
        "#include <cuda_pipeline.h>\n__global__ void k(const float4* x, float4* y) {\n  __shared__ float4 s[256];\n"
        "  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], sizeof(float4));\n  __pipeline_commit();\n"
        "  __pipeline_wait_prior(0);\n  y[threadIdx.x] = s[threadIdx.x];\n}\n"
    ),
    "barrier of libcu++": (
        "#include <cuda/barrier>\n__global__ void k(const float* x, float* y) {\n"
        "  __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n  if (threadIdx.x == 0) init(&bar, blockDim.x);\n"
        "  __syncthreads();\n  bar.arrive_and_wait();\n  y[threadIdx.x] = x[threadIdx.x];\n}\n"
    ),
    "numeric limits of cuda::std": (
        "#include <cuda/std/limits>\n" + body("y[i] = fminf(x[i], cuda::std::numeric_limits<float>::max());")
    ),
    "constants": (
        "__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};\nconstexpr int RADIUS = 1;\nstatic const int WIDTH = 3;\n"
        + body(
            "float s = 0;\nfor (int d = -RADIUS; d <= RADIUS; ++d)\n"
            "  s += weights[d + WIDTH / 2] * x[min(max(i + d, 0), n - 1)];\ny[i] = s;"
        )
    ),
    "union of values": body("union { float4 v; float f[4]; } u;\nu.v = make_float4(1, 2, 3, 4); y[i] = u.f[i & 3];"),
    "compare and swap on floats": body(
        "int* a = reinterpret_cast<int*>(&y[0]); int old = *a, seen;\n"
        "do { seen = old; old = atomicCAS(a, seen, __float_as_int(fmaxf(x[i], __int_as_float(seen)))); } while (seen != old);"
    ),
    "registers as vectors": body(
        "float r[8];\n*reinterpret_cast<float4*>(&r[0]) = *reinterpret_cast<const float4*>(&x[i]);\n"
        "*reinterpret_cast<float4*>(r + 4) = make_float4(0, 0, 0, 0);\nconst float4* p = (const float4*)r; y[i] = p[1].x;"
    ),
    "architectures": (
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#define FAST 1\n#endif\n"
        + body("#ifdef FAST\ny[i] = __expf(x[i]);\n#else\ny[i] = expf(x[i]);\n#endif")
    ),
    "attributes and enumeration": (
        "enum class Mode : int { Sum, Max };\n"
        "template <Mode M> [[nodiscard]] __device__ float join(float a, float b) { return M == Mode::Sum ? a + b : fmaxf(a, b); }\n"
        "struct alignas(16) Pack { float v[4]; };\n"
        + body("Pack p = *reinterpret_cast<const Pack*>(x + 4 * i); y[i] = join<Mode::Max>(p.v[0], p.v[1]);")
    ),
    "structure with a constructor": (
        "struct Welford {\n  float mean, m2; int count;\n  __device__ Welford() : mean(0.f), m2(0.f), count(0) {}\n"
        "  __device__ void add(float v) { ++count; float d = v - mean; mean += d / count; m2 += d * (v - mean); }\n};\n"
        + body("Welford w; for (int j = 0; j < 8; ++j) w.add(x[i + j]); y[i] = w.m2;")
    ),
    "namespace and alias": "namespace mine {\nusing real = float;\n"
    + body("const real v = static_cast<real>(x[i]); y[i] = v;")
    + "}\n",
    "words in comments and strings": body(
        '// no printf, no clock64(), no new\nstatic_assert(sizeof(float) == 4, "printf and trap");\ny[i] = x[i]; /* <<<1, 1>>> */'
    ),
}

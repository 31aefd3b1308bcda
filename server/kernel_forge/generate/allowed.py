"""What a model's kernel may name: headers, reserved words, PTX instructions; and the names it may not."""

import re

HEADERS = frozenset(
    """
    cooperative_groups.h cooperative_groups/memcpy_async.h cooperative_groups/reduce.h cooperative_groups/scan.h
    cuda_runtime.h cuda.h cuda_fp16.h cuda_fp16.hpp cuda_bf16.h cuda_bf16.hpp cuda_fp8.h cuComplex.h mma.h
    cuda_pipeline.h cuda_pipeline_primitives.h cuda_awbarrier_primitives.h math_constants.h vector_types.h
    device_launch_parameters.h texture_types.h texture_indirect_functions.h cuda/barrier cuda/pipeline
    cuda/atomic cuda/cmath cuda/functional cuda/std/array cuda/std/atomic cuda/std/barrier cuda/std/bit
    cuda/std/cfloat cuda/std/climits cuda/std/cmath cuda/std/complex cuda/std/concepts cuda/std/cstddef
    cuda/std/cstdint cuda/std/limits cuda/std/numeric cuda/std/optional cuda/std/span cuda/std/functional
    cuda/std/tuple cuda/std/type_traits cuda/std/utility cub/cub.cuh cub/block/block_load.cuh
    cub/block/block_reduce.cuh cub/block/block_scan.cuh cub/block/block_store.cuh cub/block/block_radix_sort.cuh
    cub/warp/warp_reduce.cuh cub/warp/warp_scan.cuh float.h limits.h math.h stdint.h stddef.h cfloat climits
    cmath cstdint cstddef
""".split()
)

_RESERVED = """
    __global__ __device__ __shared__ __constant__ __restrict__ __restrict __forceinline__ __noinline__
    __inline__ __launch_bounds__ __cluster_dims__ __maxnreg__ __block_size__ __align__ __builtin_align__
    __grid_constant__ __nv_pure__ __CUDA_ARCH__ __CUDACC__ __cplusplus __half __half2 __nv_bfloat16
    __nv_bfloat162 __nv_fp8_e4m3 __nv_fp8_e5m2 __half_raw __half2_raw __nv_bfloat16_raw __nv_bfloat162_raw
    __VA_ARGS__ __int64 __float128 __int128 __asm__ __volatile__ __syncthreads __syncthreads_count
    __syncthreads_and __syncthreads_or __syncwarp __threadfence __threadfence_block __threadfence_system
    __activemask __all_sync __any_sync __ballot_sync __cvta_generic_to_shared __builtin_assume
    __builtin_assume_aligned __builtin_expect __builtin_unreachable __popc __popcll __clz __clzll __ffs __ffsll
    __brev __brevll __byte_perm __fns __sad __usad __hadd __rhadd __uhadd __urhadd __mul24 __umul24 __mulhi
    __umulhi __mul64hi __umul64hi __dp4a __dp2a_lo __dp2a_hi __saturatef __expf __exp10f __logf __log2f __log10f
    __sinf __cosf __tanf __tanhf __sincosf __powf __reduce_add_sync __reduce_min_sync __reduce_max_sync
    __reduce_and_sync __reduce_or_sync __reduce_xor_sync __match_any_sync __match_all_sync
    __pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior __pipeline_arrive_on __float_as_int
    __float_as_uint __int_as_float __uint_as_float __double_as_longlong __longlong_as_double __double2hiint
    __double2loint __hiloint2double __lows2half2 __highs2half2 __low2half __high2half __low2half2 __high2half2
    __lowhigh2highlow __low2float __high2float __halves2half2 __halves2bfloat162 __bfloat1622float2
    __low2bfloat16 __high2bfloat16 __low2bfloat162 __high2bfloat162 __ushort_as_half __half_as_ushort
    __short_as_half __half_as_short __ushort_as_bfloat16 __bfloat16_as_ushort __short_as_bfloat16
    __bfloat16_as_short __assume
""".split()
_FAMILIES = (
    r"__shfl(?:_up|_down|_xor)?_sync",
    r"__(?:ld|st)(?:g|ca|cg|cs|cv|lu|wb|wt)",
    r"__[fd](?:add|sub|mul|div|ma|maf|rcp|sqrt|rsqrt|maf_ieee|divide)(?:f)?(?:_r[nzud])?",
    r"__(?:float|double|int|uint|ll|ull|half|bfloat16|short|ushort|char|uchar|float2|half2|bfloat162)2"
    r"(?:float|double|int|uint|ll|ull|half|bfloat16|short|ushort|char|uchar|float2|half2|bfloat162|bfloat16)(?:_r[nzud]|_rna)?",
    r"__(?:float2half2|float2bfloat162|half2half2|bfloat162bfloat162)(?:_rn)?",
    r"__floats2(?:half2|bfloat162)_rn",
    r"__h(?:add|sub|mul|fma|div|neg|abs|max|min|eq|ne|gt|ge|lt|le|isnan|isinf|add2|sub2|mul2|fma2|neg2|abs2|max2|min2"
    r"|2div|eq2|ne2|gt2|ge2|lt2|le2|isnan2|beq2|bne2|bgt2|bge2|blt2|ble2|fma_relu|fma2_relu|cmadd"
    r"|max_nan|min_nan|max2_nan|min2_nan|gtu|geu|ltu|leu|equ|neu)(?:_sat|_rn|_mask)?",
    r"__v(?:abs|abss|add|adds|addus|avg|cmp\w+|max|min|neg|negs|sad|set\w+|sub|subs|subus|i\w+)[su]*[24]",
    r"__funnelshift_[lr]c?",
    r"__nv_cvt_\w+",
    r"__mbarrier_\w+",
)
_RESERVED_NAME = re.compile("|".join((*map(re.escape, _RESERVED), *_FAMILIES)))
_IS_RESERVED = re.compile(r"__\w*|_[A-Z]\w*|\w+__\w*")
_API = re.compile(r"(?:cuda|cu|nvrtc|nvml|cublas|cudnn|cufft|curand|cusparse)[A-Z_]\w*|cublas\w*|curand\w*|thrust")
_API_TYPES = frozenset(
    """
    cudaTextureObject_t cudaSurfaceObject_t cudaReadModeElementType cuFloatComplex cuDoubleComplex cuComplex
    cudaBoundaryModeZero cudaBoundaryModeClamp cudaBoundaryModeTrap cuda_std cuCadd cuCaddf cuCsub cuCsubf
    cuCmul cuCmulf cuCdiv cuCdivf cuCabs cuCabsf cuCreal cuCrealf cuCimag cuCimagf cuConj cuConjf cuCfma cuCfmaf
    CUtensorMap
""".split()
)


def is_reserved(name: str) -> bool:
    """Whether C++ keeps the name for the compiler."""
    return bool(_IS_RESERVED.fullmatch(name))


def is_known_reserved(name: str) -> bool:
    """Whether a reserved name is one of CUDA's that a kernel may use."""
    return bool(_RESERVED_NAME.fullmatch(name))


def is_runtime_api(name: str) -> bool:
    """Whether the name is one of the CUDA runtime's, the driver's or a host library's."""
    return bool(_API.fullmatch(name)) and name not in _API_TYPES


NAMES_OF_CUDA = frozenset(
    """
    threadIdx blockIdx blockDim gridDim warpSize half half2 nv_bfloat16 nv_bfloat162 float2 float3 float4 int2
    int3 int4 uint2 uint3 uint4 double2 double4 dim3 fmaf fma sqrtf rsqrtf expf exp logf log powf pow tanhf erff
    fabsf fmaxf fminf max min atomicAdd atomicMax atomicMin atomicCAS atomicExch cooperative_groups nvcuda cuda
    cub size_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
""".split()
)
KEYWORDS = frozenset(
    """
    alignas alignof asm auto bool break case catch char class const const_cast constexpr consteval constinit
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept nullptr operator private protected public
    register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while defined and or not xor bitand bitor compl
""".split()
)

INSTRUCTIONS = frozenset(
    """
    mma wmma wgmma ldmatrix stmatrix movmatrix cp shfl vote match redux activemask elect ld ldu st atom red cvta
    prefetch mbarrier fence membar bar barrier mov cvt add sub mul mad mul24 mad24 fma div rem abs neg min max
    and or xor not cnot shl shr shf lop3 prmt bfe bfi bfind brev clz popc fns dp2a dp4a ex2 lg2 rcp rsqrt sqrt
    sin cos tanh selp set setp slct copysign testp sad addc subc madc setmaxnreg
""".split()
)
MEMORY_INSTRUCTIONS = frozenset("ldmatrix stmatrix wmma wgmma cp ld ldu st atom red cvta prefetch mbarrier".split())
FREE_OF_MEMORY_SPACE = frozenset("cvta mbarrier ldmatrix stmatrix".split())

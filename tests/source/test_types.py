"""Element types: sizes and signs as the CUDA headers define them on LP64."""

import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.source import Param, parse


def param(declaration: str, before: str = "", template: str = "") -> Param:
    file = parse(f"{before}\n{template} __global__ void k({declaration}) {{}}\n", "a.cu")
    (kernel,) = file.kernels
    assert len(kernel.params) == 1
    return kernel.params[0]


@pytest.mark.parametrize(
    ("spelling", "dtype", "lanes"),
    [
        ("bool", DType.BOOL, 1),
        ("char", DType.INT8, 1),
        ("signed char", DType.INT8, 1),
        ("unsigned char", DType.UINT8, 1),
        ("short", DType.INT16, 1),
        ("unsigned short int", DType.UINT16, 1),
        ("int", DType.INT32, 1),
        ("signed", DType.INT32, 1),
        ("unsigned", DType.UINT32, 1),
        ("unsigned int", DType.UINT32, 1),
        ("int unsigned", DType.UINT32, 1),
        ("long", DType.INT64, 1),
        ("long long", DType.INT64, 1),
        ("long long int", DType.INT64, 1),
        ("unsigned long", DType.UINT64, 1),
        ("unsigned long long", DType.UINT64, 1),
        ("long unsigned int", DType.UINT64, 1),
        ("int8_t", DType.INT8, 1),
        ("uint8_t", DType.UINT8, 1),
        ("int16_t", DType.INT16, 1),
        ("std::uint16_t", DType.UINT16, 1),
        ("::std::int32_t", DType.INT32, 1),
        ("uint32_t", DType.UINT32, 1),
        ("int64_t", DType.INT64, 1),
        ("uint64_t", DType.UINT64, 1),
        ("size_t", DType.UINT64, 1),
        ("uint", DType.UINT32, 1),
        ("float", DType.FLOAT32, 1),
        ("double", DType.FLOAT64, 1),
        ("half", DType.FLOAT16, 1),
        ("__half", DType.FLOAT16, 1),
        ("__nv_bfloat16", DType.BFLOAT16, 1),
        ("nv_bfloat16", DType.BFLOAT16, 1),
        ("half2", DType.FLOAT16, 2),
        ("__half2", DType.FLOAT16, 2),
        ("__nv_bfloat162", DType.BFLOAT16, 2),
        ("float4", DType.FLOAT32, 4),
        ("double2", DType.FLOAT64, 2),
        ("int3", DType.INT32, 3),
        ("uchar4", DType.UINT8, 4),
        ("ulonglong2", DType.UINT64, 2),
    ],
)
def test_scalar_and_vector_spellings(spelling: str, dtype: DType, lanes: int) -> None:
    pointer = param(f"const {spelling} *x")
    assert (pointer.dtype, pointer.lanes, pointer.is_pointer, pointer.is_const) == (dtype, lanes, True, True)
    assert pointer.unsupported is None
    value = param(f"{spelling} x")
    assert (value.name, value.dtype, value.is_pointer) == ("x", dtype, False)
    assert (value.unsupported is None) == (lanes == 1)


@pytest.mark.parametrize(
    "declaration",
    [
        "const float *x",
        "float const *x",
        "const float* __restrict__ x",
        "const float *const __restrict__ x",
        "const float * const x",
        "const volatile float *x",
        "const float x[]",
        "const float x[16]",
        "const float x[][4]",
        "const __grid_constant__ fptr x",
        "const float *x = nullptr",
    ],
)
def test_pointers_to_const(declaration: str) -> None:
    got = param(declaration, before="typedef const float *fptr;")
    assert (got.name, got.dtype, got.is_pointer, got.is_const) == ("x", DType.FLOAT32, True, True)
    assert got.unsupported is None


@pytest.mark.parametrize("declaration", ["float *x", "float *const x", "float *const __restrict__ x", "float x[]"])
def test_pointers_to_what_may_be_written(declaration: str) -> None:
    got = param(declaration)
    assert (got.is_pointer, got.is_const, got.unsupported) == (True, False, None)


@pytest.mark.parametrize(
    ("before", "dtype"),
    [
        ("typedef float floatX;", DType.FLOAT32),
        ("using floatX = __nv_bfloat16;", DType.BFLOAT16),
        ("#define floatX half", DType.FLOAT16),
        ("typedef unsigned int u; typedef u v; using floatX = v;", DType.UINT32),
        ("#if A\ntypedef double floatX;\n#else\ntypedef float floatX;\n#endif", DType.FLOAT64),
        ("// typedef double floatX;\ntypedef float floatX;", DType.FLOAT32),
        ("using floatX = floatX;", None),
        ("using floatX = other; using other = floatX;", None),
    ],
)
def test_aliases_in_the_file(before: str, dtype: DType | None) -> None:
    assert param("const floatX *x", before=before).dtype == dtype


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("Params p", "`Params`"),
        ("const struct Params p", "`Params`"),
        ("Params *p", "`Params`"),
        ("float **p", "pointer to pointers"),
        ("float *p[4]", "pointer to pointers"),
        ("float &p", "reference"),
        ("float (&p)[3]", "reference to an array"),
        ("void (*p)(int)", "function pointer"),
        ("cudaTextureObject_t *p", "texture"),
        ("cudaSurfaceObject_t p", "surface"),
        ("void *p", "void"),
        ("float4 p", "4 lanes"),
        ("std::array<float, 4> p", "array"),
        ("long double p", "long double"),
    ],
)
def test_reasons_for_unsupported(declaration: str, reason: str) -> None:
    got = param(declaration, before="struct Params { int n; };")
    assert got.name == "p"
    assert got.unsupported is not None
    assert reason in got.unsupported


def test_template_types_and_packs() -> None:
    got = param("const T *__restrict__ x", template="template <typename T>")
    assert (got.is_template_type, got.dtype, got.is_pointer, got.unsupported) == ("T", None, True, None)
    pack = param("Ts... x", template="template <class... Ts>")
    assert pack.unsupported is not None
    assert "pack" in pack.unsupported


@pytest.mark.parametrize(("declaration", "type_text"), [("int", "int"), ("float *", "float *"), ("const T", "const T")])
def test_unnamed(declaration: str, type_text: str) -> None:
    got = param(declaration)
    assert (got.name, got.type_text) == ("", type_text)


def test_no_parameters() -> None:
    assert parse("__global__ void a() {}\n__global__ void b(void) {}", "a.cu").kernels[1].params == ()

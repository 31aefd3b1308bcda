"""Shared arrays and device globals, read off the sources by hand."""

import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.source import parse


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("__shared__ float s[32];", [("s", False)]),
        ("__shared__ float a[32][33], b, *c;", [("a", False), ("b", False), ("c", False)]),
        ("extern __shared__ float s[];", [("s", True)]),
        ("extern __shared__ __align__(16) unsigned char s[];", [("s", True)]),
        ("extern __shared__ alignas(16) char s[];", [("s", True)]),
        ("static __shared__ std::array<int, 2> s;", [("s", False)]),
        ("__shared__ typename S<T, N>::type s;", [("s", False)]),
        ("float __shared__ s[/* ; */ 32];", [("s", False)]),
        ("__shared__ alignas(alignof(float4)) float s[4 * N];", [("s", False)]),
        ("// __shared__ float s[32];", []),
    ],
)
def test_shared(declaration: str, expected: list[tuple[str, bool]]) -> None:
    file = parse(f"template <int N> __global__ void k() {{\n  {declaration}\n}}\n", "a.cu")
    assert [(s.name, s.dynamic) for s in file.shared] == expected
    for array in file.shared:
        assert array.kernel == "k"
        assert file.text[file.offset(array.range.start) : file.offset(array.range.end)] == array.name


def test_shared_in_a_half_typed_kernel() -> None:
    file = parse("__global__ void k(int n) {\n  __shared__ float s[2];\n  if (n > {\n", "a.cu")
    assert [(s.name, s.kernel) for s in file.shared] == [("s", "k")]


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("__constant__ float c[16];", [("c", DType.FLOAT32, 1, ("16",), "constant")]),
        ("__constant__ float c[N][2 * N] = {{1}};", [("c", DType.FLOAT32, 1, ("N", "2 * N"), "constant")]),
        ("__device__ unsigned int n = 0;", [("n", DType.UINT32, 1, (), "device")]),
        (
            "static __device__ int a[2], b;",
            [("a", DType.INT32, 1, ("2",), "device"), ("b", DType.INT32, 1, (), "device")],
        ),
        ("__device__ __managed__ int m;", [("m", DType.INT32, 1, (), "managed")]),
        ("__device__ __constant__ float4 t[3];", [("t", DType.FLOAT32, 4, ("3",), "constant")]),
        ("__constant__ real c[4];", [("c", DType.FLOAT64, 1, ("4",), "constant")]),
        ("__constant__ Params p;", [("p", None, 1, (), "constant")]),
        ("__device__ float *p;", [("p", None, 1, (), "device")]),
        ("namespace a { __constant__ int c; }", [("c", DType.INT32, 1, (), "constant")]),
        ("extern __constant__ int c[];", [("c", DType.INT32, 1, ("",), "constant")]),
        ("__device__ int f(int x);", []),
        ("__device__ int f(int x) { return x; }", []),
        ("template <class T> __device__ T f(T x) { return x; }", []),
        ("struct S { __device__ S(); __device__ int g() const; int n; };", []),
        ("void f() { auto l = [] __device__(int i) { return i; }; }", []),
        ("// __constant__ float c[16];", []),
        ("#define C __constant__ int x;", []),
    ],
)
def test_symbols(declaration: str, expected: list[tuple[str, DType | None, int, tuple[str, ...], str]]) -> None:
    file = parse(f"typedef double real;\n{declaration}\n", "a.cu")
    assert [(s.name, s.dtype, s.lanes, s.shape_texts, s.space) for s in file.symbols] == expected
    for symbol in file.symbols:
        assert file.text[file.offset(symbol.range.start) : file.offset(symbol.range.end)] == symbol.name

"""Kernels: expected values are read off the sources by hand, by the rules of CUDA C++."""

import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.text import Position, Range
from kernel_forge.source import Kernel, SourceFile, parse


def text_at(file: SourceFile, where: Range) -> str:
    return file.text[file.offset(where.start) : file.offset(where.end)]


def only(text: str) -> tuple[SourceFile, Kernel]:
    file = parse(text, "a.cu")
    assert len(file.kernels) == 1, [k.name for k in file.kernels]
    return file, file.kernels[0]


def test_ranges_cover_what_they_name() -> None:
    text = "int a;\n__global__ void add(const float *x, int n) {\n  x[0];\n}\nint b;\n"
    file, kernel = only(text)
    assert text_at(file, kernel.name_range) == "add"
    assert text_at(file, kernel.signature_range) == "__global__ void add(const float *x, int n)"
    assert kernel.body_range is not None
    assert text_at(file, kernel.body_range) == "{\n  x[0];\n}"
    assert text_at(file, kernel.range) == text[7:-8]
    assert [text_at(file, p.range) for p in kernel.params] == ["const float *x", "int n"]


@pytest.mark.parametrize(
    "header",
    [
        "__global__ void k(int n)",
        "void __global__ k(int n)",
        "static __global__ void k(int n)",
        "__global__ static void k(int n)",
        "__global__\nvoid\nk\n(\nint n\n)",
        "__global__ /* c; { */ void k(int n) // d;",
        "__global__ auto k(int n) -> void",
        "[[maybe_unused]] __global__ void k(int n)",
        "__attribute__((noinline)) __global__ void k(int n)",
        "__global__ void __attribute__((noinline)) k(int n)",
        "__global__ void LIMITS(256) k(int n)",
        "__global__ void __maxnreg__(32) k(int n)",
        "inline __global__ void k(int n) noexcept",
        "template <typename T> __global__ void k(int n)",
        "template <int N = (3 > 2)> __global__ void k(int n)",
        "template <class T> requires true __global__ void k(int n)",
    ],
)
def test_header_forms(header: str) -> None:
    file, kernel = only(f"int before() {{ return 1; }}\n{header}\n{{ int i = n; }}\nint after;\n")
    assert kernel.name == "k"
    assert [(p.name, p.dtype) for p in kernel.params] == [("n", DType.INT32)]
    assert kernel.body_range is not None
    assert text_at(file, kernel.body_range) == "{ int i = n; }"


@pytest.mark.parametrize(
    ("header", "bounds", "cluster"),
    [
        ("__global__ void __launch_bounds__(256) k()", ("256",), ()),
        ("__global__ __launch_bounds__(B, 2) void k()", ("B", "2"), ()),
        ("__launch_bounds__(B * (2 + 1), 2, 1) __global__ void k()", ("B * (2 + 1)", "2", "1"), ()),
        ("__global__ void __cluster_dims__(2, 1, 1) k()", (), ("2", "1", "1")),
        ("__global__ void __cluster_dims__(2) __launch_bounds__(128) k()", ("128",), ("2",)),
        ("__cluster_dims__(4) __global__ void k()", (), ("4",)),
    ],
)
def test_attributes(header: str, bounds: tuple[str, ...], cluster: tuple[str, ...]) -> None:
    file, kernel = only(f"int x;\n{header} {{}}")
    assert (kernel.launch_bounds, kernel.cluster_dims) == (bounds, cluster)
    assert text_at(file, kernel.signature_range) == header


def test_template_params() -> None:
    _, kernel = only(
        "template <typename T, int N = 4, bool F = (1 > 0), class U = float, unsigned>\n__global__ void k(T *x, U u) {}"
    )
    got = [(t.name, t.kind, t.type_text, t.default) for t in kernel.template_params]
    assert got == [
        ("T", "type", "typename", None),
        ("N", "value", "int", "4"),
        ("F", "value", "bool", "(1 > 0)"),
        ("U", "type", "class", "float"),
        ("", "value", "unsigned", None),
    ]
    assert [(p.is_template_type, p.dtype, p.unsupported) for p in kernel.params] == [
        ("T", None, None),
        ("U", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "name", "extern_c"),
    [
        ("namespace a { namespace b::c { __global__ void k() {} } }", "a::b::c::k", False),
        ("namespace a { namespace { __global__ void k() {} } }", "a::k", False),
        ("__global__ void a::b::k() {}", "a::b::k", False),
        ('extern "C" __global__ void k() {}', "k", True),
        ('extern "C" {\n__global__ void k() {}\n}', "k", True),
        ('extern "C++" {\n__global__ void k() {}\n}', "k", False),
        ('#define KERNEL extern "C" __global__\nKERNEL void k() {}', "k", True),
        ("#define KERNEL __global__\nKERNEL void k() {}", "k", False),
        ('extern "C" { __global__ void k(); }\n__global__ void k() {}', "k", True),
    ],
)
def test_scope_and_linkage(text: str, name: str, extern_c: bool) -> None:
    _, kernel = only(text)
    assert (kernel.qualified_name, kernel.extern_c) == (name, extern_c)
    assert kernel.name == "k"


def test_definition_wins_over_declarations() -> None:
    _, kernel = only("__global__ void k(int n);\n__global__ void k(int m) {}\n__global__ void k(int);\n")
    assert kernel.body_range is not None
    assert kernel.range.start == Position(1, 0)
    assert kernel.params[0].name == "m"
    _, declared = only("__global__ void k(int n);")
    assert declared.body_range is None


def test_overloads_stay_and_specialisations_go() -> None:
    text = (
        "template <class T> __global__ void k(T *x) {}\n"
        "template <> __global__ void k<int>(int *x) {}\n"
        "template __global__ void k<float>(float *x);\n"
        "__global__ void o(int n) {}\n__global__ void o(float n) {}\n"
    )
    file = parse(text, "a.cu")
    assert [(k.name, k.range.start.line) for k in file.kernels] == [("k", 0), ("o", 3), ("o", 4)]


def test_kernels_in_preprocessor_branches() -> None:
    text = (
        "#ifdef A\n__global__ void k1() {}\n#elif B\n__global__ void k2() {}\n#else\n"
        "__global__ void k3() {}\n#endif\n"
        "#if 0\n__global__ void k4() {}\n#endif\n"
    )
    assert [k.name for k in parse(text, "a.cu").kernels] == ["k1", "k2", "k3", "k4"]


def test_directives_inside_a_parameter_list() -> None:
    _, kernel = only("__global__ void k(float *x,\n#ifdef A\n  short w,\n#endif\n  int n) {}")
    assert [(p.name, p.dtype) for p in kernel.params] == [
        ("x", DType.FLOAT32),
        ("w", DType.INT16),
        ("n", DType.INT32),
    ]


def test_what_is_no_kernel() -> None:
    text = (
        "// __global__ void a() {}\n/* __global__ void b() {} */\n"
        'const char *s = "__global__ void c() {}";\nconst char *r = R"(\n__global__ void d() {}\n)";\n'
        "#define MAKE(n) __global__ void n() {}\n__device__ void e() {}\nint __global__x;\n"
    )
    assert parse(text, "a.cu").kernels == ()


def test_docs_are_the_comment_above() -> None:
    file = parse(
        "// far\n\n// Adds é.\n// Twice.\n__global__ void a() {}\n"
        "/** One\n *  two */\n__global__ void b() {}\n"
        "// before\n// /// kernel-forge\n// kernel = 'c'\n// ///\n// after\n__global__ void c() {}\n",
        "a.cu",
    )
    assert [k.docs for k in file.kernels] == ["Adds é.\nTwice.", "One\ntwo", "before\nafter"]


def test_half_typed_code_keeps_the_others() -> None:
    text = "__global__ void a(int n) { n = ; if ( }\n__global__ void b(float *\n__global__ void c(int m) {}\n"
    assert [k.name for k in parse(text, "a.cu").kernels if k.name != "b"] == ["a", "c"]


def test_unclosed_body_ends_before_the_next_kernel() -> None:
    file = parse("__global__ void a() { if (1) {\n__global__ void b(int n) {}\n", "a.cu")
    a, b = file.kernels
    assert (a.name, b.name) == ("a", "b")
    assert a.range.end <= b.range.start

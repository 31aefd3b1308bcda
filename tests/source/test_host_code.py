"""Host ranges: CUDA's own rules say what runs where; nvcc accepts what is left, where there is an nvcc."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel_forge.source import parse

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
REALISTIC = Path(__file__).with_name("realistic.cu")


def blanked(text: str) -> str:
    out = text
    for start, end in parse(text, "a.cu").host_ranges:
        out = out[:start] + re.sub(r"[^\r\n]", " ", out[start:end]) + out[end:]
    assert len(out) == len(text)
    return out


GONE = [
    "int main() { return 0; }",
    "void f() { k<<<1, 2>>>(); }",
    "static inline int f(int a) { return a; }",
    "__host__ int f(int a) { return a; }",
    "template <typename T> T f(T a) { return a; }",
    "template <typename T> static std::vector<T> f(int n) { return std::vector<T>(n); }",
    'extern "C" void f() {}',
    "int *f() { return nullptr; }",
    "const char *f() { return nullptr; }",
    "std::string &f(std::string &s) { return s; }",
    "auto f() -> int { return 1; }",
    "void f() { auto l = [=] __device__(int i) { return i; }; }",
    "void S::f() { n = 1; }",
    "std::ostream &operator<<(std::ostream &o, const S &s) { return o; }",
    "int f(int);",
    "static void f(const char *format, ...);",
    "static int counter = 0;",
    "std::vector<float> buffer;",
    "float *pointer = nullptr, other;",
    'extern "C" int f(int);',
]
STAYS = [
    "__global__ void f() {}",
    "__device__ int f(int a) { return a; }",
    "__host__ __device__ int f(int a) { return a; }",
    "template <typename T> __device__ T f(T a) { return a; }",
    "template <typename T> __global__ void f(T *a) {}",
    "constexpr int f(int a) { return a; }",
    'extern "C" __global__ void f() {}',
    "__constant__ float c[4];",
    "__device__ int d = 0;",
    "__managed__ int m;",
    "const int n = 4;",
    "static constexpr float n = 4;",
    "struct S { int n; int f() { return n; } };",
    "struct S { int n; } s;",
    "enum E { A, B };",
    "enum class E : int { A } e;",
    "typedef struct { int n; } S;",
    "using T = float;",
    "using namespace std;",
    "static_assert(sizeof(int) == 4);",
    "#define F(x) x",
    "template <typename T> struct S { T x; };",
    "template <typename T> constexpr T v = T(1);",
    "MAKE_KERNEL(f) { return; }",
    "MAKE_KERNEL(f);",
    "struct S;",
    "#define KERNEL __global__\nKERNEL void f() {}",
    "#define DEVICE __forceinline__ __device__\nDEVICE int f(int a) { return a; }",
    'asm("");',
]
AROUND = [
    "{}",
    "namespace a {{\n{}\n}}",
    "namespace {{\n{}\n}}",
    "#ifdef X\n{}\n#endif",
    'extern "C" {{\n{}\n}}',
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("code", GONE)
def test_host_code_goes(code: str, around: str) -> None:
    left = blanked(around.format(code))
    assert left.split() == around.format("").split()


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("code", STAYS)
def test_everything_else_stays(code: str, around: str) -> None:
    text = around.format(code)
    assert blanked(text) == text


@pytest.mark.parametrize(
    "user",
    [
        "struct S { int f() { return h(); } };",
        "const int n = h();",
        "__host__ __device__ int f() { return h(); }",
        "#define CALL h()\nstruct S { int f() { return CALL; } };",
        "#define INNER(x) h() + x\n#define CALL INNER(1)\nstruct S { int f() { return CALL; } };",
        "S::S() { h(); }",
        '#include "uses_h.cuh"',
    ],
)
def test_what_the_rest_needs_stays(user: str) -> None:
    helpers = "int g() { return 1; }\nint h() { return g(); /* unused */ }\nint unused() { return h(); }\n"
    text = f"{helpers}{user}\n"
    left = blanked(text)
    assert "int g() { return 1; }" in left
    assert "int h() { return g(); /*" in left
    assert ("int unused" in left) == ("include" in user)


def test_a_name_in_device_code_or_a_comment_is_no_use() -> None:
    text = "int h() { return 1; }\n__global__ void k(int *h) { h[0] = 1; }\n// h()\n#define UNUSED h()\n"
    assert "int h" not in blanked(text).replace("int *h", "")


def test_instantiations_go_with_their_template() -> None:
    text = (
        "template <class T> void f(T x) { k<T><<<1, 1>>>(x); }\ntemplate void f<int>(int);\n"
        "template <> void f<char>(char);\n"
    )
    assert blanked(text).split() == []
    kernel = "template <class T> __global__ void k(T *x) {}\ntemplate __global__ void k<int>(int *);\n"
    assert blanked(kernel) == kernel


def test_broken_host_code_takes_no_kernel_with_it() -> None:
    for middle in ("void f() { if (x { }", "void f() { {", "void f(", "int x = ", "void f() } {"):
        text = f"{middle}\n__global__ void k(int n) {{ n = 1; }}\n"
        assert "__global__ void k(int n) { n = 1; }" in blanked(text)


@pytest.mark.parametrize(
    "before",
    [
        "MACRO(a)",
        "MACRO",
        "MACRO(a)\nMACRO(b)",
        "int x = ",
        "struct S {",
        "foo(",
        "#define A {",
        "amespace a {",
    ],
)
@pytest.mark.parametrize(
    "code",
    [
        "__global__ void f(int n) { n = 1; }",
        "__device__ int f(int n) { return n; }",
        "template <class T> __device__ T f(T n) { return n; }",
        "__device__ int d[4];",
    ],
)
def test_device_code_stays_whole_after_something_odd(before: str, code: str) -> None:
    for around in ("{}", "namespace a {{\n{}\n}}", "namespace a {{\n{}\n", "}}\n{}\n"):
        text = around.format(f"{before}\n{code}\n{code.replace(' f(', ' g(')}")
        assert code in blanked(text)
        assert code.replace(" f(", " g(") in blanked(text)


def test_lines_stay_where_they_are() -> None:
    text = "int main() {\r\n  return 0;\r\n}\r\n__global__ void k() {}\r\n"
    assert blanked(text).count("\r\n") == 4
    assert blanked(text).endswith("}\r\n")


def test_realistic_file() -> None:
    left = blanked(REALISTIC.read_text(encoding="utf-8"))
    for gone in ("main", "upload", "host_buffer", "printf"):
        assert gone not in left
    for kept in (
        "struct Problem",
        "blocks_for",
        "weights[16]",
        "finished",
        "warp_sum",
        "row_sum",
        "narrow",
        "mark",
    ):
        assert kept in left


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="no nvcc")
def test_nvcc_compiles_what_is_left(tmp_path: Path) -> None:
    source = tmp_path / "left.cu"
    source.write_text(blanked(REALISTIC.read_text(encoding="utf-8")), encoding="utf-8")
    command = [str(NVCC), "-ptx", "-arch=sm_90", "-std=c++17", "-o", str(tmp_path / "left.ptx"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "mark" in (tmp_path / "left.ptx").read_text(encoding="utf-8")

"""What the host compiler gets to see of CUDA's own syntax."""

import pytest

from kernel_forge.devices.emulator.rewrite import NOT_EMULATED, rewrite


def rewritten(text: str) -> str:
    return rewrite(text, lambda name, quoted, line: None).text


def in_kernel(code: str) -> str:
    """``code`` as it is rewritten inside of a kernel."""
    head, tail = "__global__ void k() {", "}"
    text = rewritten(head + code + tail)
    assert text.startswith(head) and text.endswith(tail)
    return text[len(head) : -len(tail)]


def variable(declaration: str, name: str, align: str = "") -> str:
    """The declaration of a shared variable of the running block, see kf_abi.h."""
    return (
        f"typedef {declaration}; static char kf_key_{name}; kf_shared_{name}& {name} = "
        f'*reinterpret_cast<kf_shared_{name}*>(kf_shared_variable(&kf_key_{name}, "{name}", '
        f"sizeof(kf_shared_{name}), kf::largest(alignof(kf_shared_{name}){align})));"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("__shared__ float s[4][32 + 1];", variable("float kf_shared_s[4][32 + 1]", "s")),
        ("__shared__ int n;", variable("int kf_shared_n", "n")),
        ("static __shared__ T* p;", variable("T* kf_shared_p", "p")),
        ("float __shared__ s[2];", variable("float kf_shared_s[2]", "s")),
        ("__shared__ __align__(16) char s[8];", variable("char kf_shared_s[8]", "s", " , size_t(16)")),
        ("alignas(sizeof(T)) __shared__ T s[8];", variable("T kf_shared_s[8]", "s", " , size_t(sizeof(T))")),
        ("__shared__ A<B<C>> s[2];", variable("A<B<C>> kf_shared_s[2]", "s")),
        ("__shared__ typename T::type s /* why */ [2];", variable("typename T::type kf_shared_s [2]", "s")),
        ("extern __shared__ float s[];", "float* s = reinterpret_cast<float*>(kf_dynamic_shared());"),
        ("extern __shared__ __align__(16) unsigned char s[];",
         "unsigned char* s = reinterpret_cast<unsigned char*>(kf_dynamic_shared());"),
        ("extern __shared__ T s[][N];", "T (*s)[N] = reinterpret_cast<T (*)[N]>(kf_dynamic_shared());"),
        ("case 1: __shared__ int n;", "case 1:" + variable("int kf_shared_n", "n")),
    ],
)  # fmt: skip
def test_shared_memory(code: str, expected: str) -> None:
    assert in_kernel(code).replace("case 1: ", "case 1:") == expected


def test_several_shared_variables_of_one_declaration() -> None:
    text = in_kernel("__shared__ float a[2], b;")
    assert text.startswith("typedef float kf_shared_a[2], kf_shared_b;")
    assert "kf_shared_a& a = " in text and "kf_shared_b& b = " in text


@pytest.mark.parametrize(
    "head",
    [
        "template <class T> __global__ void k(T* p) {",
        "template <int N, template <class> class A>\n__global__ void __launch_bounds__(64) k() {",
        "struct P f(struct Q q) {",
        'extern "C" __global__ void k() {',
        'namespace n { extern "C" { void k() {',
        "struct alignas(16) S { void f() const {",
        "auto f = [](class T* t) {",
    ],
)
def test_what_a_function_is(head: str) -> None:
    """Shared arrays of functions are guarded and poisoned; a `class` in the head does not make it a class."""
    assert "kf_shared_variable" in rewritten(head + " __shared__ float s[4];")


@pytest.mark.parametrize("scope", ["", "namespace n {", 'extern "C" {', "#define X\n"])
def test_shared_arrays_of_a_namespace_are_set_before_a_kernel_runs(scope: str) -> None:
    static = rewrite(scope + "__shared__ float s[4][2];", lambda name, quoted, line: None)
    assert static.text.endswith("static thread_local std::remove_extent_t<kf_shared_s>* s;")
    (setting,) = static.settings
    assert setting.startswith("s = *reinterpret_cast<kf_shared_s*>(kf_shared_variable(&kf_key_s")
    dynamic = rewrite(scope + "extern __shared__ T s[];", lambda name, quoted, line: None)
    assert dynamic.text.endswith("static thread_local T* s;")
    assert dynamic.settings == ["s = reinterpret_cast<T*>(kf_dynamic_shared());"]


@pytest.mark.parametrize(
    "code",
    ["__shared__ float s;", "__shared__ float a[2], b[2];", "void f(__shared__ float* p) {}",
     "void f() { __shared__ float\n#ifdef X\n s[2];\n#else\n s[4];\n#endif\n}", "__shared__"],
)  # fmt: skip
def test_what_cannot_be_translated_is_named_to_the_compiler(code: str) -> None:
    """It must not become a plain variable, which nobody guards or poisons."""
    assert f"{NOT_EMULATED}shared_memory" in rewritten(code)


PTX = 'kf_unsupported("inline PTX", __builtin_LINE(), __builtin_FILE())'
LAUNCH = 'kf_unsupported("a kernel launch from device code", __builtin_LINE(), __builtin_FILE())'


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('asm("x;");', PTX + ";"),
        ('asm volatile("{ mov.u32 %0, (1); }" : "=r"(a[f(1)]) : "r"(b));', PTX + ";"),
        ('__asm__ __volatile__("");', PTX + ";"),
        ("k<<<1, 2>>>(a, f(b));", LAUNCH + ";"),
        ("n::k<T, (3 > 2)><<<dim3(1, 2), 64, 0, s>>>(a);", LAUNCH + ";"),
        ("if (i) k<<<g, b>>>();", f"if (i) {LAUNCH};"),
        ("x <<= 2; y >>= 3; v<w<x<int>>> z;", "x <<= 2; y >>= 3; v<w<x<int>>> z;"),
    ],
)
def test_what_the_emulator_lacks_says_so_when_it_runs(code: str, expected: str) -> None:
    assert in_kernel(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        '"__shared__ int a; asm(1); k<<<1, 1>>>()"',
        'R"d(__shared__ int a; )" )d"',
        "/* __shared__ int a; */",
        '// asm("") \\\n __shared__ int a;\n',
        "'\"'; '\\''",
        "1'000'000",
        "my__shared__ x; asmx y;",
    ],
)
def test_what_only_looks_like_it_stays(code: str) -> None:
    assert in_kernel(code) == code


def test_noinline_is_an_attribute_but_not_inside_one() -> None:
    assert rewritten("__noinline__ void f();") == "__attribute__((noinline)) void f();"
    assert rewritten("__attribute__((__noinline__)) void f();") == "__attribute__((__noinline__)) void f();"


def test_includes_are_offered_with_their_line() -> None:
    seen = []

    def hook(name: str, quoted: bool, line: int) -> str | None:
        seen.append((name, quoted, line))
        return None

    text = '#include <a.h>\n  # include "b c.h" // x\n/* y\n */ #include /* z\n*/ "d.h"\r\n'
    text += '// #include "no.h"\n"#include <no>"'
    assert rewrite(text, hook).text == text
    assert seen == [("a.h", False, 0), ("b c.h", True, 1), ("d.h", True, 4)]

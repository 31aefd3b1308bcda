"""CUDA's syntax in the bodies of macros."""

import pytest

from kernel_forge.devices.emulator.rewrite import NOT_EMULATED, rewrite


def rewritten(text: str, aliases: dict[str, str] | None = None) -> str:
    return rewrite(text, lambda name, quoted, line: None, aliases).text


def test_a_declaration_in_a_macro_pastes_its_parameters() -> None:
    text = rewritten("#define SMEM(T, n, N) __shared__ T n[N]\n")
    assert text == (
        "#define SMEM(T, n, N) typedef T kf_shared_##n[N]; static char kf_key_##n; kf_shared_##n& n = "
        "*reinterpret_cast<kf_shared_##n*>([&] { return kf_shared_variable(&kf_key_##n, #n, "
        "sizeof(kf_shared_##n), kf::largest(alignof(kf_shared_##n))); }());\n"
    )


def test_the_other_words_of_the_body_stay() -> None:
    text = rewritten('#define GO(x) int a = x; asm volatile("y" :: "r"(x)); f("a  b", #x, x##1)\n')
    asm = 'kf_unsupported("inline PTX", __builtin_LINE(), __builtin_FILE())'
    assert text == f'#define GO(x) int a = x; {asm}; f("a  b", #x, x##1)\n'


@pytest.mark.parametrize("text", ["#define STR(x) #x\n", "#define F(x) \\\n  (x + 1) /* asm */\n", "#undef asm\n"])
def test_a_macro_without_cuda_syntax_is_left_alone(text: str) -> None:
    assert rewritten(text) == text


def test_a_body_on_several_lines_keeps_their_number() -> None:
    text = rewritten("#define DYN(T, n) \\\n  extern __shared__ /* a\n b */ T \\\r\n n[];\nint after;")
    assert text.split("\n")[4] == "int after;"
    assert text.startswith("#define DYN(T, n) T* n = reinterpret_cast<T*>([&] { return kf_dynamic_shared(); }());\\\n")


@pytest.mark.parametrize("words", ["__shared__", "static __shared__", "extern __shared__ __align__(16)"])
def test_a_name_for_the_qualifiers_is_understood(words: str) -> None:
    code = "void f() {{ {} float s[]; }}"
    aliases: dict[str, str] = {}
    assert rewritten(f"#define SH {words} // why\n" + code.format("SH"), aliases).endswith(
        rewritten(code.format(words))
    )
    # Another file of the same translation unit knows it too.
    assert rewritten(code.format("SH"), aliases) == rewritten(code.format(words))


@pytest.mark.parametrize(
    "text",
    [
        "#if A\n#define SH __shared__\n#else\n#define SH\n#endif\nvoid f() { SH float s[4]; }",
        "#define SH(T) __shared__ T\nvoid f() { SH(float) s[4]; }",
        "#define SH __shared__ const\n#define SH2 SH float\nvoid f() { SH2 s[4]; }",
    ],
)
def test_half_a_declaration_is_named_to_the_compiler(text: str) -> None:
    assert NOT_EMULATED + "shared_memory" in rewritten(text)
    assert "kf_shared_variable" not in rewritten(text)


def test_half_an_assembly_statement_is_named_to_the_compiler() -> None:
    assert rewritten("#define A asm volatile\n") == f"#define A {NOT_EMULATED}inline_PTX_in_this_place volatile\n"


def test_a_launch_in_a_macro() -> None:
    text = rewritten("#define GO(k, ...) k<<<1, 32>>>(__VA_ARGS__)\n")
    what = "a kernel launch from device code"
    assert text == f'#define GO(k, ...) kf_unsupported("{what}", __builtin_LINE(), __builtin_FILE())\n'

"""Line N of the rewritten text is line N of the source, whatever the source is."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_forge.devices.emulator.rewrite import rewrite
from kernel_forge.devices.includes import replace_includes
from kernel_forge.devices.lexer import lex

# What has a meaning for the lexer or the rewriter, whole and broken.
PIECES = (
    "__shared__ float s[32];",
    "__shared__\nfloat s\n[32]\n;",
    "extern __shared__ T s[];",
    "extern\n__shared__ /* x\n */ float4 s[][\n4];",
    "__shared__ union { int i;\nfloat f; } u, *v;",
    "__shared__ a::b<c<d<e>>> s[2], t;",
    "__shared__",
    'asm volatile("bar.sync 0;\\n"\n :: "r"(x));',
    "__asm__",
    "asm(",
    "k<<<1,\n2>>>(a,\nb);",
    "n::k<T, 3><<<dim3(1), 2>>>(a)",
    "<<<",
    ">>>",
    "#define S(T, n) __shared__ T n[4]\n",
    "#define S(T, n) \\\n  __shared__ T \\\n n[4]\n",
    "#define SH __shared__\n",
    "#define A asm \\\r\n(\"x\" /* y\n */)\n",
    "#define STR(x) #x \"a  b\"\n",
    "SH float t[3];",
    '#include "a.h" // why\n',
    "# include <b.h>\\\n\n",
    "/* c */ #include /* d\n */ \"a.h\"\n",
    "#if 0\ndon't \"\n#endif\n",
    "__noinline__",
    "// comment \\\n still\n",
    "/* many\nlines */",
    "/*",
    '"string \\" \\\n more"',
    '"open',
    'R"x(raw " __shared__\n )x"',
    'u8R"(__shared__ int\n a;)"',
    'R"(',
    "'\\''",
    "1'000'000",
    "{", "}", "(", ")", "[", "]", ";", ":", "::", ",", "<", ">", "=", "\\", "#", "?",
    "struct P {", "template <class T> __global__ void k(T* p) {", "namespace n {", 'extern "C" {', "[=](int i) {",
    "case 3:", "name", "é", "\n", "\r\n", "\t", " ", "\f",
)  # fmt: skip
PROGRAMS = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)


def include(name: str, quoted: bool, line: int) -> str | None:
    return {"a.h": '#include "0_a.h"', "b.h": ""}.get(name)


@given(st.one_of(PROGRAMS, st.text(alphabet="\"'\\\n\r/*#R()<>;{}_a1 é", max_size=60)))
@settings(max_examples=300, deadline=None)
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(t.text for t in lex(text)) == text


@given(PROGRAMS)
@settings(max_examples=400, deadline=None)
def test_the_number_of_lines_stays(text: str) -> None:
    assert rewrite(text, include).text.count("\n") == text.count("\n")
    assert replace_includes(text, include).count("\n") == text.count("\n")


# Each ends where it ends whatever follows, so that a mark between two of them is a token of its own.
WHOLE = (
    "__shared__ float s[32];",
    "__shared__\nfloat s\n[32]\n;",
    "__shared__ struct { int a;\n int b; } q[2], r;",
    "extern __shared__ T d[];",
    "extern __shared__ // why\n float e\n[];",
    'asm volatile("bar.sync 0;\\n" ::\n "r"(x) : "memory");',
    "n::k<T, 3><<<dim3(1),\n2, 0>>>(a,\nb);",
    "\n#define S(T, n) \\\n  __shared__ T \\\n n[4]\n",
    "\n#define A asm(\"x\" /* y\n */)\n",
    "\n#define SH __shared__\nSH float t[3];",
    '\n#include "a.h" // why\n',
    "\n#include <b.h>\n",
    "\n/* c */ # include /* d\n */ \"a.h\"\n",
    "\n#if 0\ndon't\n#endif\n",
    "// comment \\\n still\n",
    "/* many\r\nlines */",
    '"string \\" \\\n more";',
    'R"x(raw " __shared__\n ;)x";',
    "u = [=](int i) {\n __shared__ int l[2]; };",
    "template <class T> __global__ void k(T* p) {\n __shared__ T m[2];\n}",
    "switch (x) {\n case 1: __shared__ float c[4]; }",
    "a = 1'000;\r\n",
    "\n",
)  # fmt: skip


@given(st.lists(st.sampled_from(WHOLE), max_size=12))
@settings(max_examples=400, deadline=None)
def test_every_token_outside_of_what_is_rewritten_stays_on_its_line(pieces: list[str]) -> None:
    text = "void f() { mark_0;" + "".join(f" {piece} mark_{i + 1};" for i, piece in enumerate(pieces)) + "}"
    lines = rewrite(text, include).text.split("\n")
    for number, line in enumerate(text.split("\n")):
        for mark in re.findall(r"mark_\d+", line):
            assert re.search(rf"\b{mark}\b", lines[number]), (mark, lines)


@pytest.mark.parametrize(
    "piece",
    [
        "a ? b : ",
        "x<<<1, 1>>>(",
        "/* a *",
        "a<",
        "#define A(x) asm(x\n",
        "template <",
        "{ a b ",
        "/* */ ",
        "__shared__ ",
    ],
)
def test_long_broken_text_takes_no_time(piece: str) -> None:
    """Each of these took minutes, or would, where the work grows with the square of the length."""
    start = time.process_time()
    rewrite(piece * 1000 + "#", include)
    assert time.process_time() - start < 5

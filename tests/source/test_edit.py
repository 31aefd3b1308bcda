"""Edits against fresh parses, and what happens with text that is not finished or not CUDA at all."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_forge.domain.errors import SourceError
from kernel_forge.domain.text import Position, Range
from kernel_forge.source import MAX_BYTES, SourceFile, parse

REALISTIC = Path(__file__).with_name("realistic.cu").read_text(encoding="utf-8")
WORDS = (
    "__global__ ",
    "void ",
    "k",
    "(",
    ")",
    "{",
    "}",
    ";",
    "<",
    ">",
    "<<<",
    ">>>",
    ",",
    "*",
    "&",
    "const ",
    "float ",
    "template ",
    "typename T",
    "__shared__ ",
    "__constant__ ",
    "__launch_bounds__(",
    "#define A 1\n",
    "#if A\n",
    "#endif\n",
    "\n",
    "\r\n",
    "\r",
    "// ",
    "/*",
    "*/",
    '"',
    "'",
    "\\\n",
    'R"(',
    ')"',
    "namespace a ",
    "using X = ",
    "typedef ",
    "extern ",
    '"C" ',
    "[",
    "]",
    "=",
    "::",
    "é",
    "😀",
    "\ufeff",
    "1'0",
    "// /// kernel-forge\n",
    "// ///\n",
    "cudaLaunchKernel(",
    "struct S ",
    "operator",
    "...",
    "->",
    " ",
    "\t",
    "0x1p3",
    "[[",
    "]]",
)
CODE = st.lists(st.sampled_from(WORDS), max_size=60).map("".join)
ANY = st.text(st.characters(exclude_characters="\0"), max_size=200)


def everything(file: SourceFile) -> tuple[object, ...]:
    return (
        file.text,
        file.kernels,
        file.launches,
        file.macros,
        file.symbols,
        file.shared,
        file.blocks,
        file.host_ranges,
    )


def check_ranges(file: SourceFile) -> None:
    """Every range lies in the text; host ranges are ordered, apart and outside kernels."""
    for kernel in file.kernels:
        assert file.text[file.offset(kernel.name_range.start) : file.offset(kernel.name_range.end)] == kernel.name
        assert kernel.range.start <= kernel.signature_range.end <= kernel.range.end
    kernels = [(file.offset(k.range.start), file.offset(k.range.end)) for k in file.kernels]
    last = 0
    for start, end in file.host_ranges:
        assert all(end <= begin or stop <= start for begin, stop in kernels)
        assert last <= start < end <= len(file.text)
        last = end


@given(st.one_of(CODE, ANY))
@settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_parses(text: str) -> None:
    file = parse(text, "a.cu")
    everything(file)
    check_ranges(file)


@given(st.data())
@settings(max_examples=150, deadline=5000)
def test_edits_give_what_a_fresh_parse_gives(data: st.DataObject) -> None:
    file = parse(data.draw(st.one_of(CODE, st.just(REALISTIC))), "a.cu")
    for _ in range(data.draw(st.integers(1, 4))):
        before = everything(file) if data.draw(st.booleans()) else None
        start, end = sorted(data.draw(st.integers(0, len(file.text))) for _ in range(2))
        end = min(end, start + data.draw(st.integers(0, 40)))
        where = Range(file.position(start), file.position(end))
        # Between CR and LF there is no position of its own.
        a, b = file.offset(where.start), file.offset(where.end)
        new = data.draw(st.sampled_from(WORDS) | st.just(""))
        edited = file.edit(where, new)
        assert edited.text == file.text[:a] + new + file.text[b:]
        if before is not None:
            assert everything(file) == before
        file = edited
    assert everything(file) == everything(parse(file.text, "a.cu"))


def test_typing_a_kernel_letter_by_letter() -> None:
    file = parse("int before;\n", "a.cu")
    for character in "__global__ void k(const float *x, int n) { x[0]; }\n":
        end = file.position(len(file.text))
        file = file.edit(Range(end, end), character)
        assert everything(file) == everything(parse(file.text, "a.cu"))
    assert [k.name for k in file.kernels] == ["k"]


def test_unchanged_kernels_are_the_same_objects() -> None:
    file = parse("__global__ void a() {}\n__global__ void b() { int i; }\n__global__ void c() {}\n", "a.cu")
    before = file.kernels
    edited = file.edit(Range(Position(1, 23), Position(1, 23)), " ")
    same = [new is old for new, old in zip(edited.kernels, before, strict=True)]
    assert same == [True, False, True]
    aliased = file.edit(Range(Position(0, 0), Position(0, 0)), "using T = int; ")
    assert aliased.kernels == parse(aliased.text, "a.cu").kernels


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_keeps_the_kernels_before_it(seed: int) -> None:
    whole = parse(REALISTIC, "a.cu")
    cut = random.Random(seed).randrange(len(REALISTIC))
    kept = parse(REALISTIC[:cut], "a.cu").kernels
    expected = [k for k in whole.kernels if whole.offset(k.range.end) <= cut]
    assert list(kept[: len(expected)]) == expected


def test_the_limit_and_binary_text() -> None:
    with pytest.raises(SourceError, match=r"a\.cu: 8388609 bytes exceed the limit of 8 MiB"):
        parse("x" * (MAX_BYTES + 1), "a.cu")
    with pytest.raises(SourceError, match="8 MiB"):
        parse("é" * (MAX_BYTES // 2 + 1), "a.cu")
    with pytest.raises(SourceError, match=r"not a text file \(NUL at character 3\)"):
        parse("int\0", "a.cu")
    file = parse("int a;", "a.cu")
    with pytest.raises(SourceError, match="NUL"):
        file.edit(Range(Position(0, 0), Position(0, 0)), "\0")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "{" * 20_000,
        "<" * 20_000,
        "k<<<" * 5_000,
        "__global__ " * 5_000,
        "__global__ void k(" * 3_000,
        "template <" * 5_000 + "__global__ void k() {}",
        "/*" * 20_000,
        "__shared__ float " * 4_000,
        "#ifndef A\n" * 5_000,
        "a<b<" * 5_000 + "__global__ void k();",
        "cudaLaunchKernel(" * 3_000,
        "// /// kernel-forge\n" * 5_000,
        'R"(' * 10_000,
        "__launch_bounds__(" * 5_000,
        "__launch_bounds__" + "(" * 20_000,
        "namespace a {" * 2_000 + "__global__ void k() {}",
    ],
    ids=lambda text: text[:20],
)
def test_time_stays_bounded(text: str) -> None:
    begin = time.perf_counter()
    everything(parse(text, "a.cu"))
    assert time.perf_counter() - begin < 5


def generated(kernels: int, lines: int) -> str:
    """``kernels`` kernels of ``lines`` lines each, with macros, blocks, shared memory and launches."""
    out: list[str] = []
    for i in range(kernels):
        head = ["// /// kernel-forge", f'// kernel = "k{i}"', "// ///"] if i % 4 == 0 else []
        head += [f"#ifndef B{i}", f"#define B{i} 256", "#endif", "template <typename T>"]
        head += [f"__global__ void __launch_bounds__(B{i}) k{i}(const T *x, float *y, int n, float eps) {{"]
        head += ["  __shared__ float s[32];"]
        tail = ["}", f"void run{i}(float *x, float *y) {{ k{i}<float><<<4, B{i}>>>(x, y, 4, 1e-5f); }}"]
        body = [f"  if (threadIdx.x < n) y[{j}] = x[{j}] * eps;" for j in range(lines - len(head) - len(tail))]
        out += head + body + tail
    return "\n".join(out)


@pytest.mark.slow
def test_ten_thousand_lines_are_read_whole_and_after_edits() -> None:
    """200 kernels stay 200 kernels; how long that takes is measured by ``scripts/bench source``."""
    text = generated(200, 50)
    assert text.count("\n") == 9_999
    file = parse(text, "a.cu")
    assert (len(file.kernels), len(file.launches), len(file.blocks)) == (200, 200, 50)
    for line in (5_020, 5_021, 5_022, 5_023, 5_024):
        file = file.edit(Range(Position(line, 8), Position(line, 8)), " ")
        assert len(file.kernels) == 200

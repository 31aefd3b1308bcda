"""Spec blocks. Delimiters as PEP 723 defines them (with ``//`` for ``#``); positions counted by hand."""

import pytest

from kernel_forge.domain.text import Position, Range
from kernel_forge.source import CommentBlock, parse

KERNEL = "__global__ void k(int n) {}\n"


def blocks(text: str) -> tuple[CommentBlock, ...]:
    return parse(text, "a.cu").blocks


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_text_and_positions(end: str) -> None:
    text = end.join(
        ["int é;", "  // /// kernel-forge", '  // kernel = "k"', "  //", "  //   x = 1 ", "  // ///", KERNEL]
    )
    (block,) = blocks(text)
    assert block.toml == 'kernel = "k"\n\n  x = 1 '
    assert block.closed
    assert block.range == Range(Position(1, 2), Position(5, 8))
    assert block.kernel_below == "k"
    assert block.to_source(Position(0, 0)) == Position(2, 5)
    assert block.to_source(Position(0, 10)) == Position(2, 15)
    assert block.to_source(Position(1, 0)) == Position(3, 4)
    assert block.to_source(Position(2, 2)) == Position(4, 7)
    assert block.to_source(Position(3, 0)) == Position(4, 13)  # past the end: the end of the last line


def test_every_position_maps_to_its_own_character() -> None:
    text = f'// /// kernel-forge\n// a = "é😀"\n//\n\t// b = [\n// ///\n{KERNEL}'
    file = parse(text, "a.cu")
    (block,) = file.blocks
    for line, content in enumerate(block.toml.split("\n")):
        for column, character in enumerate(content):
            assert text[file.offset(block.to_source(Position(line, column)))] == character


@pytest.mark.parametrize(
    ("text", "toml", "last_line"),
    [
        ("// /// kernel-forge\n// a = 1\n", "a = 1", 1),
        ("// /// kernel-forge\n// a = 1\n\n// ///\n", "a = 1", 1),
        ("// /// kernel-forge\n// a = 1\n//b = 2\n// ///\n", "a = 1", 1),
        ("// /// kernel-forge\n// a = 1\n//\tb = 2\n// ///\n", "a = 1", 1),
        ("// /// kernel-forge\n", "", 0),
        ("// /// kernel-forge", "", 0),
        ("// /// kernel-forge\n// a = 1\n// /// other\n// ///\n", "a = 1", 1),
    ],
)
def test_not_closed(text: str, toml: str, last_line: int) -> None:
    block = blocks(text)[0]
    assert not block.closed
    assert block.toml == toml
    assert block.range.end.line == last_line
    block.to_source(Position(0, 0))


def test_the_last_closing_line_of_the_run_closes() -> None:
    (block,) = blocks("// /// kernel-forge\n// a = 1\n// ///\n// b = 2\n// ///\n// docs\n" + KERNEL)
    assert block.toml == "a = 1\n///\nb = 2"
    assert block.range.end == Position(4, 6)


def test_an_empty_block_is_closed() -> None:
    (block,) = blocks("// /// kernel-forge\n// ///\n" + KERNEL)
    assert (block.toml, block.closed, block.kernel_below) == ("", True, "k")
    assert block.to_source(Position(0, 0)) == Position(1, 6)


@pytest.mark.parametrize(
    "text",
    [
        "/*\n// /// kernel-forge\n// a = 1\n// ///\n*/\n",
        'const char *s = R"(\n// /// kernel-forge\n// a = 1\n// ///\n)";\n',
        "// // /// kernel-forge\n// a = 1\n// ///\n",
        "int x; // /// kernel-forge\n// a = 1\n// ///\n",
        "// /// kernel-forge-x\n// a = 1\n// ///\n",
        "/// kernel-forge\n// a = 1\n// ///\n",
        "///// kernel-forge\n",
    ],
)
def test_what_is_no_block(text: str) -> None:
    assert blocks(text + KERNEL) == ()


def test_the_kernel_below() -> None:
    text = (
        "// /// kernel-forge\n// a = 1\n// ///\n\n// docs\n#ifndef B\n#define B 1\n#endif\n"
        "template <int N>\n__launch_bounds__(B)\n__global__ void first() {}\n"
        "// /// kernel-forge\n// a = 2\n// ///\n__global__ void second() {\n"
        "// /// kernel-forge\n// ///\n}\n// /// kernel-forge\n// ///\n"
    )
    assert [b.kernel_below for b in blocks(text)] == ["first", "second", None, None]

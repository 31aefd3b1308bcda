"""Offsets, positions and bytes: compared with plain slicing and encoding of the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.text import Position, Range
from kernel_forge.source import parse
from kernel_forge.source.lines import LineIndex, encode

TEXTS = st.text(
    st.one_of(st.sampled_from("a\n\r\té漢😀\ufeff\u2028\x0b\x0c\ud800"), st.characters(exclude_characters="\0"))
)


@given(TEXTS)
def test_position_and_offset_are_inverse(text: str) -> None:
    lines = LineIndex(text)
    for offset in range(len(text) + 1):
        position = lines.position(offset)
        head = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        if offset and text[offset - 1 : offset + 1] == "\r\n":
            assert lines.offset(position) == offset - 1  # between CR and LF: the end of the line
            continue
        assert position == Position(head.count("\n"), len(head.rpartition("\n")[2]))
        assert lines.offset(position) == offset


@given(TEXTS, st.integers(0, 3))
def test_bytes_and_code_points_are_inverse(text: str, repeat: int) -> None:
    text *= 10**repeat
    lines = LineIndex(text)
    for offset in {0, 1, len(text) // 3, len(text) // 2, len(text) - 1, len(text)} & set(range(len(text) + 1)):
        byte = lines.byte(offset)
        assert byte == len(encode(text[:offset]))
        assert lines.code_point(byte) == offset


def test_far_apart_bytes() -> None:
    text = "é" * 5000 + "a" * 5000 + "😀" * 5000
    lines = LineIndex(text)
    assert lines.byte(len(text)) == 2 * 5000 + 5000 + 4 * 5000
    assert lines.code_point(2 * 4097) == 4097
    assert lines.code_point(2 * 4097 + 1) == 4097
    assert lines.byte(12345) == 10_000 + 5_000 + 4 * 2345


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        (Position(0, 99), 2),
        (Position(1, 99), 5),
        (Position(9, 0), 6),
        (Position(-1, 3), 0),
        (Position(2, 0), 6),
    ],
)
def test_positions_outside_are_clipped(position: Position, offset: int) -> None:
    assert parse("ab\ncd\n", "a.cu").offset(position) == offset


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("lead", ["", "\ufeff", "// é漢😀"])
def test_ranges_in_any_encoding_and_line_end(lead: str, end: str) -> None:
    text = end.join(
        [
            lead,
            "int x; // 漢",
            "\t/* 😀 */ __global__ void k(int é, float *y) {",
            "}",
            "void f() { /* é */ k<<<1, 2>>>(x); }",
        ]
    )
    file = parse(text, "a.cu")
    (kernel,) = file.kernels
    assert kernel.name_range == Range(Position(2, 25), Position(2, 26))
    assert [(p.name, p.range) for p in kernel.params] == [
        ("é", Range(Position(2, 27), Position(2, 32))),
        ("y", Range(Position(2, 34), Position(2, 42))),
    ]
    assert kernel.range.end == Position(3, 1)
    (site,) = file.launches
    assert site.range == Range(Position(4, 19), Position(4, 33))

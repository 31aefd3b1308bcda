"""Hover and completion inside a block, also where it is not TOML yet."""

import pytest

from kernel_forge.domain.text import Position
from kernel_forge.source import parse
from kernel_forge.spec import complete, describe
from tests.spec.reading import KERNEL

TOML = """\
kernel = "scale"
reference = "a * x"

[args]
x = { shape = ["n"], role = "in" }

[launch]
grid = "cdiv(n, 32)"
"""
KERNELS = parse(KERNEL, "a.cu").kernels


def place(word: str) -> Position:
    line = next(i for i, text in enumerate(TOML.split("\n")) if word in text)
    return Position(line, TOML.split("\n")[line].index(word) + 1)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("kernel", "Name of the kernel"),
        ("reference", "What each output must be"),
        ("args", "What the signature does not say"),
        ("shape", "Extent of each dimension"),
        ("role", "What the kernel does with the memory"),
        ("grid", ""),
        ("cdiv", "function for shapes"),
    ],
)
def test_describe(word: str, said: str) -> None:
    found = describe(TOML, place(word))
    assert found is not None
    assert found.startswith(f"**{word}**: ")
    assert said in found


def test_nothing_to_say() -> None:
    assert describe(TOML, Position(2, 0)) is None
    assert describe("", Position(0, 0)) is None
    assert describe(TOML, Position(99, 99)) is None


def labels(toml: str, line: int, column: int) -> set[str]:
    return {c.label for c in complete(toml, Position(line, column), KERNELS)}


def test_complete() -> None:
    assert {"kernel", "reference", "cases", "where", "[args]", "[tune]"} <= labels("", 0, 0)
    assert {"grid", "block", "shared"} <= labels("[launch]\n", 1, 0)
    assert labels('kernel = "', 0, 10) == {"scale"}
    assert {"x", "y", "n", "a"} == labels("[args]\n", 1, 0)
    assert {"shape", "role", "scratch", "adversarial"} <= labels("[args]\nx = { ", 2 - 1, 6)
    assert {"x", "a"} <= labels('reference = "', 0, 13)
    assert {"n", "cdiv"} <= labels('[launch]\ngrid = "', 1, 8)


@pytest.mark.parametrize("toml", ["", "[", "= = =", "[[launch]]\ngrid", "[a.b.c.d]\n", "\n\n"])
def test_any_text_and_place(toml: str) -> None:
    for line in range(4):
        for column in (0, 1, 7, 1000):
            complete(toml, Position(line, column), KERNELS)
            describe(toml, Position(line, column))

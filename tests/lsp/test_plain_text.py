"""Text edits by hand; the rocket is two UTF-16 units, a form feed ends no line."""

import pytest
from lsprotocol import types as lsp

from kernel_forge.lsp.encoding import Encoding, as_written
from kernel_forge.lsp.plain_text import change

TEXT = "a\fb\r\n🚀cd\ref"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((0, 1), (0, 2), "aXb\r\n🚀cd\ref"),
        ((1, 2), (1, 3), "a\fb\r\n🚀Xd\ref"),
        ((1, 1), (1, 2), "a\fb\r\nXcd\ref"),  # from inside the pair: counts as its start
        ((2, 0), (1, 4), "a\fb\r\n🚀cdXef"),  # turned round
        ((0, 99), (1, 0), "a\fbX🚀cd\ref"),  # past the end of a line is its end
        ((9, 9), (2**31 - 1, 0), "a\fb\r\n🚀cd\refX"),
    ],
)
def test_a_change(start: tuple[int, int], end: tuple[int, int], expected: str) -> None:
    place = lsp.Range(start=lsp.Position(*start), end=lsp.Position(*end))
    event = lsp.TextDocumentContentChangePartial(range=place, text="X")
    assert change(TEXT, event, Encoding.UTF16) == expected


def test_a_whole_text() -> None:
    assert change(TEXT, lsp.TextDocumentContentChangeWholeDocument(text="new"), Encoding.UTF8) == "new"


def test_surrogates_as_a_file_has_them() -> None:
    assert as_written("\ud83d\ude80 \ud800x") == "🚀 \ufffdx"

"""Column conversion against Python's own encoders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.lsp.encoding import Encoding, from_units, to_units

LINE = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\r\n"), max_size=30)


@given(line=LINE, data=st.data(), encoding=st.sampled_from(Encoding))
def test_round_trip(line: str, data: st.DataObject, encoding: Encoding) -> None:
    column = data.draw(st.integers(0, len(line)))
    assert from_units(line, to_units(line, column, encoding), encoding) == column


def test_units_of_a_character_outside_the_basic_plane() -> None:
    # U+1F680: four UTF-8 bytes, a UTF-16 surrogate pair, one code point (Unicode chapter 3.9).
    line = "// 🚀 x"
    assert to_units(line, 4, Encoding.UTF8) == 7
    assert to_units(line, 4, Encoding.UTF16) == 5
    assert to_units(line, 4, Encoding.UTF32) == 4


@pytest.mark.parametrize("encoding", Encoding)
def test_past_the_end_is_the_end(encoding: Encoding) -> None:
    assert from_units("é", 99, encoding) == 1
    assert to_units("é", 99, encoding) == to_units("é", 1, encoding)


def test_inside_a_surrogate_pair_is_its_start() -> None:
    assert from_units("🚀", 1, Encoding.UTF16) == 0

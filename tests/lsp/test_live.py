"""Findings follow the text: hand-worked cases, and a property against a line-by-line model."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.text import Position, Range
from kernel_forge.lsp.live import Edit, shift_range


def check(old: tuple[int, int], edit: Edit, expected: tuple[int, int] | None) -> None:
    moved = shift_range(Range(Position(old[0], 2), Position(old[1], 5)), edit)
    assert (None if moved is None else (moved.start.line, moved.end.line)) == expected


def edit(start: tuple[int, int], end: tuple[int, int], text: str, line_end: bool = False) -> Edit:
    return Edit(Range(Position(*start), Position(*end)), text, line_end)


def test_typing_on_the_line_drops_the_finding() -> None:
    check((4, 4), edit((4, 0), (4, 0), "x"), None)


def test_typing_elsewhere_keeps_it() -> None:
    check((4, 4), edit((3, 0), (3, 1), "xyz"), (4, 4))
    check((4, 4), edit((5, 0), (5, 1), ""), (4, 4))


def test_new_lines_above_move_it_down() -> None:
    check((4, 4), edit((1, 3), (1, 3), "\n\n"), (6, 6))
    check((4, 4), edit((1, 3), (1, 3), "\r\n"), (5, 5))


def test_inserting_whole_lines_at_its_own_start_moves_it() -> None:
    check((4, 4), edit((4, 0), (4, 0), "// note\n"), (5, 5))


def test_return_at_the_end_of_its_line_keeps_it() -> None:
    check((4, 4), edit((4, 30), (4, 30), "\n    ", line_end=True), (4, 4))


def test_return_at_the_end_of_the_line_above_moves_it() -> None:
    check((4, 4), edit((3, 30), (3, 30), "\n", line_end=True), (5, 5))


def test_deleting_lines_above_moves_it_up() -> None:
    check((4, 4), edit((1, 0), (3, 0), ""), (2, 2))


def test_deleting_its_line_drops_it() -> None:
    check((4, 4), edit((4, 0), (5, 0), ""), None)


def test_a_change_inside_a_long_range_drops_it() -> None:
    check((2, 6), edit((4, 1), (4, 2), ""), None)


LINES = [f"line {i} abc" for i in range(8)]


@given(data=st.data())
def test_a_kept_finding_points_at_the_same_line_text(data: st.DataObject) -> None:
    """Model: apply the edit to real text; a finding that survives must sit on an unchanged line."""
    first = data.draw(st.integers(0, 7))
    last = data.draw(st.integers(first, 7))
    start = Position(first, data.draw(st.integers(0, len(LINES[first]))))
    low = start.column if first == last else 0
    end = Position(last, data.draw(st.integers(low, len(LINES[last]))))
    new_text = data.draw(st.text(alphabet="ab\n", max_size=6))
    change = Edit(Range(start, end), new_text, start.column == len(LINES[first]))
    head = "\n".join([*LINES[:first], LINES[first][: start.column]])
    tail = "\n".join([LINES[last][end.column :], *LINES[last + 1 :]])
    after = (head + new_text + tail).split("\n")
    for line in range(8):
        moved = shift_range(Range(Position(line, 0), Position(line, 3)), change)
        if moved is not None:
            assert after[moved.start.line] == LINES[line]
        elif new_text or start != end:
            assert first <= line <= last

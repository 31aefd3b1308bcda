"""Convergences whose levels were counted by hand."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.views.sparkline import ASCII, BLOCKS, WIDTH, sparkline


def test_levels_are_logarithmic_above_the_best() -> None:
    """100, 10, 1, 0.1 and 0 % above the best: each decade is a third of the seven levels above the floor."""
    assert sparkline([2.0, 1.1, 1.01, 1.0005, 1.0]) == "█▆▃▁▁"
    assert sparkline([2.0, 1.1, 1.01, 1.0005, 1.0], ascii_only=True) == "#+-__"


def test_a_search_that_finds_nothing_better_is_flat() -> None:
    assert sparkline([1e-5] * 4) == "▁▁▁▁"
    assert sparkline([1e-5]) == "▁"
    assert sparkline([]) == ""


def test_the_first_and_the_last_are_shown_however_many_there_are() -> None:
    line = sparkline([2.0] + [1.0] * 999, 10)
    assert line == "█" + "▁" * 9
    assert sparkline([2.0] * 999 + [1.0], 10) == "█" * 9 + "▁"
    assert sparkline([2.0, 1.0], 1) == "▁"


@given(st.lists(st.floats(1e-9, 1e3), max_size=300), st.booleans())
def test_a_convergence_never_rises(values: list[float], ascii_only: bool) -> None:
    convergence = [min(values[: i + 1]) for i in range(len(values))]
    line = sparkline(convergence, ascii_only=ascii_only)
    assert len(line) == min(WIDTH, len(values))
    levels = [(ASCII if ascii_only else BLOCKS).index(c) for c in line]
    assert levels == sorted(levels, reverse=True)
    assert not levels or levels[-1] == 0

"""When a search ends, and how long that will be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.tuning import Budget
from kernel_forge.search.stopping import reason_to_stop, remaining_seconds, since_best

VALUES = st.lists(st.none() | st.floats(1e-9, 1e3), max_size=30)


@pytest.mark.parametrize(
    ("budget", "values", "seconds", "reason"),
    [
        (Budget(3, None), [1.0, 2.0], 0.0, None),
        (Budget(3, None), [1.0, None, 2.0], 0.0, "trials"),
        (Budget(None, 5.0), [], 4.9, None),
        (Budget(None, 5.0), [], 5.0, "seconds"),
        (Budget(None, None, 2), [3.0, 1.0, 1.0], 0.0, None),
        (Budget(None, None, 2), [3.0, 1.0, 1.0, None], 0.0, "patience"),
        (Budget(None, None, 2), [None, None, None, None], 0.0, None),  # nothing to be patient about yet
        (Budget(None, None), [1.0] * 1000, 1e9, None),
    ],
)
def test_the_first_limit_reached(
    budget: Budget, values: list[float | None], seconds: float, reason: str | None
) -> None:
    assert reason_to_stop(budget, values, seconds) == reason


@given(VALUES)
def test_since_best_counts_from_the_last_strict_improvement(values: list[float | None]) -> None:
    timed = [v for v in values if v is not None]
    if not timed:
        assert since_best(values) == 0
        return
    assert since_best(values) == len(values) - 1 - values.index(min(timed))


@pytest.mark.parametrize(
    ("budget", "values", "limit", "seconds", "left"),
    [
        (Budget(10, None), [1.0, 2.0], 10, 4.0, 16.0),  # 2 s a trial, 8 to go
        (Budget(10, 6.0), [1.0, 2.0], 10, 4.0, 2.0),
        (Budget(None, None, 3), [1.0, 2.0], 100, 4.0, 4.0),  # one trial since the best, two more at most
        (Budget(10, None), [], 10, 0.0, None),
        (Budget(None, 5.0), [], None, 1.0, 4.0),
    ],
)
def test_the_remainder_at_the_pace_so_far(
    budget: Budget, values: list[float | None], limit: int | None, seconds: float, left: float | None
) -> None:
    assert remaining_seconds(budget, values, limit, seconds) == left


@given(VALUES, st.integers(0, 50), st.floats(0, 1e4), st.floats(0, 1e4))
def test_a_remainder_is_never_negative(values: list[float | None], limit: int, spent: float, seconds: float) -> None:
    left = remaining_seconds(Budget(limit or None, seconds, 5), values, limit, spent)
    assert left is not None
    assert 0 <= left < math.inf

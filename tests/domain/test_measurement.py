"""Confidence intervals of medians: ranks from tables of the binomial distribution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.measurement import is_narrow, median_interval, sampled


@pytest.mark.parametrize(
    ("n", "low"),
    # Largest r with P(B(n, 1/2) <= r - 1) <= 0.025, e.g. n = 10: P(<= 1) = 11/1024 = 0.011, P(<= 2) = 56/1024 = 0.055.
    [(6, 1), (8, 1), (9, 2), (10, 2), (11, 2), (12, 3), (20, 6), (30, 10), (100, 40)],
)
def test_ranks(n: int, low: int) -> None:
    samples = list(np.random.default_rng(n).permutation(n) + 1.0)
    assert median_interval(samples) == (low, n + 1 - low)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_samples_give_their_range(n: int) -> None:
    assert median_interval([float(v) for v in range(1, n + 1)]) == (1, n)


def test_large_samples_go_by_the_normal_approximation() -> None:
    low, high = median_interval([float(v) for v in range(1, 10_001)])
    assert (low, high) == (4902, 5099)  # 5000 - 1.959964 * 50 = 4902.0 rounded down


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=300))
def test_the_median_lies_inside(samples: list[float]) -> None:
    low, high = median_interval(samples)
    assert low <= float(np.median(samples)) <= high
    assert median_interval(samples[::-1]) == (low, high)


def test_it_holds_the_median_in_95_of_100() -> None:
    """Of an exponential distribution, median ln 2, at n = 15: the exact coverage is 96.5 %."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(4000):
        low, high = median_interval(rng.exponential(size=15))  # type: ignore[arg-type]
        held += low <= np.log(2) <= high
    assert 0.955 < held / 4000 < 0.975


def test_narrow_goes_by_the_median() -> None:
    assert is_narrow([1.0, 1.0, 1.001, 1.0, 1.0, 1.0, 1.0], 0.01)
    assert not is_narrow([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0], 0.01)


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_a_sample_has_the_last_element_and_meets_every_column(count: int, most: int) -> None:
    """Places k steps apart meet every column of every shape of that size where k and the size share no divisor."""
    places = range(count)[sampled(count, most)]
    assert 1 <= len(places) <= most
    assert places[-1] == count - 1
    assert math.gcd(places.step, count) == 1


def test_a_sample_of_nothing_is_empty_and_of_little_is_everything() -> None:
    assert [*range(0)[sampled(0, 10)]] == []
    assert [*range(7)[sampled(7, 7)]] == [*range(7)]

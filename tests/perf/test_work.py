"""Operations of a reference, against counts by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_forge.perf import Counting, Work

X = np.linspace(0.1, 1.0, 12).reshape(3, 4)


def count(function: Callable[[Any], Any], x: Any = X) -> Work:
    work = Work()
    function(Counting.of(x, work))
    return work


@pytest.mark.parametrize(
    ("function", "operations"),
    [
        (lambda x: 2.0 * x + 1.0, 24),
        (lambda x: np.exp(x), 12),
        (lambda x: x.sum(), 11),
        (lambda x: x.sum(axis=1), 9),  # three rows of three additions
        (lambda x: np.mean(x, axis=0), 8 + 4),  # two additions and a division for each of four columns
        (lambda x: x.max(axis=-1), 9),
        (lambda x: x @ x.T, 2 * 3 * 3 * 4),
        (lambda x: np.cumsum(x.ravel() * 1.0), 12 + 11),
        (lambda x: np.where(x > 0.5, x * 2, x), 12),  # comparing is free
        (lambda x: np.where(x > 0.5, x, 0.0) * 2.0, 12),
        (lambda x: x.reshape(-1)[::2] + 1.0, 6),
        (lambda x: x.T.copy(), 0),
    ],
)
def test_counts(function: Callable[[Any], Any], operations: int) -> None:
    work = count(function)
    assert work.operations == operations
    assert work.complete


def test_integers_are_free() -> None:
    assert count(lambda x: x * 2 + 1, np.arange(10)).operations == 0
    assert count(lambda x: x * 0.5, np.arange(10)).operations == 10


def test_products_are_told_apart() -> None:
    work = count(lambda x: (x @ x.T) * 2.0)
    assert (work.products, work.operations) == (72, 81)


def test_what_cannot_be_counted_is_said() -> None:
    assert not count(lambda x: np.einsum("ij,kj->ik", x, x)).complete

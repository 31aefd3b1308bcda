"""References that compute without rounding are told from those that round."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.verify.exactness import Traced, trace_of

TIES = np.array([[-1.0, 0.0, 0.5, 2.0], [2.0, 2.0, 0.5, -1.0]])
RANDOM = np.random.default_rng(1).standard_normal((4, 100)).astype(np.float32).astype(np.float64)


def is_exact(reference: Callable[[Any], Any], values: Any, dtype: DType = DType.FLOAT32) -> bool:
    trace = trace_of(dtype)
    result = reference(Traced.of(values, trace))
    return trace.is_exact and isinstance(result, Traced)


@pytest.mark.parametrize(
    ("reference", "on_ties", "on_random"),
    [
        (lambda x: np.argmax(x, axis=1), True, True),
        (lambda x: (x > 0.5).sum(axis=1), True, True),
        (lambda x: np.where(x >= 0.75, x, 0), True, True),
        (lambda x: np.maximum(x, 0), True, True),
        (lambda x: np.sort(x, axis=1), True, True),
        (lambda x: np.sum(x, axis=1), True, False),  # 100 random terms need more than 24 bits
        (lambda x: np.cumsum(x, axis=1), True, False),
        (lambda x: x @ x.T, True, False),
        (lambda x: x * x + 2, True, False),
        (lambda x: x.mean(axis=1), True, False),  # division by 4, by 100
        (lambda x: x / 3, False, False),
        (lambda x: np.exp(x), False, False),
        (lambda x: x + 0.1, False, False),
        (lambda x: np.dot(x, x.T), False, False),  # no claim: not traced
        (lambda x: np.argsort(x, axis=1), False, False),  # nor about the order of equals
        (lambda x: np.array([float(v) for v in x.reshape(-1)]), False, False),
    ],
)
def test_what_is_exact(reference: Callable[[Any], Any], on_ties: bool, on_random: bool) -> None:
    assert is_exact(reference, TIES) is on_ties
    assert is_exact(reference, RANDOM) is on_random


def test_half_holds_eleven_bits() -> None:
    """1 + 2**-10 is a half-precision number, 1 + 2**-11 is not (IEEE 754 binary16)."""
    assert is_exact(lambda x: x + 2.0**-10, np.ones(3), DType.FLOAT16)
    assert not is_exact(lambda x: x + 2.0**-11, np.ones(3), DType.FLOAT16)


def test_a_threshold_no_float_holds_decides_nothing_near_it() -> None:
    near = np.array([0.7], np.float32).astype(np.float64)
    assert not is_exact(lambda x: x > 0.7, near)
    assert is_exact(lambda x: x > 0.7, np.array([0.5, 1.0]))


def test_an_array_filled_by_a_loop_makes_no_claim() -> None:
    def loop(x: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = float(np.exp(float(x[i])))
        return out

    assert not is_exact(loop, np.array([1.0, 2.0]))


def test_the_range_of_integers() -> None:
    trace = trace_of(DType.FLOAT64)
    x = Traced.of(np.array([-5, 70000], np.int64), trace)
    assert (x * x).max() == 70000**2
    assert (trace.low, trace.high) == (0, 70000**2)

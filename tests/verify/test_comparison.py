"""Element by element."""

import math
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import poison
from kernel_forge.domain.outcome import MismatchKind
from kernel_forge.verify import comparison
from kernel_forge.verify.comparison import Comparison, compare, first_difference, same_bits

F32 = DType.FLOAT32


def one(
    got: list[Any], want: list[Any], tolerance: float = 0.0, dtype: DType = F32, seed: int | None = None
) -> Comparison:
    wide = np.float64 if dtype.is_float else None
    a, b = np.array(got, dtype=dtype.numpy), np.array(want, dtype=wide)
    return compare("y", dtype, a, b, np.full(a.shape, tolerance), poison_seed=seed)


def test_nan_fits_nan_only() -> None:
    assert one([math.nan], [math.nan]).mismatch is None
    assert one([math.nan], [1.0], 1e30).mismatch is not None
    assert one([1.0], [math.nan], 1e30).mismatch is not None


def test_infinity_fits_the_same_infinity_only() -> None:
    assert one([math.inf], [math.inf]).mismatch is None
    assert one([-math.inf], [math.inf], 1e30).mismatch is not None
    assert one([1e38], [math.inf], 1e38).mismatch is not None
    assert one([math.inf], [1e38], 1e38).mismatch is not None


def test_an_overflow_to_infinity_is_right_where_the_type_ends() -> None:
    assert one([math.inf], [1e39]).mismatch is None
    assert one([-math.inf], [1e39]).mismatch is not None


def test_an_infinite_tolerance_excludes_an_element() -> None:
    a = np.array([math.nan, 1.0], np.float32)
    result = compare("y", F32, a, np.array([2.0, 1.0]), np.array([math.inf, 0.0]), poison_seed=None)
    assert result.mismatch is None
    assert result.worst == 0.0


_ODD = st.sampled_from([0.0, -0.0, 1.0, 2.0, math.nan, math.inf, -math.inf, 1e-45, 3e38, 1e39])


@given(st.data(), st.sampled_from([DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.INT32, DType.BOOL]))
def test_the_quick_look_says_what_looking_at_each_element_says(data: st.DataObject, dtype: DType) -> None:
    count = data.draw(st.integers(1, 5))
    numbers = st.integers(-3, 3).map(float) | (_ODD if dtype.is_float else st.just(0.0))
    rows = [np.array(data.draw(st.lists(numbers, min_size=count, max_size=count))) for _ in range(2)]
    allowed = st.sampled_from([0.0, 1.0, 0.5, math.inf, 1e30])
    tolerance = np.array(data.draw(st.lists(allowed, min_size=count, max_size=count)))
    with np.errstate(all="ignore"):
        got = rows[0].astype(dtype.numpy)
    want = rows[1] if dtype.is_float else rows[1].astype(np.int64)
    seed = data.draw(st.sampled_from([None, 1]))
    quick = compare("y", dtype, got, want, tolerance, poison_seed=seed)
    with patch.object(comparison, "_plainly_right", return_value=None):
        whole = compare("y", dtype, got, want, tolerance, poison_seed=seed)
    assert repr(quick) == repr(whole)


def test_a_large_output_is_looked_at_to_its_end() -> None:
    """One element of the last block, and one at its very end."""
    want = np.arange(100_000, dtype=np.float64)
    for place in (99_000, 99_999):
        got = want.astype(np.float32)
        got[place] += 1
        found = compare("y", F32, got, want, np.full(want.shape, 0.5), poison_seed=None)
        assert found.mismatch is not None
        assert (found.mismatch.index, found.mismatch.count) == ((place,), 1)


def test_integers_beyond_2_to_the_53_are_told_apart() -> None:
    big = 2**60
    assert one([big + 1], [big], dtype=DType.INT64).mismatch is not None
    assert one([big], [big], dtype=DType.INT64).mismatch is None
    result = one([2**64 - 1], [-1], dtype=DType.UINT64)
    assert result.mismatch is None


@given(st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31 - 1))
def test_integers_wrap_as_the_hardware_does(value: int, got: int) -> None:
    wrapped = (value + 2**31) % 2**32 - 2**31
    assert (one([got], [value], dtype=DType.INT32).mismatch is None) == (got == wrapped)


def test_bool_and_zero_size() -> None:
    assert one([True, False], [1, 0], dtype=DType.BOOL).mismatch is None
    assert one([True, False], [1, 1], dtype=DType.BOOL).mismatch is not None
    assert one([], []).mismatch is None


def test_a_mismatch_tells_where_and_how_much() -> None:
    a = np.array([[1, 2], [3, 5]], np.float32)
    m = compare("y", F32, a, np.array([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 0.5), poison_seed=None).mismatch
    assert m is not None
    assert (m.index, m.expected, m.got, m.count, m.total) == ((1, 1), 4.0, 5.0, 1, 4)
    assert m.max_absolute == 1.0
    assert m.max_relative == 0.25
    assert m.max_ulp == 2**21
    assert "y[1, 1]" in m.message


def test_poison_is_told_from_a_wrong_value() -> None:
    for seed in (0, 1):
        left = poison(F32, 1, seed)
        m = compare("y", F32, left, np.array([1.0]), np.array([0.0]), poison_seed=seed).mismatch
        assert m is not None
        assert m.kind is MismatchKind.NOT_WRITTEN


@given(st.floats(width=32), st.floats(width=32))
def test_equal_bits(a: float, b: float) -> None:
    x, y = np.array([1, a], np.float32), np.array([1, b], np.float32)
    assert same_bits(x, x.copy())
    if not same_bits(x, y):
        assert first_difference(x, y) == 1


def test_a_float_reference_of_large_unsigned_integers() -> None:
    want = np.array([1.5 * 2.0**63, 2.0**63, -1.0, 2.0**64 + 2.0**12])
    got = np.array([3 * 2**62, 2**63, 2**64 - 1, 2**12], np.uint64)
    assert compare("y", DType.UINT64, got, want, np.zeros(4), poison_seed=None).mismatch is None
    assert compare("y", DType.UINT64, got + np.uint64(1), want, np.zeros(4), poison_seed=None).mismatch is not None

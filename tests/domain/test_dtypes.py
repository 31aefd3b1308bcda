"""Element types (IEEE 754-2019 table 3.5) and the poison of uninitialised memory."""

import ml_dtypes
import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import poison


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("bool", 1), ("int8", 1), ("uint16", 2), ("int32", 4), ("uint64", 8), ("bfloat16", 2), ("float16", 2)],
)
def test_sizes(dtype: str, size: int) -> None:
    assert DType(dtype).itemsize == size


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64])
def test_unit_roundoff_is_half_the_machine_epsilon(dtype: DType) -> None:
    info = ml_dtypes.finfo(dtype.numpy)
    assert dtype.unit_roundoff == float(info.eps) / 2
    assert dtype.is_float


def test_integers_do_not_round() -> None:
    assert not DType.INT32.is_float
    with pytest.raises(ValueError, match="int32 does not round"):
        _ = DType.INT32.unit_roundoff


@pytest.mark.parametrize("dtype", list(DType))
def test_poison(dtype: DType) -> None:
    first, second = poison(dtype, 5, 0), poison(dtype, 5, 1)
    assert first.dtype == second.dtype == dtype.numpy
    assert first.shape == (5,)
    assert len({first[i : i + 1].tobytes() for i in range(5)}) == 1
    assert first.tobytes() != second.tobytes()
    if dtype.is_float:
        assert np.isnan(first.astype(float)).all()
        assert (second.astype(float) > 1e3).all()
        assert np.isfinite(second.astype(float)).all()


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.BOOL])
def test_sixty_seeds_give_different_poison(dtype: DType) -> None:
    assert len({poison(dtype, 1, seed).tobytes() for seed in range(60)}) == 60
    for seed in range(60):
        if dtype.is_float:
            assert np.isnan(float(poison(dtype, 1, seed)[0])) == (seed % 2 == 0)

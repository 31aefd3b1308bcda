"""Inputs: reproducible, of every kind, and as ``init`` says."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.finding import Finding
from kernel_forge.spec import bind
from kernel_forge.verify.inputs import KINDS, Array, InputsFailed, make_inputs
from kernel_forge.verify.references import Evaluator
from tests.verify.fake_device import read

SIGNATURE = "const %s* x, float* y, int n"
BLOCK = (
    'cases = [{ n = 64 }]\nreference = { y = "np.sum(x)" }\n\n[args]\nx = { shape = ["n"]%s }\n'
    'y = { shape = [1], role = "out" }'
)


def inputs(kind: str, *, init: str = "", dtype: str = "float", n: int = 64, seed: int = 3, path: str = "k.cu") -> Array:
    spec, _ = read(SIGNATURE % dtype, BLOCK % (f", init = {init}" if init else ""), path)
    bound = bind(spec, {"n": n}, {})
    assert not isinstance(bound, Finding)
    return make_inputs(spec, bound, kind, seed, Evaluator.of(spec).load)["x"]


@given(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.integers(0, 3000))
def test_a_seed_repeats_bit_for_bit_and_another_does_not(kind: str, seed: int, n: int) -> None:
    a, b = inputs(kind, seed=seed, n=n), inputs(kind, seed=seed, n=n)
    assert a.tobytes() == b.tobytes()
    assert a.shape == (n,)
    assert np.isfinite(a).all()
    if n > 100:
        assert a.tobytes() != inputs(kind, seed=seed + 1, n=n).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_honours_init(kind: str, tmp_path: Path) -> None:
    ids = inputs(kind, dtype="int", init='{ kind = "integers", low = 5, high = "n" }')
    assert ids.min() >= 5
    assert ids.max() < 64
    assert sorted(inputs(kind, dtype="int", init='"permutation"')) == list(range(64))
    uniform = inputs(kind, init='"uniform"')
    assert 0 <= uniform.min() <= uniform.max() < 1
    ordered = inputs(kind, init='"sorted"')
    assert (np.diff(ordered) >= 0).all()
    assert (inputs(kind, init='{ kind = "constant", value = 3 }') == 3).all()
    (tmp_path / "make.py").write_text("def make(rng, shape, n):\n    return rng.integers(0, 2, shape) + n\n")
    assert set(inputs(kind, init='"make.py:make"', path=str(tmp_path / "k.cu"))) == {64.0, 65.0}


@pytest.mark.parametrize("dtype", ["float", "double", "__half", "__nv_bfloat16", "int", "unsigned char", "bool"])
def test_every_type_has_every_kind(dtype: str) -> None:
    for kind in KINDS:
        made = inputs(kind, dtype=dtype).astype(np.float64)
        assert np.isfinite(made).all()
        assert len(set(made)) > 1


def test_kinds_are_what_they_say() -> None:
    assert (inputs("one-signed") > 0).all()
    assert np.abs(inputs("large")).max() > 1e4
    assert 0 < np.abs(inputs("tiny")).max() < 1e-8
    assert len(set(inputs("tied"))) <= 4
    spikes = inputs("spikes")
    assert min(spikes[0], spikes[-1]) > 1
    assert abs(inputs("shifted").mean() - 3) < 1


def test_an_impossible_init_is_named() -> None:
    with pytest.raises(InputsFailed, match="init of x: no integer"):
        inputs("centred", dtype="int", init='{ kind = "integers", low = 5, high = 5 }')


@pytest.mark.parametrize("dtype", ["float", "double", "__half", "__nv_bfloat16", "int"])
def test_low_inputs_are_all_below_zero(dtype: str) -> None:
    assert (inputs("low", dtype=dtype).astype(np.float64) < 0).all()


def test_low_inputs_underflow_every_exponential() -> None:
    """A row maximum that begins at 0 instead of -inf is then seen: exp(x - 0) is 0 for each x below -104 (float32)."""
    assert (inputs("low").astype(np.float64) < -104).all()

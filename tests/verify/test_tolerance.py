"""The derived tolerance, seen from outside."""

from collections.abc import Mapping

import numpy as np
import pytest

from kernel_forge.domain.finding import Finding
from kernel_forge.spec import bind
from kernel_forge.verify.cancellation import Expanding, Expansion
from kernel_forge.verify.inputs import Array, make_inputs
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.tolerance import derive
from tests.verify import kernels
from tests.verify.fake_device import read


def tolerance_of(contract: tuple[str, str], sizes: dict[str, int], kind: str = "one-signed", seed: int = 1) -> Array:
    spec, _ = read(*contract)
    bound = bind(spec, sizes, {})
    assert not isinstance(bound, Finding)
    evaluator = Evaluator.of(spec)
    inputs = make_inputs(spec, bound, kind, seed, evaluator.load)
    return derive(
        spec,
        bound,
        inputs,
        evaluator.evaluate(bound, inputs),
        lambda values, float_type: evaluator.evaluate(bound, values, float_type),
        reduces=evaluator.reduces(bound, inputs),
        troubled=False,
        seed=seed,
    )["y"].error


def inputs_of(contract: tuple[str, str], sizes: dict[str, int], kind: str, seed: int = 1) -> Mapping[str, Array]:
    spec, _ = read(*contract)
    bound = bind(spec, sizes, {})
    assert not isinstance(bound, Finding)
    return make_inputs(spec, bound, kind, seed, Evaluator.of(spec).load)


def test_it_grows_with_the_number_of_terms_but_not_relative_to_the_last_term() -> None:
    contract = (kernels.SUM[0], kernels.SUM[1] % 10)
    made = [float(tolerance_of(contract, {"n": n})[0]) for n in (10, 100, 1000, 10_000, 100_000)]
    assert made == sorted(made)
    assert made[-1] / 100_000 < 1e-3  # of the sum


def test_doubles_get_far_less_than_floats() -> None:
    single = tolerance_of((kernels.SUM[0], kernels.SUM[1] % 10), {"n": 1000})[0]
    double = tolerance_of((kernels.SUM_DOUBLE[0], kernels.SUM_DOUBLE[1] % 10), {"n": 1000})[0]
    assert double < single * 1e-7


def test_it_is_tight_for_one_operation() -> None:
    u = 2.0**-24
    for kind in ("centred", "large", "tiny", "spikes"):
        spec_inputs = tolerance_of(kernels.SCALE, {"n": 64}, kind)
        scale = np.median(spec_inputs)
        largest = {"centred": 20, "large": 2e5, "tiny": 2e-8, "spikes": 20}[kind]
        assert 0 < scale < 40 * u * largest


@pytest.mark.parametrize("kind", ["centred", "large", "tiny"])
def test_products_that_a_compiler_fuses_need_not_cancel(kind: str) -> None:
    """``fmaf(x, x, -(x * x))`` is the rounding of ``x * x``: what nvcc makes of a variance of one element."""
    contract = ("const float* x, float* y, int n", SQUARES)
    x = inputs_of(contract, {"n": 200}, kind)["x"]
    exact = x.astype(np.float64) ** 2  # 48 bits: exact in float64
    fused = np.abs(exact - (x * x).astype(np.float64))
    allowed = tolerance_of(contract, {"n": 200}, kind)
    normal = exact > 1e-30  # below, x * x has fewer bits
    assert (fused <= allowed)[normal].all()
    assert (allowed <= 16 * 2.0**-24 * exact)[normal].all()


SQUARES = """
reference = { y = "x * x - x ** 2" }
cases = [{ n = 10 }]
[args]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
"""


def test_it_is_repeatable() -> None:
    a, b = (tolerance_of(kernels.SCALE, {"n": 50}, seed=7) for _ in range(2))
    assert a.tobytes() == b.tobytes()


def test_pairs_that_nearly_agree_get_room_for_the_expanded_variance_and_others_do_not() -> None:
    contract = (kernels.ROWS[0], kernels.ROWS[1] % kernels.LAYER_NORM)
    many = tolerance_of(contract, {"rows": 20, "cols": 500}, "centred")
    assert many.max() < 1e-4
    pairs = tolerance_of(contract, {"rows": 2000, "cols": 2}, "large")
    assert pairs.max() > 100 * np.median(pairs)
    assert np.median(pairs) < 1e-4


@pytest.mark.parametrize("share", [1e-3, -1e-3, -10.0])
def test_expanding_arrays_move_sums_of_squared_differences_only(share: float) -> None:
    x = np.random.default_rng(0).normal(3, 1, (4, 50))
    y = np.random.default_rng(1).normal(3, 1, (4, 50))

    def both(function):  # type: ignore[no-untyped-def]
        expansion = Expansion(share)
        moved = np.asarray(function(Expanding.of(x, expansion), Expanding.of(y, expansion)))
        return moved, np.asarray(function(x, y)), expansion.used

    squares = (x**2).sum(axis=1) + 50 * x.mean(axis=1) ** 2
    for variance in (
        lambda a, b: a.var(axis=1),
        lambda a, b: np.var(a, axis=1),
        lambda a, b: np.mean((a - a.mean(axis=1, keepdims=True)) ** 2, axis=1),
        lambda a, b: np.square(a - np.mean(a, axis=1)[:, None]).sum(axis=1) / 50,
    ):
        moved, plain, used = both(variance)
        assert used
        np.testing.assert_allclose(moved, np.maximum(plain + share * squares / 50, 0), rtol=1e-9)
    moved, plain, _ = both(lambda a, b: ((a - b) * (a - b)).sum())
    np.testing.assert_allclose(moved, max(0.0, plain + share * ((x**2).sum() + (y**2).sum())), rtol=1e-9)
    for other in (
        lambda a, b: (a * b).sum(axis=1),
        lambda a, b: a @ b.T,
        lambda a, b: np.exp(a - a.max()).sum(),
        lambda a, b: np.abs(a - b).sum(),
        lambda a, b: (a - b) * (b - a),
        lambda a, b: np.where(a > b, a, b),
        lambda a, b: np.concatenate([a, b]).cumsum(),
    ):
        moved, plain, used = both(other)
        assert not used
        np.testing.assert_array_equal(moved, plain)


# Sums of about n ones, whose terms hardly move with the inputs.
@pytest.mark.parametrize(
    "reference",
    [
        "np.sum(np.exp(x * 1e-9))",
        "np.where(x > -1e9, np.exp(x * 1e-9), 0.0).sum()",
        "np.sum(np.concatenate([np.exp(x * 1e-9), np.zeros(3)]))",
        "np.einsum('i->', np.exp(x * 1e-9))",
        "np.dot(np.exp(x * 1e-9), np.ones(n))",
        "np.exp(x * 1e-9).dot(np.ones(n))",
        "np.tensordot(np.exp(x * 1e-9), np.ones(n), 1)",
        "np.cumsum(np.exp(x * 1e-9))[-1]",
        "np.add.accumulate(np.exp(x * 1e-9))[-1]",
    ],
)
def test_accumulating_terms_that_do_not_move_is_allowed_for_however_it_is_written(reference: str) -> None:
    """A serial float32 sum of n ones and their roundings errs by some u * sqrt(n) of the sum, at n = 1000."""
    block = (
        'cases = [{ n = 64 }]\nreference = { y = "%s" }\n\n[args]\nx = { shape = ["n"] }\n'
        'y = { shape = [1], role = "out" }'
    )
    n = 1000
    made = float(tolerance_of(("const float* x, float* y, int n", block % reference), {"n": n})[0])
    scale = 2.0**-24 * np.sqrt(n) * n
    assert 4 * scale < made < 40 * scale

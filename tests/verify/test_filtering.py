"""What the low precision of linear filtering adds to a tolerance."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_forge import wiring
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.expression import Expression
from kernel_forge.domain.outcome import Mismatch, Passed, Unavailable, Verdict
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role
from kernel_forge.domain.texture import Address, Filter, Read, Sampling
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify
from kernel_forge.verify.filtering import filtering_error, neighbour_spread
from kernel_forge.verify.inputs import Array
from tests.contracts.texture_suite import EXTENTS, coordinates, fetched
from tests.verify import kernels
from tests.verify.fake_device import read

ADDRESSES = [(a, n) for a in Address for n in (False, True) if n or a in (Address.CLAMP, Address.BORDER)]


def texture(sampling: Sampling, dimensions: int, dtype: DType = DType.FLOAT32) -> tuple[KernelSpec, BufferArg]:
    """A spec that has a texture ``t``; nothing else of it is asked."""
    shape = tuple(Expression.parse(str(n)) for n in EXTENTS[dimensions])
    arg = BufferArg("t", dtype, shape, Role.IN, texture=sampling)
    spec, _ = read(*kernels.SCALE)
    return replace(spec, args=(*spec.args, arg)), arg


def truncated(weights: Array) -> Array:
    return np.floor(weights * 256) / 256


def rounded(weights: Array) -> Array:
    return np.rint(weights * 256) / 256


@pytest.mark.parametrize("keep", [truncated, rounded])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize(("address", "normalized"), ADDRESSES)
def test_weights_of_eight_bits_stay_within_it(
    keep: Callable[[Array], Array], dimensions: int, address: Address, normalized: bool
) -> None:
    sampling = Sampling(Filter.LINEAR, address, normalized)
    spec, _ = texture(sampling, dimensions)
    at = tuple(c.astype(np.float64) for c in coordinates(EXTENTS[dimensions], normalized))
    for seed in range(5):
        texels = np.random.default_rng(seed).standard_normal(EXTENTS[dimensions]) * 10.0 ** (seed - 2)

        def evaluate(values: Mapping[str, Any], _kind: Any) -> dict[str, Array]:
            return {"y": 3.0 * fetched(values["t"], at, sampling)}

        reference = evaluate({"t": texels}, None)
        allowed = filtering_error(spec, {"t": texels}, reference, evaluate, seed)["y"]
        error = np.abs(3.0 * fetched(texels, at, sampling, keep) - reference["y"])
        assert (error <= allowed).all(), (seed, (error / allowed).max())
        # Not vacuous: per dimension 2^-8 of what the texels span at most, from the two ways of moving them.
        assert allowed.max() <= 3 * 3.0 * 2.0**-8 * dimensions * (np.ptp(texels) + np.abs(texels).max())


def test_differences_of_fetches_have_it_too() -> None:
    # Moved all the same way, the texels' spreads cancel in a difference; at random they do not.
    sampling = Sampling(Filter.LINEAR)
    spec, _ = texture(sampling, 1)
    x = np.linspace(1, 6, 64)
    texels = np.random.default_rng(4).standard_normal(7)

    def difference(t: Any, keep: Callable[[Array], Array] = lambda w: w) -> Array:
        return fetched(t, (x + 0.3,), sampling, keep) - fetched(t, (x - 0.3,), sampling, keep)

    def evaluate(values: Mapping[str, Any], _kind: Any) -> dict[str, Array]:
        return {"y": difference(values["t"])}

    allowed = filtering_error(spec, {"t": texels}, {"y": difference(texels)}, evaluate, 0)["y"]
    assert (np.abs(difference(texels, rounded) - difference(texels)) <= allowed).all()


def test_a_flat_texture_needs_none() -> None:
    sampling = Sampling(Filter.LINEAR)
    spec, arg = texture(sampling, 2)
    flat = np.full(EXTENTS[2], 7.0)
    assert not neighbour_spread(arg, flat).any()
    at = (np.array([2.2]), np.array([3.3]))

    def evaluate(values: Mapping[str, Any], _kind: Any) -> dict[str, Array]:
        return {"y": fetched(values["t"], at, sampling)}

    assert filtering_error(spec, {"t": flat}, evaluate({"t": flat}, None), evaluate, 0)["y"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("address", "expected"),
    # By hand for 0 5 1: each with its neighbours, and beyond the edge itself, zero or the other end.
    [(Address.CLAMP, [5, 5, 4]), (Address.MIRROR, [5, 5, 4]), (Address.BORDER, [5, 5, 5]), (Address.WRAP, [5, 5, 5])],
)
def test_the_spread_of_neighbours(address: Address, expected: list[float]) -> None:
    _, arg = texture(Sampling(Filter.LINEAR, address, normalized=True), 1)
    assert neighbour_spread(arg, np.array([0.0, 5.0, 1.0])).tolist() == expected


def test_integers_may_step_where_a_blend_is_rounded() -> None:
    sampling = Sampling(Filter.LINEAR, read=Read.NORMALIZED)
    spec, _ = texture(sampling, 1, DType.UINT8)
    texels = np.array([0, 255, 0, 0, 0, 0, 0], np.int64)

    def evaluate(values: Mapping[str, Any], _kind: Any) -> dict[str, Array]:
        y = fetched(values["t"] / 255, (np.array([1.0, 5.0]),), sampling)
        return {"y": np.rint(y * 255).astype(np.int64)}

    # Half way between 0 and 255: 1/256 of the weight is a step of one or two; between zeros there is none.
    allowed = filtering_error(spec, {"t": texels}, evaluate({"t": texels}, None), evaluate, 0)["y"]
    assert 1 <= allowed[0] <= 4 and allowed[1] == 0


BLUR = """// /// kernel-forge
// kernel = "blur"
// reference = { y = "%s" }
// cases = [{ n = 100 }]
// %s
//
// [args]
// t = { shape = ["n"], dtype = "%s", texture = { filter = "linear"%s } }
// y = { shape = ["n"], role = "out" }
//
// [launch]
// grid = "cdiv(n, 64)"
// block = 64
// ///
__global__ void blur(cudaTextureObject_t t, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = tex1D<float>(t, i + %sf);
}
"""
MIX = "0.7 * t + 0.3 * t[np.minimum(np.arange(n) + 1, n - 1)]"


def emulated(reference: str, offset: str, *, extra: str = "", dtype: str = "float", read_as: str = "") -> Verdict:
    device = wiring.device("emulator")
    if device.info().unavailable is not None:
        pytest.skip(str(device.info().unavailable))
    source = parse(BLUR % (reference, extra, dtype, read_as, offset), str(Path(__file__).with_name("blur.cu")))
    reading = read_specs(source, None)
    assert not reading.problems, [p.message for p in reading.problems]
    return verify(reading.specs[0], source, device, seed=3)


def test_a_filtered_kernel_passes_and_says_so() -> None:
    verdict = emulated(MIX, "0.8")
    assert isinstance(verdict.outcome, Passed), verdict.outcome
    assert any("t with weights of 8 bits" in note for note in verdict.notes)
    assert "no texels" in verdict.skipped["n = 0"]


@pytest.mark.parametrize("offset", ["0.82", "0.5", "1.3"])
def test_a_wrong_place_between_texels_is_found(offset: str) -> None:
    assert isinstance(emulated(MIX, offset).outcome, Mismatch)


def test_a_reference_of_whole_texels_only_asks_for_a_tolerance() -> None:
    whole = "np.arange(256.0)[t] / 255"  # an index must be a whole number
    read_as = ', read = "normalized"'
    outcome = emulated(whole, "0.5", dtype="uchar", read_as=read_as).outcome
    assert isinstance(outcome, Unavailable) and outcome.of_spec
    assert "tolerance = {" in outcome.reason and "linear filtering of t" in outcome.reason
    told = emulated(whole, "0.5", extra="tolerance = { absolute = 1e-2 }", dtype="uchar", read_as=read_as)
    assert isinstance(told.outcome, Passed), told.outcome

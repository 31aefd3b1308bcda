"""One set of inputs for many configurations: what is let through, exactly and roughly."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.measurement import sampled
from kernel_forge.domain.outcome import Mismatch, Unavailable
from kernel_forge.ports import Artifact
from kernel_forge.spec import BoundCase, bind
from kernel_forge.verify import gate as gate_module
from kernel_forge.verify.expectation import Expected
from kernel_forge.verify.gate import Gate
from tests.verify.fake_device import FakeDevice, read
from tests.verify.kernels import ROWS, SCALE, SUM, Flat, sum_of

ARTIFACT = Artifact("fake", ("k",))


def of(contract: tuple[str, str], kernel: Callable[..., Any], size: object = ()) -> tuple[Gate, BoundCase]:
    spec, _ = read(contract[0], contract[1] % size)
    bound = bind(spec, spec.cases[0], {})
    assert isinstance(bound, BoundCase)
    return Gate(spec, FakeDevice(kernel), seed=3, deadline=time.monotonic() + 30), bound


def expected(gate: Gate, bound: BoundCase) -> Expected:
    found = gate.expected(bound, lambda: ARTIFACT, 5.0)
    assert isinstance(found, Expected)
    return found


def scale(x: Flat, y: Flat, n: int) -> None:
    y[:] = np.float32(2.5) * x


def test_right_is_let_through_and_wrong_is_not() -> None:
    def wrong(x: Flat, y: Flat, n: int) -> None:
        scale(x, y, n)
        y[7] *= np.float32(1.001)

    for kernel, is_right in ((scale, True), (wrong, False)):
        gate, bound = of(SCALE, kernel)
        found = gate.check(bound, ARTIFACT, expected(gate, bound), 5.0)
        assert (found is None) is is_right
        if found is not None:
            assert isinstance(found, Mismatch)
            assert found.index == (7,)


def test_the_same_arrays_for_every_configuration() -> None:
    """Trials of equal buffers are sent to a GPU once, which goes by the arrays themselves."""
    gate, bound = of(SCALE, scale)
    first, second = gate.inputs(bound), gate.inputs(bound)
    assert not isinstance(first, Unavailable)
    assert first is second
    requests = [gate.request(bound, first, 1.0) for _ in range(2)]
    assert requests[0].buffers[0].data is not None
    assert np.shares_memory(requests[0].buffers[0].data, requests[1].buffers[0].data)  # type: ignore[arg-type]


def test_a_quick_reference_is_compared_exactly() -> None:
    gate, bound = of(SCALE, scale)
    found = gate.quickly(bound, lambda: ARTIFACT, 5.0)
    assert not found.is_rough
    assert found.expected is expected(gate, bound)


@pytest.mark.parametrize("error", [0.0, 0.5, 2.0])
def test_a_slow_one_is_compared_within_a_thousandth_of_its_size(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of an element is its own and the root of the mean square of all."""
    monkeypatch.setattr(gate_module, "A_MOMENT", 0.0)
    gate, bound = of(SCALE, scale)
    found = gate.quickly(bound, lambda: ARTIFACT, 5.0)
    assert found.is_rough
    assert isinstance(found.expected, Expected)
    want = found.expected.reference["y"]
    typical = math.sqrt(float(np.mean(want**2)))
    got = want.astype(np.float32)
    got[5] += np.float32(error * 1e-3 * (abs(want[5]) + typical))
    assert (gate.wrong(bound, found.expected, {"y": got}) is None) is (error < 1)


def test_rough_is_never_stricter_than_a_smaller_case_suggests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of normal numbers cancels: its exact tolerance is a large share of what is left."""
    monkeypatch.setattr(gate_module, "A_MOMENT", 0.0)
    monkeypatch.setattr(gate_module, "ROUGH", 0.0)
    gate, bound = of(SUM, sum_of, 1000)
    small = expected(gate, bound)
    share = float(small.tolerance["y"].error[0] / (2 * abs(small.reference["y"][0])))
    found = gate.quickly(bound, lambda: ARTIFACT, 5.0).expected
    assert isinstance(found, Expected)
    assert found.tolerance["y"].error[0] == pytest.approx(16 * share * 2 * abs(small.reference["y"][0]))


def test_not_a_number_is_matched_by_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "A_MOMENT", 0.0)
    gate, bound = of(ROWS, lambda *_: None, "np.where(x > 0, x, np.nan)")
    found = gate.quickly(bound, lambda: ARTIFACT, 5.0).expected
    assert isinstance(found, Expected)
    want = found.reference["y"].astype(np.float32)
    assert np.isnan(want).any()
    assert gate.wrong(bound, found, {"y": want.reshape(-1)}) is None
    assert gate.wrong(bound, found, {"y": np.nan_to_num(want).reshape(-1)}) is not None


def test_a_reference_that_fails_is_no_verdict() -> None:
    gate, bound = of(ROWS, lambda *_: None, "x.reshape(3, 3)")
    found = gate.quickly(bound, lambda: ARTIFACT, 5.0).expected
    assert isinstance(found, Unavailable)
    assert found.of_spec


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_a_sample_names_the_place_in_the_whole(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6 x 100 elements every 101st is looked at (100 has divisors in common with 600), the last one among them."""
    gate, bound = of(ROWS, lambda *_: None, "2 * x")
    monkeypatch.setattr(gate_module, "A_MOMENT", 0.0)
    found = gate.glance(bound, 6, lambda: ARTIFACT, 5.0)
    assert found.is_rough
    assert isinstance(found.expected, Expected)
    whole = gate.evaluator.evaluate(bound, gate.inputs(bound))["y"]  # type: ignore[arg-type]
    places = range(whole.size)[sampled(whole.size, 6)]
    got = whole.reshape(-1)[list(places)].astype(np.float32)
    assert gate.wrong_in_sample(bound, found.expected, {"y": got}, 6) is None
    got[1] += 1
    wrong = gate.wrong_in_sample(bound, found.expected, {"y": got}, 6, allowed=share)
    if share >= 1 / len(places):
        assert wrong is None
        return
    assert isinstance(wrong, Mismatch)
    assert wrong.index == np.unravel_index(places[1], whole.shape)
    assert f"{len(places)} of its {whole.size} elements were looked at" in wrong.message


def test_what_was_forgotten_is_made_again_the_same() -> None:
    gate, bound = of(SCALE, scale)
    first = gate.inputs(bound)
    gate.forget(bound)
    again = gate.inputs(bound)
    assert not isinstance(first, Unavailable) and not isinstance(again, Unavailable)
    assert first is not again
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not any(array.flags.writeable for array in again.values())

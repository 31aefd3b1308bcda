"""Mistakes that stay small are found."""

import numpy as np
import pytest

from kernel_forge.domain.outcome import MemoryFault, Mismatch, MismatchKind
from tests.verify import kernels
from tests.verify.fake_device import Kernel, check
from tests.verify.kernels import Flat, bfloat16, sequential


def half_inputs(x: Flat, y: Flat, n: int) -> None:
    y[:] = np.float32(2.5) * x.astype(np.float16).astype(np.float32)


def bfloat16_intermediate(x: Flat, y: Flat, n: int) -> None:
    y[:] = bfloat16(np.float32(2.5) * x)


def float_accumulator(x: Flat, y: Flat, n: int) -> None:
    y[0] = sequential(x, np.float32)


def flushed(x: Flat, y: Flat, n: int) -> None:
    product = np.float32(2.5) * x
    y[:] = np.where(np.abs(product) < 1e-6, np.float32(0), product)


def scaled(x: Flat, y: Flat, n: int) -> None:
    y[:] = np.float32(2.5 * 1.001) * x


def without_last(x: Flat, y: Flat, n: int) -> None:
    y[0] = sequential(x[:-1])


def scaled_softmax(x: Flat, y: Flat, rows: int, cols: int) -> None:
    kernels.softmax(x, y, rows, cols)
    y *= np.float32(1.001)


def uncentred(x: Flat, y: Flat, rows: int, cols: int) -> None:
    """Layer norm that takes the mean of squares for the variance."""
    m = x.reshape(rows, cols)
    mean = m.mean(axis=1, keepdims=True)
    y[:] = ((m - mean) / np.sqrt((m * m).mean(axis=1, keepdims=True) + np.float32(1e-5))).reshape(-1)


SOFTMAX = (kernels.ROWS[0], kernels.ROWS[1] % kernels.SOFTMAX)
LAYER_NORM = (kernels.ROWS[0], kernels.ROWS[1] % kernels.LAYER_NORM)
WRONG: dict[str, tuple[tuple[str, str], Kernel]] = {
    "inputs rounded to half": (kernels.SCALE, half_inputs),
    "bfloat16 in between": (kernels.SCALE, bfloat16_intermediate),
    "tiny results flushed": (kernels.SCALE, flushed),
    "scaled by 1 + 1e-3": (kernels.SCALE, scaled),
    "float accumulator of doubles": ((kernels.SUM_DOUBLE[0], kernels.SUM_DOUBLE[1] % 5000), float_accumulator),
    "last term dropped": ((kernels.SUM[0], kernels.SUM[1] % 5000), without_last),
    "last of very many terms dropped": ((kernels.SUM[0], kernels.SUM[1] % 100000), without_last),
    "softmax scaled": (SOFTMAX, scaled_softmax),
    "variance about zero": (LAYER_NORM, uncentred),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("seed", range(3))
def test_wrong_values_are_found(name: str, seed: int) -> None:
    (signature, block), kernel = WRONG[name]
    outcome = check(signature, block, kernel, seed=seed).outcome
    assert isinstance(outcome, Mismatch), outcome
    assert outcome.kind is MismatchKind.WRONG_VALUE


def test_output_never_written() -> None:
    def nothing(x: Flat, y: Flat, n: int) -> None:
        y[: n // 2] = np.float32(2.5) * x[: n // 2]

    outcome = check(*kernels.SCALE, nothing).outcome
    assert isinstance(outcome, Mismatch)
    assert outcome.kind is MismatchKind.NOT_WRITTEN
    assert outcome.got is None


def test_a_failure_tells_the_launches_of_its_case() -> None:
    """Numbers that a launch was read with show there: a block of 32 threads whatever the tunable is, say."""
    found = check(*kernels.SCALE, flushed, grid=7)
    (launch,) = found.launches
    assert (launch.kernel, launch.grid, launch.block, launch.shared_bytes) == ("k", (7, 1, 1), (32, 1, 1), 0)
    assert check(kernels.SUM[0], kernels.SUM[1] % 100, kernels.sum_of).launches == ()


def test_echo_and_constant_are_found() -> None:
    def echo(x: Flat, y: Flat, n: int) -> None:
        y[:] = x

    def constant(x: Flat, y: Flat, n: int) -> None:
        y[:] = 1

    for kernel in (echo, constant):
        assert isinstance(check(*kernels.SCALE, kernel).outcome, Mismatch)


def test_constant_within_a_loose_tolerance_is_found() -> None:
    def constant(x: Flat, y: Flat, n: int) -> None:
        y[:] = 0

    block = kernels.SCALE[1].replace("\n\n[args]", "\ntolerance = { absolute = 1e6 }\n\n[args]")
    verdict = check(kernels.SCALE[0], block, constant)
    assert isinstance(verdict.outcome, Mismatch)
    assert verdict.outcome.kind is MismatchKind.INSENSITIVE
    assert any("tolerance set in the spec" in note for note in verdict.notes)


def test_changed_input_is_found() -> None:
    def changes_input(x: Flat, y: Flat, n: int) -> None:
        y[:] = np.float32(2.5) * x
        x[:1] = 0

    outcome = check(*kernels.SCALE, changes_input).outcome
    assert isinstance(outcome, MemoryFault)
    assert outcome.kind == "read-only"


def test_stale_output_from_the_first_run_is_found() -> None:
    """An element that is left alone holds other poison in every run, so one lucky pattern is not enough."""

    def adds(x: Flat, y: Flat, n: int) -> None:
        y += np.float32(2.5) * x

    assert isinstance(check(*kernels.SCALE, adds).outcome, Mismatch)

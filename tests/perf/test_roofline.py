"""Rates, by hand."""

import pytest

from kernel_forge.domain.measurement import Peaks
from kernel_forge.perf import attained, compulsory_bytes
from tests.verify.fake_device import read

PEAKS = Peaks(4e12, {"float32": 60e12}, "measured on a test")


def test_traffic_counts_inputs_once_outputs_once_and_both_for_inout() -> None:
    spec, _ = read(
        "const float* x, double* y, __half* z, int n",
        'cases = [{ n = 10 }]\nreference = { y = "x", z = "z" }\n\n[args]\nx = { shape = ["n"] }\n'
        'y = { shape = ["n"], role = "out" }\nz = { shape = ["n"], role = "inout" }',
    )
    assert compulsory_bytes(spec, {"x": 10, "y": 10, "z": 10}) == 40 + 80 + 2 * 20


def test_a_copy_at_half_the_bandwidth() -> None:
    made = attained(1e-3, 2_000_000_000, 1_000_000, "float32", PEAKS)
    assert made.bytes_per_second == pytest.approx(2e12)
    assert made.bandwidth_share == pytest.approx(0.5)
    assert made.bound == "memory"
    assert made.share == pytest.approx(0.5)
    assert made.operations_per_second == pytest.approx(1e9)


def test_a_product_at_a_third_of_the_arithmetic() -> None:
    made = attained(1e-3, 1_000_000, 20_000_000_000, "float32", PEAKS)
    assert made.bound == "compute"
    assert made.share == pytest.approx(1 / 3)


@pytest.mark.parametrize(("operations", "kind"), [(None, "float32"), (5, "float16 tensor")])
def test_without_a_count_or_a_peak_only_memory_is_told(operations: int | None, kind: str) -> None:
    made = attained(1e-3, 4_000_000_000, operations, kind, PEAKS)
    assert (made.operations_per_second, made.arithmetic_share, made.arithmetic) == (None, None, None)
    assert (made.bound, made.share) == (None, None)
    assert made.bandwidth_share == pytest.approx(1.0)

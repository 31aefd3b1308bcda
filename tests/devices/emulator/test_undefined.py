"""Operations whose result C++ leaves open and a GPU does not: the run ends there, unavailable rather than wrong.

What a GPU does: PTX ISA, `cvt` (out of range is clamped), `shl` and `shr` (counts above the width are clamped).
"""

import numpy as np
import pytest

from kernel_forge.domain.outcome import Ran, Unavailable
from tests.devices.emulator.shim import INCLUDES, PATH, outcome

KERNEL = """__global__ void k(const float* x, int* n, unsigned long long* y) {
  int i = threadIdx.x;
  %s
}
"""


def ended(statement: str, x: float = 0, n: int = 0, before: str = "") -> object:
    buffers = {"x": np.full(4, x, np.float32), "n": np.full(4, n, np.int32), "y": np.zeros(4, np.uint64)}
    return outcome(INCLUDES + before + KERNEL % statement, buffers, block=4)


@pytest.mark.parametrize(
    ("statement", "x", "words"),
    [
        ("n[i] = (int)(x[i] * 2);", 2e9, "the value 4e+09 is out of the range of int:"),
        ("n[i] = x[i];", -3e9, "the value -3e+09 is out of the range of int:"),
        ("y[i] = (unsigned)x[i];", -3, "the value -3 is out of the range of unsigned int:"),
        ("y[i] = static_cast<unsigned char>(x[i]);", 256, "the value 256 is out of the range of unsigned char:"),
        ("y[i] = x[i];", float("inf"), "the value inf is out of the range of"),
        ("n[i] = x[i];", float("nan"), "nan is out of the range of int:"),
        ("double d = x[i]; n[i] = (short)(d / 3);", 1e6, "the value 333333.33333333331 is out of the range of short"),
    ],
)
def test_a_conversion_out_of_range_ends_the_run_at_its_line(statement: str, x: float, words: str) -> None:
    failed = ended(statement, x)
    assert isinstance(failed, Unavailable)
    assert words in failed.reason
    assert "__float2int_rz" in failed.reason
    assert failed.location is not None
    assert failed.location.path == PATH
    assert failed.location.range.start.line == 4  # zero-based; two includes and two lines before it


@pytest.mark.parametrize(
    ("statement", "n", "words"),
    [
        ("y[i] = 1u << n[i];", 32, "a shift of unsigned int by 32:"),
        ("n[i] = 0x7fffffffu >> (32 - n[i]);", 0, "a shift of unsigned int by 32:"),
        ("n[i] = 1 << n[i];", -1, "a shift of int by -1:"),
        ("y[i] <<= n[i] + i;", 64, "by 64:"),
        ("n[i] = (signed char)n[i] >> (short)(n[i] - 200);", 100, "a shift of int by -100:"),
    ],
)
def test_a_shift_by_the_width_or_more_ends_the_run_at_its_line(statement: str, n: int, words: str) -> None:
    failed = ended(statement, n=n)
    assert isinstance(failed, Unavailable)
    assert words in failed.reason
    assert failed.location is not None
    assert (failed.location.path, failed.location.range.start.line) == (PATH, 4)


@pytest.mark.parametrize(
    ("statement", "x", "n", "value"),
    [
        ("n[i] = (int)x[i];", -2147483648.0, 0, -2147483648),
        ("n[i] = (unsigned char)x[i];", 255.9, 0, 255),
        ("n[i] = (unsigned)x[i];", -0.9, 0, 0),
        ("n[i] = (bool)x[i];", 1e20, 0, 1),
        ("n[i] = 1 << n[i];", 0, 31, -2147483648),
        ("n[i] = -5 << n[i];", 0, 1, -10),
        # CUDA's own conversions say what they do out of range.
        ("n[i] = __float2int_rz(x[i]);", 1e20, 0, 2147483647),
        ("n[i] = __float2uint_rn(x[i]);", -3, 0, 0),
        ("n[i] = __float2int_rz(x[i]);", float("nan"), 0, 0),
        ("n[i] = __half2short_rz(__float2half(x[i]));", 60000, 0, 32767),
        ("n[i] = __funnelshift_lc(0xffffffffu, 7u, n[i]);", 0, 32, -1),
        ("n[i] = __funnelshift_l(0u, 7u, n[i]);", 0, 32, 7),
    ],
)
def test_what_has_one_result_everywhere_runs(statement: str, x: float, n: int, value: int) -> None:
    ran = ended(statement, x, n)
    assert isinstance(ran, Ran), ran
    assert ran.contents["n"].tolist() == [value] * 4

"""Headers that are read on demand: fp8, complex numbers, constants."""

# CUDA text keeps its own line breaks.
# ruff: noqa: E501

import math

import ml_dtypes
import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from tests.devices.emulator.shim import Array, run, table

F32, F64, U8, I32 = DType.FLOAT32, DType.FLOAT64, DType.UINT8, DType.INT32
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def saturated(x: Array, kind: type[np.generic], largest: float) -> Array:
    """NumPy's nearest value, but what overflows (infinities too) is the largest finite one, as CUDA's constructors do."""
    return np.where(np.isnan(x), x, np.clip(x, -largest, largest)).astype(kind)


def test_8_bit_floats() -> None:
    # Every value of the format and the floats around the middle between two of them.
    for name, kind, largest in (("e4m3", ml_dtypes.float8_e4m3fn, 448.0), ("e5m2", ml_dtypes.float8_e5m2, 57344.0)):
        bits = np.arange(256, dtype=np.uint8)
        values = np.sort(bits.view(kind).astype(np.float32)[np.isfinite(bits.view(kind).astype(np.float32))])
        middle = (values[1:] + values[:-1]) / 2
        x = np.concatenate([values, middle, np.nextafter(middle, np.float32(9e9)), np.nextafter(middle, np.float32(-9e9)),
                            np.array([500, -1e9, np.inf, -np.inf, np.nan, 1e-9, 0.0, -0.0], np.float32)])  # fmt: skip
        got = table(
            {"x": x},
            [(f"__nv_fp8_{name}(x).__x", U8), (f"__nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_{name.upper()})", U8)],
            "#include <cuda_fp8.h>",
        )
        number = ~np.isnan(x)
        assert np.array_equal(got[0][number], saturated(x, kind, largest).view(np.uint8)[number])
        assert (got[0][~number] & 0x7F == 0x7F).all()
        assert np.array_equal(got[1][number], x.astype(kind).view(np.uint8)[number])
        text = (
            "#include <cuda_fp8.h>\n__global__ void k(const unsigned char* b, float* y, float* z, int* i) { int t = threadIdx.x;\n"
            f"  __nv_fp8_{name} v; v.__x = b[t]; y[t] = float(v); i[t] = int(v);\n"
            f"  if (t < 64) {{ float4 f = float4(((const __nv_fp8x4_{name}*)b)[t]); ((float4*)z)[t] = f; }} }}\n"
        )
        after = run(
            text,
            {"b": bits, "y": np.zeros(256, np.float32), "z": np.zeros(256, np.float32), "i": np.zeros(256, np.int32)},
            block=256,
        )
        want = bits.view(kind).astype(np.float32)
        assert np.array_equal(after["y"], want, equal_nan=True) and np.array_equal(after["z"], want, equal_nan=True)
        finite = np.isfinite(want)
        assert np.array_equal(after["i"][finite], np.trunc(want[finite]).astype(np.int32))


def test_complex_numbers() -> None:
    rng = np.random.default_rng(1)
    columns = {name: rng.normal(size=200) for name in "abcd"}
    a, b = columns["a"] + 1j * columns["b"], columns["c"] + 1j * columns["d"]
    calls = {
        "cuCadd(p, q)": a + b, "cuCsub(p, q)": a - b, "cuCmul(p, q)": a * b, "cuCdiv(p, q)": a / b, "cuConj(p)": a.conj(),
        "cuCfma(p, q, p)": a * b + a,
    }  # fmt: skip
    pre = "#include <cuComplex.h>\n"
    rows: list[tuple[str, DType]] = [
        ("cuCabs(make_cuDoubleComplex(a, b))", F64),
        ("cuCabsf(make_cuComplex(3.0f, 4.0f))", F32),
    ]
    for call in calls:
        spelled = call.replace("p", "make_cuDoubleComplex(a, b)").replace("q", "make_cuDoubleComplex(c, d)")
        rows += [(f"cuCreal({spelled})", F64), (f"cuCimag({spelled})", F64)]
    got = table(columns, rows, pre)
    assert np.allclose(got[0], np.abs(a), rtol=1e-15) and (got[1] == 5).all()
    for i, want in enumerate(calls.values()):
        assert np.allclose(got[2 + 2 * i] + 1j * got[3 + 2 * i], want, rtol=1e-14, atol=1e-15)
    huge = table(
        {"x": np.array([1e200])},
        [("cuCreal(cuCdiv(make_cuDoubleComplex(x, x), make_cuDoubleComplex(x, x)))", F64)],
        pre,
    )
    assert huge[0][0] == 1


def test_constants() -> None:
    expected = {
        "CUDART_PI": math.pi, "CUDART_PIO2": math.pi / 2, "CUDART_LN2": math.log(2), "CUDART_LNT": math.log(10),
        "CUDART_L2E": math.log2(math.e), "CUDART_LGE": math.log10(math.e), "CUDART_LG2": math.log10(2),
        "CUDART_SQRT_TWO": math.sqrt(2), "CUDART_SQRT_HALF": math.sqrt(0.5), "CUDART_SQRT_2PI": math.sqrt(2 * math.pi),
        "CUDART_THIRD": 1 / 3, "CUDART_LNPI": math.log(math.pi), "CUDART_2_OVER_PI": 2 / math.pi, "CUDART_INF": math.inf,
        "CUDART_TWO_TO_54": 2.0**54, "CUDART_MIN_DENORM": 5e-324, "CUDART_PI_LO": 1.2246467991473532e-16,
        "CUDART_LN2_X_1024": 1024 * math.log(2),
    }  # fmt: skip
    rows = [(name, F64) for name in expected] + [
        ("1.0 / CUDART_NEG_ZERO", F64),
        ("CUDART_PI_F", F32),
        ("CUDART_SQRT_TWO_F", F32),
        ("CUDART_NAN_F", F32),
    ]
    got = table({"x": np.zeros(1)}, rows, "#include <math_constants.h>")
    for result, (name, want) in zip(got, expected.items(), strict=False):
        assert math.isclose(result[0], want, rel_tol=3e-16) or result[0] == want, name
    assert got[-4][0] == -math.inf and got[-3][0] == np.float32(math.pi) and got[-2][0] == np.float32(math.sqrt(2))
    assert np.isnan(got[-1][0])

"""Math functions: accuracy in units in the last place against float64 or known values, and special values.

CUDA documents its own errors (CUDA C++ programming guide, mathematical functions); the emulator rounds an accurate
result, so that what is left are the one or two units of the C library.
"""

# CUDA text keeps its own line breaks.
# ruff: noqa: E501

import math

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from tests.devices.emulator.shim import Array, run, table

F32, F64, I32 = DType.FLOAT32, DType.FLOAT64, DType.INT32
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def ulps(got: Array, exact: Array) -> Array:
    """Distance to the exact values (float64) in units in the last place of ``got``'s type."""
    near = exact.astype(got.dtype)
    return np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(near)).astype(np.float64)


def test_float_functions_are_within_two_units() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 3, 4000), rng.uniform(-80, 80, 2000), 10.0 ** rng.uniform(-30, 30, 2000)]).astype(
        np.float32
    )
    y = rng.permutation(np.concatenate([rng.normal(0, 2, 7000), rng.integers(-5, 6, 1000)])).astype(np.float32)
    a, b = x.astype(np.float64), y.astype(np.float64)
    big = np.abs(a) > 80
    a_small = np.where(big, 1.5, a)
    exact: dict[str, Array] = {
        "expf(s)": np.exp(a_small), "exp2f(s)": np.exp2(a_small), "expm1f(s)": np.expm1(a_small),
        "logf(p)": np.log(np.abs(a)), "log2f(p)": np.log2(np.abs(a)), "log10f(p)": np.log10(np.abs(a)),
        "log1pf(p)": np.log1p(np.abs(a)), "sinf(s)": np.sin(a_small), "cosf(s)": np.cos(a_small),
        "tanf(s)": np.tan(a_small), "tanhf(x)": np.tanh(a), "atanf(x)": np.arctan(a), "sinhf(s)": np.sinh(a_small),
        "coshf(s)": np.cosh(a_small), "asinhf(x)": np.arcsinh(a), "cbrtf(x)": np.cbrt(a), "sqrtf(p)": np.sqrt(np.abs(a)),
        "rsqrtf(p)": 1 / np.sqrt(np.abs(a)), "rcbrtf(x)": 1 / np.cbrt(a), "exp10f(y)": 10.0**b, "hypotf(x, y)": np.hypot(a, b),
        "rhypotf(x, y)": 1 / np.hypot(a, b), "atan2f(x, y)": np.arctan2(a, b), "__expf(s)": np.exp(a_small),
        "__logf(p)": np.log(np.abs(a)), "__sinf(s)": np.sin(a_small), "__cosf(s)": np.cos(a_small), "__fdividef(x, y)": a / b,
        "fdividef(x, y)": a / b, "norm3df(x, y, s)": np.sqrt(a * a + b * b + a_small**2),
        "rnorm3df(x, y, s)": 1 / np.sqrt(a * a + b * b + a_small**2),
        "norm4df(x, y, s, y)": np.sqrt(a * a + 2 * b * b + a_small**2), "erff(y)": np.vectorize(math.erf)(b),
        "erfcf(y)": np.vectorize(math.erfc)(b), "tgammaf(g)": np.vectorize(math.gamma)(np.abs(b) + 0.5),
        "lgammaf(g)": np.vectorize(math.lgamma)((np.abs(y) + np.float32(0.5)).astype(np.float64)),
        "normcdff(y)": np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(b), "fmaf(x, y, s)": a * b + a_small,
        "__powf(p, y)": np.abs(a) ** b, "powf(p, y)": np.abs(a) ** b,
    }  # fmt: skip
    exact["tgammaf(g)"] = np.vectorize(math.gamma)((np.abs(y) + np.float32(0.5)).astype(np.float64))
    arguments = {
        "x": x, "y": y, "s": a_small.astype(np.float32), "p": np.abs(x), "g": (np.abs(y) + np.float32(0.5)),
    }  # fmt: skip
    for got, (call, want) in zip(table(arguments, [(c, F32) for c in exact]), exact.items(), strict=True):
        ordinary = (np.abs(want) > 1.2e-38) & (np.abs(want) < 3.4e38)
        worst = ulps(got[ordinary], want[ordinary]).max()
        assert worst < (5 if call.startswith("tgamma") else 2.5), (call, worst)


def test_double_functions_are_within_a_few_units() -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(0, 3, 2000), rng.uniform(-300, 300, 1000)])
    p = np.abs(x) + 1e-3
    exact: dict[str, Array] = {
        "exp(x)": np.exp(x), "log(p)": np.log(p), "sin(x)": np.sin(x), "tanh(x)": np.tanh(x), "cbrt(x)": np.cbrt(x),
        "rsqrt(p)": 1 / np.sqrt(p), "rcbrt(x)": 1 / np.cbrt(x), "exp10(x)": 10.0**x, "rhypot(x, p)": 1 / np.hypot(x, p),
        "norm3d(x, p, 1.0)": np.sqrt(x * x + p * p + 1), "norm4d(x, p, 1.0, 2.0)": np.sqrt(x * x + p * p + 5),
        "rnorm4d(x, p, 1.0, 2.0)": 1 / np.sqrt(x * x + p * p + 5), "erfinv(erf(x * 0.001))": x * 0.001,
        "fdivide(x, p)": x / p, "sinpi(x / 1024)": np.sin(math.pi * (x / 1024)),
    }  # fmt: skip
    for got, (call, want) in zip(table({"x": x, "p": p}, [(c, F64) for c in exact]), exact.items(), strict=True):
        ordinary = np.isfinite(want) & (np.abs(want) > 1e-300)
        assert ulps(got[ordinary], want[ordinary]).max() <= 4, call


def test_tails() -> None:
    # normcdf(-x) from the continued fraction of Mills' ratio, erfcx from the asymptotic series (Abramowitz and Stegun
    # 26.2.14 and 7.1.23), both evaluated in exact rational arithmetic and exp through extended precision by hand.
    from decimal import Decimal, getcontext

    getcontext().prec = 60
    two_pi = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")

    def mills(v: Decimal) -> Decimal:
        fraction = v
        for k in range(400, 0, -1):
            fraction = v + k / fraction
        return 1 / fraction

    x = np.array([3.1, 5.7, 10.3, 20.9, 30.123, 37.3])
    normal = [float((-(Decimal(v) ** 2) / 2).exp() / two_pi.sqrt() * mills(Decimal(v))) for v in x.tolist()]
    half_root_pi = (two_pi / 2).sqrt() / 2
    # erfcx(v) = 2 / sqrt(pi) * exp(v^2) * integral = mills(v sqrt 2) sqrt(2 / pi)
    scaled = [float(mills(Decimal(v) * Decimal(2).sqrt()) * Decimal(2).sqrt() / (2 * half_root_pi)) for v in x.tolist()]
    got = table(
        {"x": x}, [("normcdf(-x)", F64), ("erfcx(x)", F64), ("1 - normcdf(x)", F64), ("normcdfinv(normcdf(-x))", F64)]
    )
    assert ulps(got[0], np.array(normal)).max() <= 5  # CUDA documents 5
    assert ulps(got[1], np.array(scaled)).max() <= 6
    assert np.abs(got[3] + x).max() < 1e-14 * 38


def test_bessel_functions() -> None:
    # The power series in exact terms: I_n(x) = sum (x/2)^(2k+n) / (k! (k+n)!) (Abramowitz and Stegun 9.6.10).
    from fractions import Fraction

    def exact(n: int, v: float) -> float:
        half = Fraction(v) / 2
        term = half**n / math.factorial(n)
        total = Fraction(0)
        for k in range(1, 700):
            total += term
            term = term * half * half / (k * (k + n))
            term = Fraction(int(term * 2**1400), 2**1400) if term.denominator.bit_length() > 2000 else term
            if term < total / 2**80:
                break
        return float(total)

    x = np.array([0.0, 1e-3, 0.5, 1.0, 7.25, 29.75, 30.25, 88.5, 250.0, -2.5, 700.5])
    got = table({"x": x}, [("cyl_bessel_i0(x)", F64), ("cyl_bessel_i1(x)", F64), ("cyl_bessel_i0f((float)x)", F32)])
    for n in (0, 1):
        want = np.array([exact(n, abs(v)) * (-1 if n and v < 0 else 1) for v in x.tolist()])
        assert np.allclose(got[n], want, rtol=2e-14, atol=0), (got[n], want)
    assert np.array_equal(got[2], got[0].astype(np.float32))


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    cases: list[tuple[str, float]] = [
        ("rsqrtf(0.0f)", inf), ("rsqrtf(-0.0f)", -inf), ("rsqrtf(INFINITY)", 0.0), ("rsqrtf(-1.0f)", nan),
        ("sinpif(3.0f)", 0.0), ("sinpif(-0.0f)", -0.0), ("cospif(0.5f)", 0.0), ("cospif(1.0f)", -1.0),
        ("sinpif(0.25f)", math.sqrt(0.5)), ("sinpif(INFINITY)", nan), ("fmaxf(NAN, 1.0f)", 1.0), ("fminf(1.0f, NAN)", 1.0),
        ("__saturatef(NAN)", 0.0), ("__saturatef(2.0f)", 1.0), ("__saturatef(-1.0f)", 0.0), ("__saturatef(0.25f)", 0.25),
        ("__fdividef(1.0f, 1.5e38f)", 0.0), ("__fdividef(INFINITY, 1.5e38f)", nan), ("__fdividef(1.0f, 4.0f)", 0.25),
        ("norm3df(INFINITY, NAN, 1.0f)", inf), ("rnorm3df(INFINITY, NAN, 1.0f)", 0.0), ("rhypotf(0.0f, 0.0f)", inf),
        ("norm3df(3e38f, 0.0f, 0.0f)", 3e38), ("erfcinvf(0.0f)", inf), ("erfinvf(1.0f)", inf), ("erfinvf(-1.0f)", -inf),
        ("exp10f(2.0f)", 100.0), ("cyl_bessel_i0f(0.0f)", 1.0), ("cyl_bessel_i1f(0.0f)", 0.0),
        ("cyl_bessel_i0f(-INFINITY)", inf), ("cyl_bessel_i1f(-INFINITY)", -inf), ("fdimf(3.0f, 5.0f)", 0.0),
        ("powf(-2.0f, 3.0f)", -8.0), ("copysignf(1.0f, -0.0f)", -1.0), ("rintf(2.5f)", 2.0), ("roundf(2.5f)", 3.0),
        ("truncf(-1.5f)", -1.0), ("max(NAN, 2.0f)", 2.0), ("min(2.0f, NAN)", 2.0), ("ldexpf(1.5f, 4)", 24.0),
        ("remainderf(5.0f, 3.0f)", -1.0), ("nextafterf(1.0f, 2.0f)", 1 + 2.0**-23), ("logbf(9.0f)", 3.0),
        ("float(isnan(NAN))", 1.0), ("float(isinf(-INFINITY))", 1.0), ("float(signbit(-0.0f))", 1.0),
        ("float(isfinite(1e38f))", 1.0), ("float(max(-1, 2u))", 4294967296.0), ("float(min(-5, 3))", -5.0),
    ]  # fmt: skip
    results = table({"x": np.zeros(1, np.float32)}, [(call, F32) for call, _ in cases])
    for got, (call, want) in zip(results, cases, strict=True):
        expected = np.float32(want)
        assert (np.isnan(got[0]) and np.isnan(expected)) or got[0].tobytes() == expected.tobytes(), (call, got[0])


def test_norms_of_vectors() -> None:
    text = (
        "__global__ void k(const float* f, const double* d, double* out) {\n"
        "  out[0] = normf(3, f); out[1] = rnormf(3, f); out[2] = norm(4, d); out[3] = rnorm(4, d);"
        "  out[4] = norm(0, d); out[5] = norm(2, d + 4); out[6] = norm(3, d + 4); out[7] = norm(2, d + 7); }\n"
    )
    d = np.array([1, 2, 4, 10, 3e300, 4e300, math.inf, 3e-320, 4e-320])
    f = np.array([2, 3, 6], np.float32)
    out = run(text, {"f": f, "d": d, "out": np.zeros(8)}, block=1)["out"]
    # 2^2 + 3^2 + 6^2 = 7^2; 1 + 4 + 16 + 100 = 11^2; 3-4-5.
    assert out[0] == 7 and out[1] == np.float32(1 / 7) and out[2] == 11 and math.isclose(out[3], 1 / 11, rel_tol=1e-15)
    assert out[4] == 0 and math.isclose(out[5], 5e300, rel_tol=1e-15) and out[6] == math.inf
    assert math.isclose(out[7], 5e-320, rel_tol=1e-3)


def test_functions_with_two_results() -> None:
    text = (
        "__global__ void k(const float* x, float* out, int* n) { float s, c; sincosf(x[0], &s, &c); out[0] = s; out[1] = c;"
        " sincospif(0.25f, &s, &c); out[2] = s; out[3] = c; out[4] = frexpf(24.0f, &n[0]); out[5] = modff(-2.5f, &out[6]);"
        " out[7] = remquof(7.0f, 2.0f, &n[1]); __sincosf(x[0], &s, &c); out[8] = s; }\n"
    )
    x = np.array([0.7], np.float32)
    after = run(text, {"x": x, "out": np.zeros(9, np.float32), "n": np.zeros(2, np.int32)}, block=1)
    root = math.sqrt(0.5)
    wide = float(x[0])
    want = [math.sin(wide), math.cos(wide), root, root, 0.75, -0.5, -2.0, -1.0, math.sin(wide)]
    assert np.allclose(after["out"], want, rtol=1e-7)
    assert after["n"][0] == 5 and after["n"][1] & 7 == 4

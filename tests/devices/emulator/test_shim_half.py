"""half and bfloat16: every one of the 65,536 values, against NumPy and ml_dtypes.

float32 holds the product of two such values exactly, and float64 their sum, quotient and square root to twice their
precision and more, so that rounding the float64 result once more is rounding once (Figueroa, When is double rounding
innocuous?, 1995).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from tests.devices.emulator.shim import Array, run, same, table

F16, BF16, F32, F64 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64
I32, U32, I16, U16, I64, U64 = DType.INT32, DType.UINT32, DType.INT16, DType.UINT16, DType.INT64, DType.UINT64
C = {F16: "__half", BF16: "__nv_bfloat16"}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FORMATS = pytest.mark.parametrize("kind", [F16, BF16], ids=["half", "bfloat16"])


def every(kind: DType) -> Array:
    return np.arange(65536, dtype=np.uint16).view(kind.numpy)


def narrowed(values: Array, kind: DType) -> Array:
    """float64 -> half or bfloat16, rounded once. ml_dtypes converts through float32: round to odd there first."""
    if kind is F16:
        return values.astype(np.float16)
    near = values.astype(np.float32)
    bits = near.view(np.uint32)
    inexact = np.isfinite(near) & (near.astype(np.float64) != values)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(values), bits - 1, bits)
    return np.where(inexact, toward_zero | 1, bits).astype(np.uint32).view(np.float32).astype(kind.numpy)


def directed(values: Array, kind: DType, mode: str) -> Array:
    """float64 -> half or bfloat16 towards zero, down or up, from the nearest value and its neighbours."""
    near = narrowed(values, kind)
    wide = near.astype(np.float64)
    bits = near.view(np.uint16).astype(np.int64)
    negative = np.signbit(values)
    if mode == "rz":
        wrong = np.abs(wide) > np.abs(values)
        bits = np.where(wrong, bits - 1, bits)
    elif mode == "rd":
        wrong = wide > values
        bits = np.where(wrong, np.where(negative, bits + 1, bits - 1), bits)
    else:
        wrong = wide < values
        bits = np.where(wrong, np.where(negative, bits - 1, bits + 1), bits)
    return bits.astype(np.uint16).view(kind.numpy)


@FORMATS
def test_arithmetic_with_fixed_operands(kind: DType) -> None:
    x = every(kind)
    a = x.astype(np.float64)
    rows: list[tuple[str, DType]] = []
    expected: list[Array] = []
    name = C[kind]
    subnormal = float(np.uint16(3).view(kind.numpy))
    with np.errstate(all="ignore"):
        for b in (1.0, -3.0, 0.333251953125, 65504.0 if kind is F16 else 3e38, subnormal, 0.0, np.inf, np.nan):
            other = narrowed(np.array([b]), kind)
            literal = f"{name}({name}_raw{{{int(other.view(np.uint16)[0])}}})"
            value = other.astype(np.float64)[0]
            for spelling, result in (
                (f"__hadd(a, {literal})", a + value),
                (f"a - {literal}", a - value),
                (f"__hmul(a, {literal})", a * value),
                (f"a / {literal}", a / value),
                (f"{literal} / a", value / a),
            ):
                rows.append((spelling, kind))
                expected.append(narrowed(result, kind))
    for got, want in zip(table({"a": x}, rows), expected, strict=True):
        same(got, want)


@FORMATS
def test_sums_and_fused_products_of_random_pairs(kind: DType) -> None:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 65536, (3, 20000)).astype(np.uint16)
    a, b, c = (row.view(kind.numpy) for row in bits)
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    rows = [("a + b", kind), ("a - b", kind), ("__hfma(a, b, c)", kind), ("__hfma_relu(a, b, c)", kind)]
    got = table({"a": a, "b": b, "c": c}, rows)
    with np.errstate(all="ignore"):
        same(got[0], _sum(x, y, kind))
        same(got[1], _sum(x, -y, kind))
        fused = _sum(x * y, z, kind)
        same(got[2], fused)
        # CUDA: "rectified linear unit: negative result would be clamped to 0, NaN is canonical".
        positive = np.where(fused.astype(np.float64) < 0, np.zeros(1, kind.numpy), fused).astype(kind.numpy)
        same(np.abs(got[3]), np.abs(positive))


def _sum(x: Array, y: Array, kind: DType) -> Array:
    """x + y rounded once: in float64 with the lost part made sticky (round to odd)."""
    s = x + y
    part = s - x
    lost = (x - (s - part)) + (y - part)
    bits = s.view(np.int64)
    inward = (lost > 0) != (s > 0)
    odd = np.where(inward, bits - 1, bits) | 1
    sticky = np.isfinite(s) & np.isfinite(lost) & (lost != 0) & (bits & 1 == 0)
    return narrowed(np.where(sticky, odd, bits).view(np.float64), kind)


@FORMATS
def test_rounding_functions_and_roots_of_every_value(kind: DType) -> None:
    x = every(kind)
    a = x.astype(np.float64)
    exact: dict[str, Callable[[Any], Any]] = {
        "hsqrt": np.sqrt, "hrcp": np.reciprocal, "hfloor": np.floor, "hceil": np.ceil, "htrunc": np.trunc,
        "hrint": np.rint, "__habs": np.abs, "__hneg": np.negative, "hexp": np.exp, "hexp2": np.exp2, "hlog": np.log,
        "hlog2": np.log2, "hlog10": np.log10, "hsin": np.sin, "hcos": np.cos, "htanh": np.tanh,
        "hexp10": lambda v: np.power(10.0, v), "hrsqrt": lambda v: 1 / np.sqrt(v),
    }  # fmt: skip
    got = table({"a": x}, [(f"{name}(a)", kind) for name in exact])
    with np.errstate(all="ignore"):
        for result, (name, function) in zip(got, exact.items(), strict=True):
            want = narrowed(function(a), kind)
            if name in ("hfloor", "hceil", "htrunc", "hrint", "__habs", "__hneg", "hsqrt", "hrcp"):
                same(result, want)
            else:  # libm may be a float64 ulp off near a tie
                far = np.abs(result.view(np.int16).astype(int) - want.view(np.int16).astype(int)) > 1
                assert not (far & ~(np.isnan(want) & np.isnan(result))).any(), name


@FORMATS
def test_comparisons_classification_and_extremes(kind: DType) -> None:
    x = every(kind)
    y = np.random.default_rng(3).permutation(x)
    a, b = x.astype(np.float64), y.astype(np.float64)
    nan = np.isnan(a) | np.isnan(b)
    rows: list[tuple[str, DType]] = []
    expected: list[Array] = []
    for name, operation in (
        ("eq", np.equal),
        ("lt", np.less),
        ("le", np.less_equal),
        ("gt", np.greater),
        ("ge", np.greater_equal),
    ):
        rows += [(f"__h{name}(a, b)", I32), (f"__h{name}u(a, b)", I32)]
        expected += [operation(a, b), operation(a, b) | nan]
    rows += [("__hne(a, b)", I32), ("__hneu(a, b)", I32), ("a != b", I32), ("__hisnan(a)", I32), ("__hisinf(a)", I32)]
    expected += [(a != b) & ~nan, (a != b) | nan, (a != b) | nan, np.isnan(a), np.where(np.isinf(a), np.sign(a), 0)]
    for got, want in zip(table({"a": x, "b": y}, rows), expected, strict=True):
        assert np.array_equal(got, want.astype(np.int32))


@FORMATS
def test_minimum_and_maximum(kind: DType) -> None:
    # CUDA: one NaN gives the other operand, two give the canonical NaN; the _nan forms give the canonical NaN for any;
    # +0 > -0. The canonical NaN is 0x7fff.
    x = every(kind)
    y = np.random.default_rng(4).permutation(x)
    y[0x8000], y[0], y[0x7FFE] = np.uint16(0).view(kind.numpy), np.uint16(0x8000).view(kind.numpy), x[0xFFFF]
    a, b = x.astype(np.float64), y.astype(np.float64)
    rows = [(f"{name}(a, b)", kind) for name in ("__hmax", "__hmin", "__hmax_nan", "__hmin_nan")]
    got = table({"a": x, "b": y}, rows)
    order_a, order_b = (
        np.where(v.view(np.uint16) >> 15, -(v.view(np.uint16).astype(int) & 0x7FFF) - 1, v.view(np.uint16))
        for v in (x, y)
    )
    larger, smaller = np.where(order_a > order_b, x, y), np.where(order_a > order_b, y, x)
    canonical = np.full(65536, 0x7FFF, np.uint16).view(kind.numpy)
    for result, pick, any_nan in zip(got, (larger, smaller) * 2, (False, False, True, True), strict=True):
        want = np.where(np.isnan(a), y, np.where(np.isnan(b), x, pick))
        bad = np.isnan(a) | np.isnan(b) if any_nan else np.isnan(a) & np.isnan(b)
        assert np.array_equal(result.view(np.uint16), np.where(bad, canonical, want).view(np.uint16))


@FORMATS
def test_conversions_from_float_in_every_direction(kind: DType) -> None:
    name = {F16: "half", BF16: "bfloat16"}[kind]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**32, 60000, dtype=np.uint32).view(np.float32)
    # Near ties and around the limits of the format.
    wide = every(kind).astype(np.float32)[:0x7F00]
    middle = (wide[:-1] + (wide[1:] - wide[:-1]) / 2).astype(np.float32)
    with np.errstate(all="ignore"):
        x = np.concatenate(
            [x, middle, -middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))]
        )
    modes = ("rn", "rz", "rd", "ru")
    got = table({"a": x}, [(f"__float2{name}_{mode}(a)", kind) for mode in modes])
    with np.errstate(all="ignore"):
        wide64 = x.astype(np.float64)
        same(got[0], narrowed(wide64, kind))
        for mode, result in zip(modes[1:], got[1:], strict=True):
            finite = np.isfinite(wide64)
            same(result[finite], directed(wide64, kind, mode)[finite])
            same(result[~finite], narrowed(wide64, kind)[~finite])


@FORMATS
def test_conversions_from_double_round_once(kind: DType) -> None:
    # A double just above a tie of the narrow format, which float32 rounds onto the tie.
    name = {F16: "half", BF16: "bfloat16"}[kind]
    steps = every(kind)[0x3C00:0x3D00].astype(np.float64)
    tie = (steps[:-1] + steps[1:]) / 2
    x = np.concatenate([tie, np.nextafter(tie, 9), np.nextafter(tie, 0), -tie, [np.nan, np.inf, 1e300, 1e-300]])
    got = table({"a": x}, [(f"__double2{name}(a)", kind), (f"{C[kind]}(a)", kind)])
    with np.errstate(all="ignore"):
        for result in got:
            same(result, narrowed(x, kind))


def clamped(whole: Array, kind: DType) -> Array:
    """Whole float64 values as integers, out of range the nearest limit."""
    info = np.iinfo(kind.numpy)
    low, high = float(info.min), float(info.max // 2 + 1) * 2
    made = np.where(whole >= high, info.max, info.min).astype(kind.numpy)
    inside = (whole > low) & (whole < high)
    made[inside] = whole[inside].astype(kind.numpy)
    return made


@FORMATS
def test_conversions_to_and_from_integers(kind: DType) -> None:
    name = {F16: "half", BF16: "bfloat16"}[kind]
    x = every(kind)
    a = x.astype(np.float64)
    rounding: dict[str, Callable[[Any], Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
    integers = {"int": I32, "uint": U32, "short": I16, "ushort": U16, "ll": I64, "ull": U64}
    rows = [(f"__{name}2{i}_{m}(a)", t) for i, t in integers.items() for m in rounding]
    got = iter(table({"a": x}, rows))
    for kind_out in integers.values():
        for function in rounding.values():
            result = next(got)
            number = ~np.isnan(a)
            assert np.array_equal(result[number], clamped(function(a[number]), kind_out))
    shorts = np.arange(-32768, 32768).astype(np.int16)
    longs = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, 65536)
    longs[:4] = [2**24 + 1, -(2**24) - 1, 2049, 257]
    rows = [(f"__short2{name}_rn(s)", kind), (f"__ll2{name}_rn(l)", kind)]
    rows += [(f"__ll2{name}_{m}(l)", kind) for m in ("rz", "rd", "ru")]
    got_back = table({"s": shorts, "l": longs}, rows)
    same(got_back[0], narrowed(shorts.astype(np.float64), kind))
    sticky = _to_odd(longs)
    with np.errstate(all="ignore"):
        same(got_back[1], narrowed(sticky, kind))
        for mode, result in zip(("rz", "rd", "ru"), got_back[2:], strict=True):
            want = directed(sticky, kind, mode)
            same(result, want)


def _to_odd(values: Array) -> Array:
    """int64 -> float64 that any narrower rounding treats as the integer."""
    out = []
    for v in values.tolist():
        shift = max(0, abs(v).bit_length() - 53)
        top = abs(v) >> shift
        out.append((-1.0 if v < 0 else 1.0) * float((top | (1 if abs(v) & ((1 << shift) - 1) else 0)) << shift))
    return np.array(out)


@FORMATS
def test_pairs(kind: DType) -> None:
    two = {F16: "__half2", BF16: "__nv_bfloat162"}[kind]
    rng = np.random.default_rng(9)
    x, y, z = (rng.integers(0, 65536, 2048).astype(np.uint16).view(kind.numpy) for _ in range(3))
    calls = [
        "__hadd2(a, b)", "__hsub2(a, b)", "__hmul2(a, b)", "__h2div(a, b)", "__hfma2(a, b, c)", "__hmax2(a, b)",
        "__hmin2(a, b)", "__hneg2(a)", "__habs2(a)", "__hadd2_sat(a, b)", "__hmul2_sat(a, b)", "__hsub2_sat(a, b)",
        "__heq2(a, b)", "__hltu2(a, b)", "__hmax2_nan(a, b)", "__hisnan2(a)", "__hequ2(a, b)", "__hneu2(a, b)",
        "__hge2(a, b)", "__hfma2_relu(a, b, c)", "__hmin2_nan(a, b)",
    ]  # fmt: skip
    single = [c.replace("2(", "(", 1).replace("2_", "_", 1) for c in calls]
    single[3] = "__hdiv(a, b)"
    body = "\n".join(f"  w[{i} * 1024 + i] = {call};" for i, call in enumerate(calls))
    body += "\n".join(
        f"  v[{i} * 2048 + 2 * i + h] = {C[kind]}({call});" if "__h" in call else "" for i, call in enumerate(single)
    ).join(["  for (int h = 0; h < 2; ++h) { auto a = p[2*i+h], b = q[2*i+h], c = r[2*i+h];", "}"])
    t = C[kind]
    text = (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        f"__global__ void k(const {t}* p, const {t}* q, const {t}* r, {t}* w_, {t}* v) {{\n"
        f"  int i = blockIdx.x * 256 + threadIdx.x; {two}* w = ({two}*)w_;\n"
        f"  {two} a = (({two}*)p)[i], b = (({two}*)q)[i], c = (({two}*)r)[i];\n{body}\n}}\n"
    )
    n = len(calls) * 2048
    buffers = {"p": x, "q": y, "r": z, "w": np.zeros(n, kind.numpy), "v": np.zeros(n, kind.numpy)}
    contents = run(text, buffers, grid=4, block=256)
    for i, call in enumerate(calls):
        try:
            same(contents["w"][i * 2048 : (i + 1) * 2048], contents["v"][i * 2048 : (i + 1) * 2048])
        except AssertionError as error:
            raise AssertionError(f"{call}: {error}") from error

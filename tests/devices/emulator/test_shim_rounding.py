"""Directed rounding and conversions of float and double, against exact rational arithmetic."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from tests.devices.emulator.shim import Array, table

F32, F64 = DType.FLOAT32, DType.FLOAT64
I32, U32, I64, U64 = DType.INT32, DType.UINT32, DType.INT64, DType.UINT64
MODES = ("rn", "rz", "rd", "ru")
# precision, exponent of the smallest subnormal, largest finite value
FORMATS = {F32: (24, -149, (2 - Fraction(2) ** -23) * 2**127), F64: (53, -1074, (2 - Fraction(2) ** -52) * 2**1023)}


def rounded(value: Fraction, kind: DType, mode: str) -> float:
    """``value`` (not 0) in the format, rounded once: IEEE 754-2019, section 4.3."""
    precision, least, largest = FORMATS[kind]
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    whole, rest = divmod(magnitude, unit)
    up = {
        "rn": rest > unit / 2 or (rest == unit / 2 and whole % 2 == 1),
        "rz": False,
        "rd": rest > 0 and value < 0,
        "ru": rest > 0 and value > 0,
    }[mode]
    result = (whole + up) * unit
    if result > largest:
        to_largest = mode == "rz" or (mode == "rd" and value > 0) or (mode == "ru" and value < 0)
        return math.copysign(float(largest) if to_largest else math.inf, 1 if value > 0 else -1)
    return math.copysign(float(result), 1 if value > 0 else -1)


def root(value: Fraction, kind: DType, mode: str) -> float:
    """The square root, rounded once: the root of value times 2^400 has its sticky bit in whether it is exact."""
    scaled = value * 2**2400
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    exact = whole * whole == scaled
    return rounded(Fraction(2 * whole + (0 if exact else 1), 2**1201), kind, mode)


def numbers(kind: DType, n: int, seed: int) -> Array:
    """Finite numbers, not 0: of moderate size, near the ends of the range, and with few bits."""
    rng = np.random.default_rng(seed)
    precision = FORMATS[kind][0]
    low, high = (-149, 128) if kind is F32 else (-1074, 1024)
    exponent = np.concatenate([rng.integers(-3, 3, n // 2), rng.integers(low, high, n - n // 2)])
    bits = rng.integers(2, precision + 1, n)
    digits = [int(rng.integers(2 ** int(b - 1), 2 ** int(b))) * 2 ** (precision - int(b)) for b in bits]
    values = [
        float(rounded(Fraction(d) * Fraction(2) ** (int(e) - precision + 1), kind, "rz"))
        for d, e in zip(digits, exponent, strict=True)
    ]
    smallest = 2.0 ** FORMATS[kind][1]
    return np.array([v if v else smallest for v in values]).astype(kind.numpy) * rng.choice([-1, 1], n).astype(
        kind.numpy
    )


def check(name: str, got: Array, exact: list[Any], kind: DType, mode: str) -> None:
    want = np.array([v if isinstance(v, float) else rounded(v, kind, mode) for v in exact]).astype(kind.numpy)
    bits = f"u{kind.itemsize}"
    different = np.flatnonzero(got.view(bits) != want.view(bits))
    assert not len(different), (name, different[0], got[different[0]], want[different[0]])


@pytest.mark.parametrize(("kind", "letter"), [(F32, "f"), (F64, "d")], ids=["float", "double"])
def test_arithmetic_in_every_direction(kind: DType, letter: str) -> None:
    n = 700
    a, b, c = (numbers(kind, n, seed) for seed in (1, 2, 3))
    c[::7], b[::5] = -a[::7], np.asarray(a[::5] * (1 + 2.0**-20), kind.numpy)  # cancellation
    b[~np.isfinite(b)] = 1
    fused = "__fmaf" if letter == "f" else "__fma"
    operations: dict[str, Callable[[Fraction, Fraction, Fraction], Fraction]] = {
        f"__{letter}add_M(a, b)": lambda x, y, z: x + y,
        f"__{letter}sub_M(a, b)": lambda x, y, z: x - y,
        f"__{letter}mul_M(a, b)": lambda x, y, z: x * y,
        f"__{letter}div_M(a, b)": lambda x, y, z: x / y,
        f"__{letter}rcp_M(a)": lambda x, y, z: 1 / x,
        f"{fused}_M(a, b, c)": lambda x, y, z: x * y + z,
    }
    rows = [(call.replace("_M", f"_{mode}"), kind) for call in operations for mode in MODES]
    rows += [(f"__{letter}sqrt_{mode}(a < 0 ? -a : a)", kind) for mode in MODES]
    got = iter(table({"a": a, "b": b, "c": c}, rows))
    x, y, z = ([Fraction(float(v)) for v in column] for column in (a, b, c))
    for call, operation in operations.items():
        exact = [operation(*t) for t in zip(x, y, z, strict=True)]
        for mode in MODES:
            # A sum that cancels exactly is -0 downwards, else +0 (IEEE 754-2019, 6.3).
            zero = -0.0 if mode == "rd" else 0.0
            check(f"{call} {mode}", next(got), [v or zero for v in exact], kind, mode)
    for mode in MODES:
        check(f"sqrt {mode}", next(got), [root(abs(v), kind, mode) for v in x], kind, mode)


def test_reciprocal_square_root_is_nearest() -> None:
    # Both sides of every exponent parity, densely: the nearest value to the exact root.
    rng = np.random.default_rng(5)
    a = np.concatenate([np.abs(numbers(F32, 1000, 8)), rng.uniform(1, 4, 3000).astype(np.float32)])
    (got,) = table({"a": a}, [("__frsqrt_rn(a)", F32)])
    check("__frsqrt_rn", got, [root(1 / Fraction(float(v)), F32, "rn") for v in a], F32, "rn")


def whole(value: Fraction, mode: str) -> int:
    return {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}[mode](value)


@pytest.mark.parametrize("kind", [F32, F64], ids=["float", "double"])
def test_to_integers(kind: DType) -> None:
    # Out of range the nearest limit (PTX cvt); ties to even.
    ties = np.arange(-20, 20) + 0.5
    edges = [2.0**31, 2.0**31 - 1, 2.0**32, -(2.0**31), -(2.0**31) - 1, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, -0.9]
    finite = np.concatenate([numbers(kind, 600, 4).astype(np.float64), ties, np.arange(-3, 3), edges])
    a = np.concatenate([finite.astype(kind.numpy), np.array([np.inf, -np.inf], kind.numpy)])
    name = "float" if kind is F32 else "double"
    targets = {"int": I32, "uint": U32, "ll": I64, "ull": U64}
    rows = [(f"__{name}2{t}_{mode}(a)", d) for t, d in targets.items() for mode in MODES]
    got = iter(table({"a": a}, rows))
    for t, d in targets.items():
        info = np.iinfo(d.numpy)
        for mode in MODES:
            want = [
                min(max(whole(Fraction(float(v)), mode), info.min), info.max)
                if math.isfinite(v)
                else (info.max if v > 0 else info.min)
                for v in a
            ]
            assert next(got).tolist() == want, (t, mode)


def test_from_integers_and_between_the_formats() -> None:
    rng = np.random.default_rng(6)
    n = 600
    i = np.concatenate([rng.integers(-(2**31), 2**31, n - 4), [2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1]]).astype(
        np.int32
    )
    u = np.concatenate([rng.integers(0, 2**32, n - 2), [2**32 - 1, 2**24 + 1]]).astype(np.uint32)
    ll = np.concatenate([rng.integers(-(2**63), 2**63 - 1, n - 4), [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1]])
    ull = np.concatenate([rng.integers(0, 2**64, n - 2, dtype=np.uint64), np.array([2**64 - 1, 2**53 + 1], np.uint64)])
    d = numbers(F64, n, 12)
    d[: n // 2] = numbers(F32, n // 2, 13).astype(np.float64) * (1 + 2.0**-30)
    columns = {"i": i, "u": u, "l": ll, "w": ull, "d": d}
    calls = [("__int2float", "i", F32), ("__uint2float", "u", F32), ("__ll2float", "l", F32), ("__ull2float", "w", F32),
             ("__ll2double", "l", F64), ("__ull2double", "w", F64), ("__double2float", "d", F32)]  # fmt: skip
    got = iter(table(columns, [(f"{call}_{mode}({x})", kind) for call, x, kind in calls for mode in MODES]))
    for call, x, kind in calls:
        values = [Fraction(float(v)) if x == "d" else Fraction(int(v)) for v in columns[x]]
        for mode in MODES:
            check(f"{call}_{mode}", next(got), [v or 0.0 for v in values], kind, mode)


def test_bits() -> None:
    bits = np.random.default_rng(3).integers(0, 2**64, 400, dtype=np.uint64)
    got = table(
        {"w": bits},
        [
            ("__double_as_longlong(__longlong_as_double((long long)w))", I64),
            ("__hiloint2double((int)(w >> 32), (int)w)", F64),
            ("__double2hiint(__longlong_as_double((long long)w))", I32),
            ("__double2loint(__longlong_as_double((long long)w))", I32),
            ("__float_as_uint(__uint_as_float((unsigned)w))", U32),
            ("__float_as_int(__int_as_float((int)w))", I32),
        ],
    )
    low, high = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    for result, want in zip(got, (bits, bits, high, low, low, low), strict=True):
        assert result.tobytes() == want.tobytes()

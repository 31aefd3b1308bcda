"""Comparing outputs with their reference, element by element."""

import math
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import poison
from kernel_forge.domain.outcome import Mismatch, MismatchKind
from kernel_forge.verify.inputs import Array

_BLOCK = 1 << 15


@dataclass(frozen=True)
class Comparison:
    """``mismatch`` is None where everything fits; ``worst`` is the largest error as a fraction of the tolerance.

    ``compared`` elements were held against the reference, ``left_out`` ones were not.
    """

    mismatch: Mismatch | None
    worst: float
    compared: int = 0
    left_out: int = 0


def compare(
    name: str,
    dtype: DType,
    got: Array,
    want: Array,
    tolerance: Array,
    *,
    poison_seed: int | None,
    overflow: Array | None = None,
) -> Comparison:
    """Compare ``got`` (in ``dtype``) with ``want`` (float64 or integers), both of the same shape.

    A NaN fits a NaN only, an infinity the same infinity only; an infinite ``tolerance`` leaves an element out, and
    ``overflow`` one that came out infinite or NaN. An element that still holds the poison is never left out.
    ``poison_seed`` is that of the run where the output began poisoned, to tell "never written" from "wrong".
    """
    if got.size == 0:
        return Comparison(None, 0.0)
    worst = _plainly_right(dtype, got, want, tolerance)
    if worst is not None:
        return Comparison(None, worst, got.size)
    got_values, want_values, error = _errors(dtype, got, want)
    error = np.where(_may_overflow(dtype, got_values, want_values, tolerance), 0.0, error)
    left_out = np.broadcast_to(np.isinf(tolerance), got.shape)
    if overflow is not None:
        left_out = left_out | (overflow & ~np.isfinite(got_values))
    unwritten = np.zeros(got.shape, bool)
    if poison_seed is not None and dtype.is_float:
        unwritten = left_out & _is_poison(dtype, got, poison_seed)
    left_out = left_out & ~unwritten
    with np.errstate(all="ignore"):
        wrong = (~(error <= tolerance) & ~left_out) | unwritten
        fraction = np.where(error == 0, 0.0, error / tolerance)
    fraction = np.where(left_out, 0.0, np.nan_to_num(fraction, nan=np.inf, posinf=np.inf))
    out = int(np.count_nonzero(left_out))
    if not wrong.any():
        return Comparison(None, float(fraction.max()), got.size - out, out)
    first = int(np.flatnonzero(wrong)[0])
    index = tuple(int(i) for i in np.unravel_index(first, got.shape))
    kind = MismatchKind.WRONG_VALUE
    untouched = np.zeros(got.shape, bool)
    if poison_seed is not None:
        untouched = _is_poison(dtype, got, poison_seed)
        if untouched[index]:
            kind = MismatchKind.NOT_WRITTEN
    finite = np.isfinite(error) & wrong
    worst = float(error[finite].max()) if finite.any() else float("inf")
    count = int(np.count_nonzero(untouched & wrong if kind is MismatchKind.NOT_WRITTEN else wrong))
    mismatch = Mismatch(
        kind=kind,
        output=name,
        count=count,
        total=int(got.size),
        index=index,
        expected=_plain(want_values[index]),
        got=None if kind is MismatchKind.NOT_WRITTEN else _plain(got_values[index]),
        tolerance=float(np.broadcast_to(tolerance, got.shape)[index]),
        max_absolute=worst,
        max_relative=_max_relative(error, want_values, finite) if dtype.is_float else None,
        max_ulp=_max_ulp(error, want_values, finite, dtype) if dtype.is_float else None,
    )
    return Comparison(replace(mismatch, message=describe(mismatch)), float(fraction.max()), got.size - out, out)


def _plainly_right(dtype: DType, got: Array, want: Array, tolerance: Array) -> float | None:
    """The largest error as a fraction of the tolerance where everything is finite and fits; None where anything does
    not, or is not that simple. Block by block, which stay in the cache: most outputs are right, and some are large.
    """
    if not dtype.is_float:
        return 0.0 if not tolerance.any() and np.array_equal(got, _wrapped(dtype, want)) else None
    flat_got, flat_want = got.reshape(-1), want.reshape(-1)
    allowed = tolerance.reshape(-1) if tolerance.shape == got.shape else np.broadcast_to(tolerance, got.shape).flat
    worst = 0.0
    for start in range(0, got.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        limit = np.asarray(allowed[part], np.float64)
        with np.errstate(all="ignore"):
            error = np.abs(flat_got[part].astype(np.float64) - flat_want[part].astype(np.float64))
            if not (error <= limit).all() or not np.isfinite(limit).all() or not np.isfinite(error).all():
                return None
            worst = max(worst, float(np.max(error / limit, initial=0.0, where=error > 0)))
    return worst


def describe(m: Mismatch) -> str:
    """One sentence for a person."""
    where = f"{m.output}[{', '.join(map(str, m.index))}]"
    match m.kind:
        case MismatchKind.NOT_WRITTEN:
            return f"{m.count} of {m.total} elements of {m.output} are never written; first {where}"
        case MismatchKind.INSENSITIVE:
            return f"{m.output} does not change when the inputs do, though the reference does; first {where}"
        case MismatchKind.UNWRITTEN_READ:
            values = f"{_show(m.expected)} and {_show(m.got)} with two fillings of the fresh memory"
            return f"{where} is computed from memory that was never written: {values}"
        case MismatchKind.WRONG_VALUE:
            detail = f"expected {_show(m.expected)}, got {_show(m.got)}"
            facts = []
            if math.isfinite(m.max_absolute):
                facts.append(f"worst |error| {m.max_absolute:.3g}")
            if m.tolerance and m.expected is not None and math.isfinite(m.expected):  # else only itself is accepted
                facts.append(f"accepted {m.tolerance:.3g}")
            text = f"{m.count} of {m.total} elements of {m.output} are wrong; first {where}: {detail}"
            return f"{text} ({', '.join(facts)})" if facts else text


def _show(value: float | int | None) -> str:
    return "nothing" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)


def _errors(dtype: DType, got: Array, want: Array) -> tuple[Array, Array, Array]:
    """Values and |got - want| as float64, with NaN where they are of different kinds."""
    if not dtype.is_float:
        wrapped = _wrapped(dtype, want)
        if dtype is DType.BOOL:
            return got, wrapped, (got != wrapped).astype(np.float64)
        difference = np.where(
            got > wrapped,
            got.astype(np.float64) - wrapped.astype(np.float64),
            wrapped.astype(np.float64) - got.astype(np.float64),
        )
        # Beyond 2^53 neighbours are equal as doubles, but still different.
        difference = np.where((got != wrapped) & (difference == 0), 1.0, difference)
        return got, wrapped, difference
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
    # The reference, correctly rounded, is always right: beyond the largest finite value that is an infinity.
    same = (np.isnan(a) & np.isnan(b)) | (a == b) | (np.isinf(a) & (a == representable(dtype, want)))
    return a, b, np.where(same, 0.0, error)


def _may_overflow(dtype: DType, got: Array, want: Array, tolerance: Array) -> Array:
    """Where an infinity is right because a value within the tolerance rounds to it."""
    if not dtype.is_float:
        return np.zeros(got.shape, bool)
    with np.errstate(all="ignore"):
        reach = np.where(got > 0, want + tolerance, want - tolerance)
        found: Array = np.isinf(got) & np.isfinite(want) & np.isfinite(tolerance) & (representable(dtype, reach) == got)
        return found


def representable(dtype: DType, want: Array) -> Array:
    """The reference as an output of ``dtype`` can hold it, as float64."""
    if not dtype.is_float:
        return _wrapped(dtype, want).astype(np.float64)
    with np.errstate(all="ignore"):
        return want.astype(np.float64).astype(dtype.numpy).astype(np.float64)


def _wrapped(dtype: DType, want: Array) -> Array:
    """The reference as the kernel's integer type holds it: modulo 2^bits, as arithmetic wraps on the hardware."""
    if dtype is DType.BOOL:
        return want.astype(bool)
    if want.dtype.kind == "f":
        with np.errstate(all="ignore"):
            inside = np.fmod(np.rint(want), 2.0**64)
            inside = np.where(inside >= 2.0**63, inside - 2.0**64, inside)
            inside = np.where(inside < -(2.0**63), inside + 2.0**64, inside)
            return inside.astype(np.int64).astype(dtype.numpy)
    return want.astype(dtype.numpy)


def _is_poison(dtype: DType, got: Array, seed: int) -> Array:
    pattern = poison(dtype, 1, seed)
    bits = np.dtype(f"u{dtype.itemsize}")
    return np.ascontiguousarray(got).view(bits).reshape(got.shape) == pattern.view(bits)[0]  # type: ignore[no-any-return]


def _plain(value: Any) -> float | int:
    return bool(value) if isinstance(value, np.bool_) else value.item()


def _max_relative(error: Array, want: Array, finite: Array) -> float:
    with np.errstate(all="ignore"):
        relative = error[finite] / np.abs(want[finite])
    relative = relative[np.isfinite(relative)]
    return float(relative.max()) if relative.size else float("inf")


def _max_ulp(error: Array, want: Array, finite: Array, dtype: DType) -> float:
    info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(want[finite]), float(info.smallest_normal))))
        ulp = np.exp2(exponent) * 2 * dtype.unit_roundoff
        units = error[finite] / ulp
    return float(units.max()) if units.size else float("inf")


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays are equal bit for bit (NaNs included)."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def first_difference(a: Array, b: Array) -> int:
    """Flat index of the first element whose bits differ."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return int(np.flatnonzero(a.reshape(-1).view(bits) != b.reshape(-1).view(bits))[0])

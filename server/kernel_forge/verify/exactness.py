"""Where a reference computes without any rounding: there every honest kernel gives the very same result.

A reference that only selects and compares (an argmax, a count above a threshold), or that adds and multiplies numbers
of few bits, is exact in the kernel's own type, in whatever order. :class:`Traced` arrays let a reference run unchanged
and note in a :class:`Trace` whether each step is: a sum, a difference or a product that the type holds exactly; a sum
whose terms are multiples of one power of two, with fewer of those than the significand counts. Anything else, and
whatever escapes (a loop over Python numbers, a function not listed here), makes no claim.

The trace also has the range of the integers met on the way, for inputs as large as the kernel's type can take.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.verify.inputs import Array

_SELECTING = (
    np.maximum, np.minimum, np.fmax, np.fmin, np.absolute, np.fabs, np.negative, np.positive, np.sign, np.copysign,
    np.floor, np.ceil, np.trunc, np.rint, np.signbit, np.isnan, np.isinf, np.isfinite, np.logical_and, np.logical_or,
    np.logical_not, np.logical_xor,
)  # fmt: skip
_COMPARING = (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
_RANGE_FREE = (*_COMPARING, np.logical_and, np.logical_or, np.logical_not, np.logical_xor)
_FUNCTIONS = frozenset(
    "where argmax argmin max amax min amin sum sort count_nonzero concatenate stack vstack hstack reshape ravel "
    "transpose swapaxes moveaxis flip fliplr flipud roll clip take take_along_axis broadcast_to squeeze expand_dims "
    "zeros_like ones_like full_like any all cumsum tril triu repeat tile atleast_1d atleast_2d array_split split copy "
    "shape ndim size diff".split()
)
_MAX_SHIFT = 60


@dataclass
class Trace:
    """What a run of the reference showed.

    ``bits`` are those of the significand, and ``largest`` and ``smallest`` the finite range, of the kernel's type.
    ``reached`` names the outputs that were still traced at the end.
    """

    bits: int
    largest: float
    smallest: float
    is_exact: bool = True
    low: int = 0
    high: int = 0
    reached: set[str] = field(default_factory=set)

    def fits(self, values: Any, bits: int = 53) -> bool:
        """Whether the kernel's type holds every one of ``values`` exactly, and in no more than ``bits``."""
        x = np.abs(np.asarray(values, np.float64))
        x = x[np.isfinite(x) & (x != 0)]
        fraction, _ = np.frexp(x)
        scaled = np.ldexp(fraction, min(bits, self.bits))
        return bool(((scaled == np.rint(scaled)) & (x <= self.largest) & (x >= self.smallest)).all())

    def adds_up(self, total: Any, *terms: Any) -> bool:
        """Whether sums up to ``total`` of products of ``terms`` are exact in any order."""
        shifts = [_shift(t) for t in terms]
        if any(s is None for s in shifts):
            return False
        top = np.asarray(total, np.float64)
        peak = float(top.max()) if top.size else 0.0
        exponent = sum(s for s in shifts if s is not None)
        return math.isfinite(peak) and peak <= self.largest and math.ldexp(peak, exponent) <= 2.0**self.bits

    def integers(self, values: Any) -> None:
        """Note integers met on the way."""
        array = np.asarray(values)
        if array.size and array.dtype.kind in "iu":
            self.low, self.high = min(self.low, int(array.min())), max(self.high, int(array.max()))


def _shift(values: Any) -> int | None:
    """The least k for which ``values`` times 2**k are integers, None where that is more than a sum can use."""
    x = np.asarray(values, np.float64)
    if not np.isfinite(x).all():
        return None
    return next((k for k in range(_MAX_SHIFT) if (np.ldexp(x, k) == np.rint(np.ldexp(x, k))).all()), None)


def trace_of(dtype: DType) -> Trace:
    """An empty trace for a kernel that computes in ``dtype``."""
    info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return Trace(round(-math.log2(dtype.unit_roundoff)), float(info.max), float(info.smallest_normal))


class Traced(np.ndarray[tuple[int, ...], np.dtype[Any]]):
    """An array whose computations are noted in its trace."""

    record: Trace

    @classmethod
    def of(cls, array: Array, trace: Trace) -> "Traced":
        """A view of ``array``, which is not copied."""
        made = np.asarray(array).view(cls)
        made.record = trace
        return made

    def __array_finalize__(self, other: object, /) -> None:
        self.record = getattr(other, "record", Trace(1, 0.0, 0.0, is_exact=False))

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        function, options, plain = ufunc, dict(kwargs), tuple(_plain(i) for i in inputs)
        if options.get("out"):
            options["out"] = tuple(_plain(o) for o in options["out"])
        if "where" in options:
            options["where"] = _plain(options["where"])
        trace = next((i.record for i in inputs if isinstance(i, Traced)), self.record)
        with np.errstate(all="ignore"):
            result = getattr(function, method)(*plain, **options)
            if result is NotImplemented or not isinstance(result, np.ndarray | np.generic):
                trace.is_exact = False
                return result
            if trace.is_exact and not _is_exact(trace, function, str(method), plain, result, options):
                trace.is_exact = False
        if kwargs.get("out"):
            return kwargs["out"][0]
        return Traced.of(np.asarray(result), trace)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if name not in _FUNCTIONS:
            self.record.is_exact = False
        if name == "cumsum":
            args, kwargs = (args[0], *args[1:]), dict(kwargs)
            axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
            array = args[0] if axis is not None else np.ravel(args[0])
            return np.add.accumulate(array, axis=axis or 0)
        result = super().__array_function__(func, types, args, kwargs)
        if type(result) is np.ndarray or isinstance(result, np.generic):
            return Traced.of(np.asarray(result), self.record)
        return result

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(_unmarked(key))
        return Traced.of(np.asarray(found), self.record) if isinstance(found, np.generic) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, Traced | int | bool):
            self.record.is_exact = False
        super().__setitem__(_unmarked(key), _plain(value))

    def _escapes(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.record.is_exact = False
        return getattr(_plain(self), name)(*args, **kwargs)

    def __float__(self) -> float:
        return float(self._escapes("__float__"))

    def __int__(self) -> int:
        return int(self._escapes("__int__"))

    def __index__(self) -> int:
        return int(self._escapes("__index__"))

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The running sum, traced."""
        return np.add.accumulate(self if axis is not None else self.ravel(), axis=axis or 0, dtype=dtype, out=out)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """No claim: the order of equals is nobody's promise."""
        return self._escapes("argsort", *args, **kwargs)


def _escaping(name: str) -> Any:
    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        return self._escapes(name, *args, **kwargs)

    return method


for _name in ("dot", "cumprod", "trace", "round", "item", "tolist", "tobytes", "argpartition", "partition", "choose"):
    if hasattr(np.ndarray, _name):
        setattr(Traced, _name, _escaping(_name))


def _is_exact(
    trace: Trace, function: np.ufunc, method: str, inputs: tuple[Any, ...], result: Any, options: Mapping[str, Any]
) -> bool:
    """Whether one step rounds nothing, as far as it can be told."""
    if function in _COMPARING:
        return method == "__call__" and _compares(trace, *inputs[:2])
    if np.asarray(result).dtype.kind != "f":
        if function not in _RANGE_FREE:
            trace.integers(result)
        if method in ("reduce", "accumulate") and function is np.add:
            how = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
            trace.integers(np.add.reduce(np.abs(inputs[0]), **{"axis": 0, **how}))
        if function is np.matmul:
            trace.integers(np.matmul(np.abs(inputs[0]), np.abs(inputs[1])))
        return all(np.asarray(i).dtype.kind in "biu" for i in inputs) or function in _SELECTING
    if function in _SELECTING or function.__name__ == "clip":
        return True
    if method in ("reduce", "accumulate"):
        how = {k: v for k, v in options.items() if k in ("axis", "keepdims")} if method == "reduce" else {}
        if options.get("initial") not in (None, 0):
            return False  # a term like the others, but no element: no claim
        return function is np.add and trace.adds_up(
            np.add.reduce(np.abs(inputs[0]), **{"axis": None if method == "accumulate" else 0, **how}), inputs[0]
        )
    if method != "__call__":
        return False
    if function is np.matmul:
        return trace.adds_up(np.matmul(np.abs(inputs[0]), np.abs(inputs[1])), *inputs)
    if function in (np.add, np.subtract):
        a, b = (np.asarray(i, np.float64) for i in inputs[:2])
        b = -b if function is np.subtract else b
        return (
            bool(np.isfinite(result).all())
            and trace.fits(result)
            and bool(((result - a == b) & (result - b == a)).all())
        )
    if function in (np.multiply, np.square) or (function is np.power and np.ndim(inputs[1]) == 0 and inputs[1] == 2):
        return bool(np.isfinite(result).all()) and trace.fits(result) and all(trace.fits(i, 26) for i in inputs[:2])
    if function is np.true_divide:
        fraction, _ = np.frexp(np.abs(np.asarray(inputs[1], np.float64)))
        return bool((fraction == 0.5).all()) and trace.fits(result)
    return False


def _compares(trace: Trace, a: Any, b: Any) -> bool:
    """Whether a comparison in the kernel's type decides alike: both sides fit, or they are far enough apart."""
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return True
    if trace.fits(x) and trace.fits(y):
        return True
    x, y = x.astype(np.float64), y.astype(np.float64)
    return bool((np.abs(x - y) > 4 * 2.0**-trace.bits * np.maximum(np.abs(x), np.abs(y))).all())


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Traced) else value


def _unmarked(key: Any) -> Any:
    return tuple(_plain(k) for k in key) if isinstance(key, tuple) else _plain(key)

"""Sums of squared differences, as kernels expand them.

Honest kernels compute a variance as E[x^2] - E[x]^2 and a squared distance as a^2 - 2ab + b^2. In exact arithmetic
that is the reference's sum of (a - b)^2; in floating point it errs by roundings of the squares of a and b, which no
rounding of the inputs explains where a and b are close. :class:`Expanding` arrays let a reference run unchanged and
move every such sum by a given share of the sum of the squares of what was subtracted, never below zero.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_forge.verify.inputs import Array

# Linear in each argument: with squared arguments they give the sums of the terms' squares.
_SUMS = frozenset("dot vdot inner tensordot einsum convolve correlate cumsum cumulative_sum trace".split())
_SUM_UFUNCS = tuple(getattr(np, name) for name in ("matmul", "vecdot", "matvec", "vecmat") if hasattr(np, name))
_SQUARES = (np.multiply, np.square, np.power, np.float_power)


@dataclass
class Expansion:
    """By what share sums of squared differences move; ``used`` tells whether the reference has any.

    With ``signs`` it is every other sum that moves instead, each element up or down as they fall: by the share of the
    root of the sum of the terms' squares and of the sum itself, which is what accumulating them errs by.
    """

    share: float
    used: bool = False
    signs: np.random.Generator | None = None


class Expanding(np.ndarray[tuple[int, ...], np.dtype[Any]]):
    """An array that knows what was subtracted to make it."""

    expansion: Expansion
    subtracted: Array | None  # sum of the squares of minuend and subtrahend, where this is a difference
    squared: Array | None  # the same where this is the square of a difference

    @classmethod
    def of(cls, array: Array, expansion: Expansion) -> "Expanding":
        """A view of ``array`` (no copy) whose sums of squared differences move by ``expansion``."""
        return _marked(array, expansion, None, None)

    def __array_finalize__(self, other: object, /) -> None:
        self.expansion = getattr(other, "expansion", Expansion(0.0))
        self.subtracted = None
        self.squared = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        function, options = ufunc, dict(kwargs)
        out = options.get("out", ())
        if out:
            options["out"] = tuple(_plain(o) for o in out)
        with np.errstate(all="ignore"):
            result = getattr(function, method)(*(_plain(i) for i in inputs), **options)
            if result is NotImplemented or not isinstance(result, np.ndarray | np.generic):
                return result
            if np.asarray(result).dtype.kind != "f":
                return out[0] if out else result
            subtracted, squared = self._origins(function, str(method), inputs)
            squares = inputs[0].squared if isinstance(inputs[0], Expanding) else None
            signs = self.expansion.signs
            if signs is not None:
                result = self._accumulated(function, str(method), inputs, result, options, out, signs)
            elif function is np.add and method == "reduce" and squares is not None:
                result = self._moved(result, squares, options, out)
        if out:
            if isinstance(out[0], Expanding):
                out[0].subtracted, out[0].squared = subtracted, squared
            return out[0]
        return _marked(result, self.expansion, subtracted, squared)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        signs = self.expansion.signs
        if signs is not None and func.__name__ in _SUMS and kwargs.get("out") is None:
            result = func(*_each(_plain, args), **_each(_plain, kwargs))
            squares = func(*_each(_squared, args), **_each(_squared, kwargs))
            return _marked(self._shifted(result, squares, signs), self.expansion, None, None)
        result = super().__array_function__(func, types, args, kwargs)
        if type(result) is np.ndarray and result.dtype.kind == "f":  # np.where and others give NumPy's own class
            return _marked(result, self.expansion, None, None)
        return result

    def dot(self, other: Any, out: Any = None) -> Any:
        """As NumPy's."""
        by_method = self.expansion.signs is None or out is not None
        return super().dot(other, out) if by_method else np.dot(self, other)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """As NumPy's."""
        by_method = self.expansion.signs is None or out is not None  # np.cumsum itself calls this
        return super().cumsum(axis, dtype, out) if by_method else np.cumsum(self, axis, dtype)

    def _origins(self, function: np.ufunc, method: str, inputs: tuple[Any, ...]) -> tuple[Array | None, Array | None]:
        if method != "__call__":
            return None, None
        if function is np.subtract:
            a, b = (np.asarray(_plain(i), np.float64) for i in inputs)
            return a * a + b * b, None
        origin = inputs[0].subtracted if isinstance(inputs[0], Expanding) else None
        if function not in _SQUARES or origin is None:
            return None, None
        twice = function is np.square or (function is np.multiply and _same(*inputs))
        twice = twice or (function in (np.power, np.float_power) and np.ndim(inputs[1]) == 0 and inputs[1] == 2)
        return None, origin if twice else None

    def _accumulated(
        self,
        function: np.ufunc,
        method: str,
        inputs: tuple[Any, ...],
        result: Any,
        options: dict[str, Any],
        out: tuple[Any, ...],
        signs: np.random.Generator,
    ) -> Any:
        if function is np.add and method == "reduce":
            how = {k: v for k, v in options.items() if k in ("axis", "keepdims", "where")}
            squares = np.add.reduce(_squared(inputs[0]), **{"axis": 0, **how})
        elif function is np.add and method == "accumulate":
            how = {k: v for k, v in options.items() if k == "axis"}
            squares = np.add.accumulate(_squared(inputs[0]), **how)
        elif function in _SUM_UFUNCS and method == "__call__":
            how = {k: v for k, v in options.items() if k in ("axis", "axes", "keepdims")}
            squares = function(*(_squared(i) for i in inputs[:2]), **how)
        else:
            return result
        moved = self._shifted(result, squares, signs)
        if out:
            np.copyto(_plain(out[0]), moved)
        return moved

    def _shifted(self, result: Any, squares: Any, signs: np.random.Generator) -> Any:
        """A sum moved up or down, element by element, by what accumulating its terms errs by."""
        self.expansion.used = True
        slack = self.expansion.share * (np.sqrt(squares) + np.abs(np.asarray(result)))
        return result + slack * signs.choice(np.array([-1.0, 1.0]), np.shape(result))

    def _moved(self, result: Any, squares: Array, options: dict[str, Any], out: tuple[Any, ...]) -> Any:
        self.expansion.used = True
        how = {k: v for k, v in options.items() if k in ("axis", "keepdims", "where")}
        slack = np.add.reduce(squares, **{"axis": 0, **how})
        moved = np.maximum(np.asarray(result) + self.expansion.share * slack, 0.0)
        if out:
            np.copyto(_plain(out[0]), moved)
        return moved


def _same(a: Any, b: Any) -> bool:
    both = isinstance(b, Expanding) and b.subtracted is not None
    return a is b or (both and np.array_equal(_plain(a), _plain(b), equal_nan=True))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Expanding) else value


def _squared(value: Any) -> Any:
    """The squares of an array (in float64); anything else as it is, such as an axis or the subscripts of einsum."""
    return np.square(np.asarray(_plain(value), np.float64)) if isinstance(value, np.ndarray) else value


def _each(change: Callable[[Any], Any], values: Any) -> Any:
    """``change`` of every array among arguments, also in lists."""
    if isinstance(values, dict):
        return {k: _each(change, v) for k, v in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_each(change, v) for v in values)
    return change(values)


def _marked(values: Any, expansion: Expansion, subtracted: Array | None, squared: Array | None) -> Expanding:
    made = np.asarray(values).view(Expanding)
    made.expansion, made.subtracted, made.squared = expansion, subtracted, squared
    return made

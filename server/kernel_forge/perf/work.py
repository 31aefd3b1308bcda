"""Arithmetic that a reference does, counted as it runs.

An operation on floats of a NumPy ufunc is one, whatever it is (a sine is one, as a sum is); a sum of n terms is n - 1,
a product of matrices 2 m n k. That is the work of the *formula*, not of a kernel: a kernel that does the same with
fewer operations has a higher rate by it, and one that does more a lower one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
_FREE = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isnan, np.isfinite})
_PRODUCTS = ("matmul", "vecdot", "matvec", "vecmat")
# Functions that compute by ufuncs, which are counted, or do not compute. Of all others nothing is known.
_COUNTED = frozenset(
    "where sum mean var std prod max min amax amin argmax argmin any all reshape transpose ravel concatenate "
    "stack vstack hstack expand_dims squeeze broadcast_to repeat tile roll flip take take_along_axis pad "
    "zeros_like ones_like full_like empty_like copy sort argsort cumsum cumprod clip swapaxes moveaxis split "
    "array_split atleast_1d atleast_2d outer diff nonzero flatnonzero partition argpartition searchsorted shape "
    "ndim size diagonal diag tril triu bincount unique count_nonzero copyto put_along_axis delete insert append "
    "array_equal result_type".split()
)


@dataclass
class Work:
    """``operations`` seen so far; ``products`` of matrices among them; ``complete`` is False once something ran that
    could not be counted."""

    operations: int = 0
    products: int = 0
    complete: bool = True


class Counting(np.ndarray[tuple[int, ...], np.dtype[Any]]):
    """An array whose float operations are counted."""

    work: Work | None

    @classmethod
    def of(cls, array: Array, work: Work) -> "Counting":
        """A view of ``array``."""
        made = np.asarray(array).view(cls)
        made.work = work
        return made

    def __array_finalize__(self, other: object, /) -> None:
        self.work = getattr(other, "work", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        work = next((i.work for i in inputs if isinstance(i, Counting) and i.work is not None), None)
        options = dict(kwargs)
        out = options.get("out", ())
        if out:
            options["out"] = tuple(_plain(o) for o in out)
        values = [_plain(i) for i in inputs]
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*values, **options)
        if work is None or not isinstance(result, np.ndarray | np.generic):
            return result
        done = _operations(ufunc, str(method), values, np.asarray(result))
        work.operations += done
        if ufunc.__name__ in _PRODUCTS:
            work.products += done
        return out[0] if out else Counting.of(np.asarray(result), work)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        work = self.work
        if work is not None and func.__name__ not in _COUNTED:
            work.complete = False
        result = super().__array_function__(func, types, args, kwargs)
        # np.where and others give NumPy's own class.
        return Counting.of(result, work) if work is not None and type(result) is np.ndarray else result

    def dot(self, other: Any, out: Any = None) -> Any:
        """As NumPy's, which does it without a ufunc."""
        if self.work is not None:
            self.work.complete = False
        return super().dot(other, out)


def _operations(ufunc: np.ufunc, method: str, values: list[Any], result: Array) -> int:
    on_floats = result.dtype.kind in "fc" or any(np.asarray(v).dtype.kind == "f" for v in values[:2])
    if ufunc in _FREE or not on_floats:
        return 0
    if method in ("reduce", "accumulate", "reduceat"):
        return max(0, int(np.size(values[0])) - (int(result.size) if method == "reduce" else 1))
    if ufunc.__name__ in _PRODUCTS:
        return 2 * int(result.size) * int(np.shape(values[0])[-1])
    return int(result.size)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counting) else value

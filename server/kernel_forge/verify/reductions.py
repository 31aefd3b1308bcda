"""Whether a reference adds up many terms: read off an expression, watched in a function."""

import ast
from typing import Any

import numpy as np

from kernel_forge.verify.inputs import Array

REDUCING = frozenset(
    "sum nansum mean nanmean average dot vdot inner matmul vecdot matvec vecmat tensordot einsum prod nanprod cumsum "
    "nancumsum cumprod nancumprod var nanvar std nanstd norm trace convolve correlate cov corrcoef trapezoid "
    "cumulative_sum cumulative_prod fft ifft rfft irfft fft2 ifft2 fftn ifftn multi_dot matrix_power solve inv "
    "det histogram bincount polyval".split()
)
UFUNC_METHODS = frozenset({"reduce", "accumulate", "reduceat"})
ORDER_FREE = frozenset({"maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor"})
MANY_ADDITIONS = 8


def reduces(text: str) -> bool:
    """Whether a NumPy expression calls a reduction that rounds (``sum``, ``@``, ``np.add.reduce``; not ``max``)."""
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="sum"):
                return True
            case ast.Attribute(attr=name, value=owner):
                is_order_free = isinstance(owner, ast.Attribute) and owner.attr in ORDER_FREE
                if name in REDUCING or (name in UFUNC_METHODS and not is_order_free):
                    return True
    return False


class Watch:
    """What was seen of the arrays given to a function."""

    def __init__(self) -> None:
        self.reduced = False
        self.additions = 0

    @property
    def reduces(self) -> bool:
        """Whether many terms were, or may have been, added up."""
        return self.reduced or self.additions > MANY_ADDITIONS


class Watched(np.ndarray[tuple[int, ...], np.dtype[Any]]):
    """An array that notes reductions; elements taken one by one may go into a loop that adds, and count as such."""

    watch: Watch | None

    @classmethod
    def of(cls, array: Array, watch: Watch) -> "Watched":
        """A copy of ``array``."""
        made = np.array(array).view(cls)
        made.watch = watch
        return made

    def __array_finalize__(self, other: object, /) -> None:
        self.watch = other.watch if isinstance(other, Watched) else None

    def _note(self) -> None:
        if self.watch is not None:
            self.watch.reduced = True

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, np.ndarray):
            self._note()
        return found

    def __iter__(self) -> Any:
        if self.ndim == 1:
            self._note()
        return super().__iter__()

    def __float__(self) -> float:
        self._note()
        return float(self.view(np.ndarray))

    def tolist(self) -> Any:
        """As NumPy's."""
        self._note()
        return self.view(np.ndarray).tolist()

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ in REDUCING:
            self._note()
        result = super().__array_function__(func, types, args, kwargs)
        if self.watch is not None and isinstance(result, np.ndarray) and not isinstance(result, Watched):
            return Watched.of(result, self.watch)  # np.where and others give NumPy's own class
        return result

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        watch = next((i.watch for i in inputs if isinstance(i, Watched) and i.watch is not None), None)
        if watch is not None:
            if ufunc.__name__ in REDUCING or (method in UFUNC_METHODS and ufunc.__name__ not in ORDER_FREE):
                watch.reduced = True
            if ufunc in (np.add, np.subtract):
                watch.additions += 1
        options = dict(kwargs)
        out = options.get("out", ())
        if out:
            options["out"] = tuple(_plain(o) for o in out)
        result = getattr(ufunc, method)(*(_plain(i) for i in inputs), **options)
        if out:
            return out[0]
        if watch is None or not isinstance(result, np.ndarray | np.generic):
            return result
        return Watched.of(np.asarray(result), watch)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def lost(result: Any) -> bool:
    """Whether a function's result was made where :class:`Watched` does not see it (``np.asarray``, other libraries)."""
    parts = list(result.values()) if isinstance(result, dict) else result if isinstance(result, tuple) else [result]
    return not all(isinstance(part, Watched) for part in parts)

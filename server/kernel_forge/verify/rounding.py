"""Arrays that round what is computed from them as the kernel would: to see errors that float64 does not make.

NumPy promotes int64 to float64 and has no functions for bfloat16, so a reference that is merely *given* narrow
arrays does part of its work too exactly. :class:`Working` arrays hand every float result of a ufunc to ``finish``:
rounding it to the kernel's type shows the formula's own error (the standard model fl(a op b) = (a op b)(1 + d),
|d| <= u: Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 2.2); moving it by 1 +- eps at
random is Monte Carlo arithmetic (Parker, *Monte Carlo Arithmetic*, UCLA CSD-970002, 1997). Reductions are finished
once, at the end: kernels are expected to accumulate in float32 or wider.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_forge.verify.inputs import Array


@dataclass
class Finish:
    """What is done to a float result; ``goes_on`` whether what follows is treated too; ``used`` whether any was.

    ``only`` names the operations whose results are changed; None: all of them.
    """

    change: Callable[[Array], Array]
    goes_on: bool
    used: bool = False
    only: frozenset[np.ufunc] | None = None


class Working(np.ndarray[tuple[int, ...], np.dtype[Any]]):
    """An array whose float results are finished; integers computed from integers stay exact."""

    finish: Finish | None

    @classmethod
    def of(cls, array: Array, finish: Finish) -> "Working":
        """A view of ``array``."""
        made = np.asarray(array).view(cls)
        made.finish = finish
        return made

    def __array_finalize__(self, other: object, /) -> None:
        self.finish = other.finish if isinstance(other, Working) else None

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """As NumPy's; integers that become floats are finished."""
        made = plain(self).astype(dtype, *args, **kwargs)
        if self.dtype.kind != "f" and made.dtype.kind == "f":
            return self._finished(made, self.finish)
        return made if self.finish is None else Working.of(made, self.finish)

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        options = dict(kwargs)
        out = options.get("out", ())
        if out:
            options["out"] = tuple(plain(o) for o in out)
        values = [plain(i) for i in inputs]
        finish = next((i.finish for i in inputs if isinstance(i, Working) and i.finish is not None), None)
        wanted = options.get("dtype")
        if finish is not None and method != "__call__" and wanted is not None and np.dtype(wanted).kind == "f":
            first = np.asarray(values[0])
            if first.dtype.kind in "iub":  # a sum of converted integers: each is rounded on its way in
                values[0] = plain(self._finished(first.astype(np.float64), finish))
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*values, **options)
        if finish is not None and finish.only is not None and (ufunc not in finish.only or method != "__call__"):
            marks = not out and isinstance(result, np.ndarray | np.generic)
            return Working.of(np.asarray(result), finish) if marks else (out[0] if out else result)
        if isinstance(result, tuple):
            return tuple(self._finished(r, finish) for r in result)
        if out:
            if np.asarray(result).dtype.kind == "f" and finish is not None:
                np.copyto(plain(out[0]), plain(self._finished(result, finish)))
            return out[0]
        return self._finished(result, finish)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        finish = self.finish
        if finish is None:
            return super().__array_function__(func, types, args, kwargs)
        before, finish.used = finish.used, False
        result = super().__array_function__(func, types, args, kwargs)
        inside, finish.used = finish.used, before or finish.used
        if inside and not finish.goes_on:
            return result
        if finish.only is not None:
            return Working.of(result, finish) if type(result) is np.ndarray else result
        # np.where, np.einsum and others give NumPy's own class.
        return self._finished(result, finish) if type(result) is np.ndarray else result

    @staticmethod
    def _finished(result: Any, finish: Finish | None) -> Any:
        if finish is None or not isinstance(result, np.ndarray | np.generic):
            return result
        array = np.asarray(result)
        if array.dtype.kind != "f":
            return Working.of(array, finish) if array.dtype.kind in "iu" else result
        finish.used = True
        changed = np.asarray(finish.change(array))
        return Working.of(changed, finish) if finish.goes_on else changed


def plain(value: Any) -> Any:
    """``value`` as NumPy's own array."""
    return value.view(np.ndarray) if isinstance(value, Working) else value


def to_type(dtype: Any, stored: type[Any]) -> Finish:
    """Round every float result to ``dtype``, kept in ``stored``."""
    return Finish(lambda a: a.astype(dtype).astype(stored), goes_on=True)


def at_random(size: float, rng: np.random.Generator) -> Finish:
    """Move the first float result by 1 + size or 1 - size: the rounding of integers on their way into floats."""
    return Finish(lambda a: a * (1 + size * rng.choice(np.array([-1.0, 1.0]), a.shape)), goes_on=False)


def products_apart(size: float, bit: int) -> Finish:
    """Move the products of the k-th multiplication by 1 + size, or 1 - size where ``bit`` is set in k.

    Each is rounded in one kernel, and exact within an FMA in another. Of any two multiplications some bit tells one
    from the other, so that over the bits none two always err alike.
    """
    turns = itertools.count()
    return Finish(lambda a: a * (1 - size if next(turns) >> bit & 1 else 1 + size), goes_on=True, only=_PRODUCTS)


_PRODUCTS = frozenset({np.multiply, np.square, np.power, np.float_power})


def all_alike(size: float) -> Finish:
    """Move the first float result as a whole by 1 + size."""
    return Finish(lambda a: a * (1 + size), goes_on=False)

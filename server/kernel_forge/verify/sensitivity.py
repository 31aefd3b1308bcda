"""How much the reference moves: the measurements that :mod:`.tolerance` turns into tolerances."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.verify.cancellation import Expanding, Expansion
from kernel_forge.verify.exactness import Traced, trace_of
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.limits import ReferenceFailed
from kernel_forge.verify.rounding import Working, all_alike, at_random, products_apart, to_type

EPSILON = 2.0**-20
RANDOM_DRAWS = 8
INTEGER_DRAWS = 4
OWN_DRAWS = 3
SUM_DRAWS = 4
FLIP_DRAWS = 6
TIE_DRAWS = 40
PRODUCT_BITS = 4
Values = Mapping[str, Array]
Scalars = Mapping[str, float]
Evaluate = Callable[[Mapping[str, Any], type[Any]], Values]
"""(inputs, float type) -> outputs; evaluates the reference. A float scalar among the inputs replaces the case's own."""


def is_float(array: Array) -> bool:
    """Whether the elements are of a float type, bfloat16 included."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


class Steady:
    """Which elements of a reference are NaN, at the inputs and at every moved one that was tried."""

    def __init__(self, reference: Values) -> None:
        self._nan = {n: np.isnan(r) if r.dtype.kind == "f" else np.zeros(r.shape, bool) for n, r in reference.items()}

    def watching(self, evaluate: Evaluate) -> Evaluate:
        """``evaluate`` with its results noted."""

        def watched(values: Values, kind: type[Any]) -> Values:
            made = evaluate(values, kind)
            for name, nan in self._nan.items():
                if nan.any():
                    nan &= np.isnan(made[name].astype(np.float64))
            return made

        return watched

    def always_nan(self, name: str) -> Array:
        """True where every evaluation gave NaN."""
        return self._nan[name]


def exact_outputs(inputs: Values, evaluate: Evaluate, dtype: DType) -> set[str]:
    """The outputs that the reference computes without any rounding in ``dtype``, as far as can be told."""
    trace = trace_of(dtype)
    try:
        evaluate({n: Traced.of(a, trace) for n, a in inputs.items()}, np.float64)
    except ReferenceFailed:  # the reference wants plain arrays; it held with those
        return set()
    return trace.reached if trace.is_exact else set()


def moved_by(array: Array, size: float, rng: np.random.Generator) -> Array:
    """Every element multiplied by 1 + size or 1 - size at random."""
    return array * (1 + size * rng.choice(np.array([-1.0, 1.0]), array.shape))


def changes(moved: Values, reference: Values, *, not_finite: float = 0.0) -> dict[str, Array]:
    """|moved - reference|, 0 where the reference is not finite, ``not_finite`` where only what it moved to is not."""
    found = {}
    for name, base in reference.items():
        a, b = np.asarray(moved[name]).astype(np.float64), base.astype(np.float64)
        with np.errstate(all="ignore"):
            change = np.abs(a - b)
        found[name] = np.where(np.isfinite(change), change, np.where(np.isfinite(b), not_finite, 0.0))
    return found


def spread(inputs: Values, scalars: Scalars, reference: Values, evaluate: Evaluate, seed: int) -> dict[str, Array]:
    """S_random + S_same of the model, element by element; ``scalars`` are the float arguments passed by value."""
    # A change near the largest double divided by EPSILON is infinite: the element is not compared, and counted.
    with np.errstate(over="ignore"):
        return _spread(inputs, scalars, reference, evaluate, seed)


def _spread(inputs: Values, scalars: Scalars, reference: Values, evaluate: Evaluate, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng([seed, 0x70])
    squares = {n: np.zeros(r.shape) for n, r in reference.items()}
    same = {n: np.zeros(r.shape) for n, r in reference.items()}
    floats = [n for n, a in inputs.items() if is_float(a) and a.size]
    for _ in range(RANDOM_DRAWS if floats else 0):
        moved = {n: moved_by(inputs[n], EPSILON, rng) if n in floats else inputs[n] for n in inputs}
        for name, change in changes(evaluate(moved, np.float64), reference).items():
            squares[name] += (change / EPSILON) ** 2
    for which in floats:
        moved = {n: a * (1 + EPSILON) if n == which else a for n, a in inputs.items()}
        for name, change in changes(evaluate(moved, np.float64), reference).items():
            same[name] += change / EPSILON
    for which, value in scalars.items():
        for name, change in changes(evaluate({**inputs, which: value * (1 + EPSILON)}, np.float64), reference).items():
            same[name] += change / EPSILON
    converted = _converted(inputs, reference, evaluate, rng)
    return {n: np.sqrt(squares[n] / RANDOM_DRAWS) + same[n] + converted[n] for n in reference}


def _converted(inputs: Values, reference: Values, evaluate: Evaluate, rng: np.random.Generator) -> dict[str, Array]:
    """S_random + S_same where it is the first float results of integer inputs that are moved."""
    squares = {n: np.zeros(r.shape) for n, r in reference.items()}
    same = {n: np.zeros(r.shape) for n, r in reference.items()}
    for draw in range(INTEGER_DRAWS + 1):
        finish = at_random(EPSILON, rng) if draw else all_alike(EPSILON)
        moved = {n: Working.of(a, finish) if a.dtype.kind in "iu" else a for n, a in inputs.items()}
        try:
            found = changes(evaluate(moved, np.float64), reference)
        except ReferenceFailed:  # the reference wants plain arrays; it held with those
            break
        if not finish.used:
            break
        for name, change in found.items():
            if draw:
                squares[name] += (change / EPSILON) ** 2
            else:
                same[name] += change / EPSILON
    return {n: np.sqrt(s / INTEGER_DRAWS) + same[n] for n, s in squares.items()}


def own_error(
    inputs: Values, reference: Values, evaluate: Evaluate, narrow: type[Any], own: Any, u: float, seed: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Largest error of the reference in the kernel's own type, and where that is not finite though the reference is.

    ``own`` is the type results are rounded to, ``narrow`` the one NumPy computes in (wider where it has no functions
    for the own one).
    """
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    overflow = {n: np.zeros(r.shape, bool) for n, r in reference.items()}
    if narrow is np.float64:
        return worst, overflow
    rng = np.random.default_rng([seed, 0x0E])
    for draw in range(OWN_DRAWS):
        moved = {
            n: (a if draw == 0 else moved_by(a, u, rng)).astype(narrow) if is_float(a) else a for n, a in inputs.items()
        }
        wide = {n: a.astype(np.float64) if is_float(a) else a for n, a in moved.items()}
        exact = reference if draw == 0 else evaluate(wide, np.float64)
        rounded = _rounded(moved, evaluate, narrow, own)
        for name in reference:
            a, b = rounded[name].astype(np.float64), exact[name].astype(np.float64)
            with np.errstate(all="ignore"):
                error = np.abs(a - b)
            overflow[name] |= np.isfinite(b) & ~np.isfinite(a)
            worst[name] = np.maximum(worst[name], np.where(np.isfinite(error), error, 0.0))
    return worst, overflow


def _rounded(inputs: Values, evaluate: Evaluate, narrow: type[Any], own: Any) -> Values:
    """The reference with every result rounded: by NumPy where it computes in the type, else after each ufunc."""
    finish = to_type(own, narrow)
    by_hand = own is not narrow
    marked = {
        n: Working.of(a, finish) if a.dtype.kind in "iu" or (by_hand and is_float(a)) else a for n, a in inputs.items()
    }
    try:
        return evaluate(marked, narrow)
    except ReferenceFailed:  # the reference wants plain arrays; it held with those
        return evaluate(inputs, narrow)


def contracted(inputs: Values, reference: Values, evaluate: Evaluate, u: float) -> dict[str, Array]:
    """Largest change when some products are rounded and others are not, since a fused multiply-add takes them in.

    Two roundings of the same product cancel in x * x - x * x; where a compiler fuses one of them they do not.
    """
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    for bit in range(PRODUCT_BITS):
        finish = products_apart(u, bit)
        marked = {n: Working.of(a, finish) if is_float(a) else a for n, a in inputs.items()}
        try:
            moved = evaluate(marked, np.float64)
        except ReferenceFailed:  # the reference wants plain arrays; it held with those
            break
        if not finish.used:
            break
        for name, change in changes(moved, reference).items():
            worst[name] = np.maximum(worst[name], change)
    return worst


def expanded(inputs: Values, reference: Values, evaluate: Evaluate, share: float) -> dict[str, Array]:
    """Change when sums of squared differences move by ``share`` of their squares; infinite where not finite."""
    moves = (Expansion(sign * share) for sign in (1.0, -1.0))
    return _largest_change(inputs, reference, evaluate, moves, not_finite=np.inf)


def accumulated(inputs: Values, reference: Values, evaluate: Evaluate, share: float, seed: int) -> dict[str, Array]:
    """Change when every sum inside the reference errs by ``share`` of what it adds up."""
    rng = np.random.default_rng([seed, 0xAC])
    moves = (Expansion(share, signs=rng) for _ in range(SUM_DRAWS))
    return _largest_change(inputs, reference, evaluate, moves, not_finite=0.0)


def _largest_change(
    inputs: Values, reference: Values, evaluate: Evaluate, expansions: Iterable[Expansion], *, not_finite: float
) -> dict[str, Array]:
    """Largest change of the reference when its sums move; ``not_finite`` where a move takes it out of range.

    Nothing changes where the reference has no such sums, or wants plain arrays (it held with those).
    """
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    for expansion in expansions:
        marked = {n: Expanding.of(a, expansion) if is_float(a) else a for n, a in inputs.items()}
        try:
            moved = evaluate(marked, np.float64)
        except ReferenceFailed:
            return {n: np.zeros(r.shape) for n, r in reference.items()}
        if not expansion.used:
            break
        for name, change in changes(moved, reference, not_finite=not_finite).items():
            worst[name] = np.maximum(worst[name], change)
    return worst


def flips(
    inputs: Values, integers: Values, evaluate: Evaluate, narrow: type[Any], u: float, seed: int
) -> dict[str, Array]:
    """Largest change of integer results where comparisons of floats may go either way.

    Where a few draws show any, more are made: a result may depend on many ties, and a draw decides each at random.
    """
    worst = {n: np.zeros(r.shape) for n, r in integers.items()}
    if not integers or not any(is_float(a) and a.size for a in inputs.values()):
        return worst
    rounded = {n: np.rint(r) if r.dtype.kind == "f" else r for n, r in integers.items()}
    for draw, (values, kind) in enumerate(_nearby(inputs, narrow, u, np.random.default_rng([seed, 0xF1]))):
        if draw > FLIP_DRAWS + OWN_DRAWS and not any(w.any() for w in worst.values()):
            break
        other = evaluate(values, kind)
        integral = {n: np.rint(other[n]) if other[n].dtype.kind == "f" else other[n] for n in integers}
        for name, change in changes(integral, rounded).items():
            worst[name] = np.maximum(worst[name], change)
    return worst


def _nearby(
    inputs: Values, narrow: type[Any], u: float, rng: np.random.Generator
) -> Iterator[tuple[Values, type[Any]]]:
    """Inputs moved by up to a few roundings, each with the type to evaluate the reference in."""
    own = 0 if narrow is np.float64 else 1 + OWN_DRAWS
    for draw in range(own):
        near = {n: moved_by(a, 2 * u, rng) if draw and is_float(a) else a for n, a in inputs.items()}
        yield {n: a.astype(narrow) if is_float(a) else a for n, a in near.items()}, narrow
    for draw in range(FLIP_DRAWS + TIE_DRAWS):
        size = u if draw % 2 else 4 * u
        yield {n: moved_by(a, size, rng) if is_float(a) else a for n, a in inputs.items()}, np.float64

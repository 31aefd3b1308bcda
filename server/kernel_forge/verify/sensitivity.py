"""How much the reference moves: the measurements that :mod:`.tolerance` turns into tolerances."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from kernel_forge.verify.cancellation import Expanding, Expansion
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.user_code import ReferenceFailed

EPSILON = 2.0**-20
RANDOM_DRAWS = 8
OWN_DRAWS = 3
FLIP_DRAWS = 6
TIE_DRAWS = 40
Values = Mapping[str, Array]
Evaluate = Callable[[Values, type[Any]], Values]
"""(inputs, float type) -> outputs; evaluates the reference."""


def is_float(array: Array) -> bool:
    """Whether the elements are of a float type, bfloat16 included."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def moved_by(array: Array, size: float, rng: np.random.Generator) -> Array:
    """Every element multiplied by 1 + size or 1 - size at random."""
    return array * (1 + size * rng.choice(np.array([-1.0, 1.0]), array.shape))


def changes(moved: Values, reference: Values) -> dict[str, Array]:
    """|moved - reference|, 0 where that is not finite."""
    found = {}
    for name, base in reference.items():
        with np.errstate(all="ignore"):
            change = np.abs(moved[name].astype(np.float64) - base.astype(np.float64))
        found[name] = np.where(np.isfinite(change), change, 0.0)
    return found


def spread(inputs: Values, reference: Values, evaluate: Evaluate, seed: int) -> dict[str, Array]:
    """S_random + S_same of the model, element by element."""
    rng = np.random.default_rng([seed, 0x70])
    squares = {n: np.zeros(r.shape) for n, r in reference.items()}
    same = {n: np.zeros(r.shape) for n, r in reference.items()}
    floats = [n for n, a in inputs.items() if is_float(a) and a.size]
    if not floats:
        return same
    for _ in range(RANDOM_DRAWS):
        moved = {n: moved_by(inputs[n], EPSILON, rng) if n in floats else inputs[n] for n in inputs}
        for name, change in changes(evaluate(moved, np.float64), reference).items():
            squares[name] += (change / EPSILON) ** 2
    for which in floats:
        moved = {n: a * (1 + EPSILON) if n == which else a for n, a in inputs.items()}
        for name, change in changes(evaluate(moved, np.float64), reference).items():
            same[name] += change / EPSILON
    return {n: np.sqrt(squares[n] / RANDOM_DRAWS) + same[n] for n in reference}


def own_error(
    inputs: Values, reference: Values, evaluate: Evaluate, narrow: type[Any], u: float, seed: int
) -> dict[str, Array]:
    """Largest error of the reference in the kernel's own type; infinite where that overflows."""
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    if narrow is np.float64:
        return worst
    rng = np.random.default_rng([seed, 0x0E])
    for draw in range(OWN_DRAWS):
        moved = {
            n: (a if draw == 0 else moved_by(a, u, rng)).astype(narrow) if is_float(a) else a for n, a in inputs.items()
        }
        wide = {n: a.astype(np.float64) if is_float(a) else a for n, a in moved.items()}
        exact = reference if draw == 0 else evaluate(wide, np.float64)
        rounded = evaluate(moved, narrow)
        for name in reference:
            a, b = rounded[name].astype(np.float64), exact[name].astype(np.float64)
            with np.errstate(all="ignore"):
                error = np.abs(a - b)
            error = np.where(np.isfinite(b) & ~np.isfinite(a), np.inf, np.nan_to_num(error, nan=0.0, posinf=np.inf))
            worst[name] = np.maximum(worst[name], error)
    return worst


def expanded(inputs: Values, reference: Values, evaluate: Evaluate, share: float) -> dict[str, Array]:
    """Change when sums of squared differences move by ``share`` of their squares; infinite where not finite."""
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    for sign in (1.0, -1.0):
        expansion = Expansion(sign * share)
        marked = {n: Expanding.of(a, expansion) if is_float(a) else a for n, a in inputs.items()}
        try:
            moved = evaluate(marked, np.float64)
        except ReferenceFailed:  # the reference wants plain arrays; it held with those
            return {n: np.zeros(r.shape) for n, r in reference.items()}
        if not expansion.used:
            break
        for name, base in reference.items():
            a, b = np.asarray(moved[name]).astype(np.float64), base.astype(np.float64)
            with np.errstate(all="ignore"):
                change = np.where(np.isfinite(b), np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf), 0.0)
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

"""How far an output may be from the float64 reference: derived, never chosen.

Model. A kernel is accepted when it computes the exact result for slightly different inputs (backward error,
Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., ch. 1 and 3). So the reference is evaluated
in float64 at perturbed inputs, and what that moves an output by is the scale of its tolerance. This is Monte
Carlo arithmetic (Parker 1997) applied to the reference as a black box:

* ``S_random``: root mean square, over several draws, of the change when every input element is multiplied by
  1 + eps or 1 - eps at random, divided by eps;
* ``S_same``: sum, over the inputs, of the change when one whole input is multiplied by 1 + eps.

For a sum of n terms, S_random is the root of the sum of squares and S_same the absolute sum. Accumulating in
working precision u in any order errs by about u * sqrt(n) * (S_random + S_same) with overwhelming probability
(Higham and Mary, *A New Approach to Probabilistic Rounding Error Analysis*, 2019: the constant n of the worst
case is sqrt(n) in practice). Hence, element by element,

    tolerance =   C * u_widest * (S_random + S_same)              rounding of intermediate values
                + C * sqrt(n) * u_sum * (S_random + S_same)       accumulation, where the reference reduces
                + R * u_out * |reference|                         rounding of the result
                + E * own                                         the reference's own error in the kernel's type
                + D * smallest denormal of the output             underflow

with u_widest the unit roundoff of the widest float type among the arguments, u_sum the smaller of it and that of
float32 (half kernels are expected to accumulate in float32, and C is C_HALF for them where the reference reduces),
u_out that of the output. ``own`` is the largest error,
over a few draws of inputs moved by one rounding, of the reference evaluated in that widest type: it shows cancellation
inside the formula, which perturbing inputs does not. Elements where the reference, evaluated in the kernel's type,
overflows are not compared (tolerance infinite).

Integer outputs are exact, except where float inputs moved by a few roundings give another integer.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role, Tolerance
from kernel_forge.spec import BoundCase
from kernel_forge.verify.inputs import Array

C = 8.0
C_HALF = 2.0
R = 4.0
E = 4.0
D = 4.0
EPSILON = 2.0**-20
RANDOM_DRAWS = 8
OWN_DRAWS = 3
Evaluate = Callable[[Mapping[str, Array], type[Any]], Mapping[str, Array]]
"""(inputs, float type) -> outputs; evaluates the reference."""

_NUMPY_FLOAT: Mapping[DType, type[Any]] = {
    DType.FLOAT16: np.float16,
    DType.BFLOAT16: np.float32,  # NumPy functions do not take bfloat16; float32 is the next wider
    DType.FLOAT32: np.float32,
    DType.FLOAT64: np.float64,
}


@dataclass(frozen=True)
class Scales:
    """What the model needs to know about one contract."""

    u_widest: float
    u_sum: float
    widest: DType
    length: int


def scales(spec: KernelSpec, bound: BoundCase, *, reduces: bool) -> Scales:
    """Roundoffs and reduction length of ``spec`` at one case."""
    floats = [
        a.dtype for a in spec.args if isinstance(a, BufferArg) and a.dtype.is_float and a.role is not Role.SCRATCH
    ]
    widest = min(floats, key=lambda d: d.unit_roundoff) if floats else DType.FLOAT64
    u = widest.unit_roundoff
    return Scales(u, min(u, DType.FLOAT32.unit_roundoff), widest, _length(spec, bound) if reduces else 1)


def _length(spec: KernelSpec, bound: BoundCase) -> int:
    """Most terms that can meet in one output element: the extents of an input that no output has, or one extent."""
    outputs = {e.text for a in spec.outputs for e in a.shape}
    length = 1
    for arg in spec.args:
        if not isinstance(arg, BufferArg) or arg.role not in (Role.IN, Role.INOUT):
            continue
        extents = bound.shapes[arg.name]
        gone = [n for e, n in zip(arg.shape, extents, strict=True) if e.text not in outputs]
        length = max(length, math.prod(gone), *extents, 1)
    return length


def derive(
    spec: KernelSpec,
    bound: BoundCase,
    inputs: Mapping[str, Array],
    reference: Mapping[str, Array],
    evaluate: Evaluate,
    *,
    reduces: bool,
    seed: int,
) -> dict[str, Array]:
    """Output -> largest accepted |got - reference| for each element (float64, infinite where not compared).

    ``inputs`` are in the arguments' own types, ``reference`` is the float64 result at them.
    """
    s = scales(spec, bound, reduces=reduces)
    wide = {n: a.astype(np.float64) if _is_float(a) else a for n, a in inputs.items()}
    spread, spread_integer = _spread(wide, reference, evaluate, s, seed)
    own = _own_error(wide, reference, evaluate, s, seed)
    result: dict[str, Array] = {}
    for output in spec.outputs:
        name = output.name
        if name not in reference:
            continue
        if not output.dtype.is_float:
            result[name] = spread_integer[name]
            continue
        magnitude = np.abs(reference[name].astype(np.float64))
        growth = _growth(s)
        u_out = output.dtype.unit_roundoff
        limit = _largest(output.dtype)
        with np.errstate(all="ignore"):
            tolerance = growth * spread[name] + R * u_out * magnitude + E * own[name] + D * _denormal(output.dtype)
            excluded = ~np.isfinite(own[name]) | (np.isfinite(magnitude) & (magnitude > limit))
        result[name] = np.where(excluded, np.inf, np.nan_to_num(tolerance, nan=np.inf))
    return result


def _growth(s: Scales) -> float:
    """Units of (S_random + S_same) that rounding may move an output by."""
    if s.length <= 1:
        return C * s.u_widest
    intermediate = C_HALF if s.u_widest > s.u_sum else C
    return intermediate * s.u_widest + C * math.sqrt(s.length) * s.u_sum


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _spread(
    inputs: Mapping[str, Array], reference: Mapping[str, Array], evaluate: Evaluate, s: Scales, seed: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    rng = np.random.default_rng([seed, 0x70])
    squares = {n: np.zeros(r.shape) for n, r in reference.items()}
    same = {n: np.zeros(r.shape) for n, r in reference.items()}
    flips = {n: np.zeros(r.shape) for n, r in reference.items()}
    floats = [n for n, a in inputs.items() if _is_float(a) and a.size]
    if not floats:
        return same, flips
    for _ in range(RANDOM_DRAWS):
        moved = {n: _moved(inputs[n], EPSILON, rng) if n in floats else inputs[n] for n in inputs}
        for name, change in _changes(evaluate(moved, np.float64), reference).items():
            squares[name] += (change / EPSILON) ** 2
    for which in floats:
        moved = {n: a * (1 + EPSILON) if n == which else a for n, a in inputs.items()}
        for name, change in _changes(evaluate(moved, np.float64), reference).items():
            same[name] += change / EPSILON
    for _ in range(OWN_DRAWS):
        moved = {n: _moved(inputs[n], 4 * s.u_widest, rng) if n in floats else inputs[n] for n in inputs}
        for name, change in _changes(evaluate(moved, np.float64), reference).items():
            flips[name] = np.maximum(flips[name], change)
    return {n: np.sqrt(squares[n] / RANDOM_DRAWS) + same[n] for n in reference}, flips


def _moved(array: Array, size: float, rng: np.random.Generator) -> Array:
    return array * (1 + size * rng.choice(np.array([-1.0, 1.0]), array.shape))


def _changes(moved: Mapping[str, Array], reference: Mapping[str, Array]) -> dict[str, Array]:
    changes = {}
    for name, base in reference.items():
        with np.errstate(all="ignore"):
            change = np.abs(moved[name].astype(np.float64) - base.astype(np.float64))
        changes[name] = np.where(np.isfinite(change), change, 0.0)
    return changes


def _own_error(
    inputs: Mapping[str, Array], reference: Mapping[str, Array], evaluate: Evaluate, s: Scales, seed: int
) -> dict[str, Array]:
    """Largest error of the reference in the kernel's own type; infinite where that overflows."""
    kind = _NUMPY_FLOAT[s.widest]
    if kind is np.float16 and s.length > 1:
        kind = np.float32  # half kernels are expected to accumulate in float32
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    if kind is np.float64:
        return worst
    rng = np.random.default_rng([seed, 0x0E])
    for draw in range(OWN_DRAWS):
        moved = {
            n: (a if draw == 0 else _moved(a, s.u_widest, rng)).astype(kind) if _is_float(a) else a
            for n, a in inputs.items()
        }
        exact = (
            reference
            if draw == 0
            else evaluate({n: a.astype(np.float64) if _is_float(a) else a for n, a in moved.items()}, np.float64)
        )
        narrow = evaluate(moved, kind)
        for name in reference:
            a, b = narrow[name].astype(np.float64), exact[name].astype(np.float64)
            with np.errstate(all="ignore"):
                error = np.abs(a - b)
            error = np.where(np.isfinite(b) & ~np.isfinite(a), np.inf, np.nan_to_num(error, nan=0.0, posinf=np.inf))
            worst[name] = np.maximum(worst[name], error)
    return worst


def _finfo(dtype: DType) -> Any:
    return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]


def _largest(dtype: DType) -> float:
    return float(_finfo(dtype).max)


def _denormal(dtype: DType) -> float:
    return float(_finfo(dtype).smallest_subnormal)


def fixed(tolerance: Tolerance, reference: Array) -> Array:
    """The user's tolerance, element by element."""
    with np.errstate(all="ignore"):
        return tolerance.absolute + tolerance.relative * np.abs(reference.astype(np.float64))


def between_kernels(
    spec: KernelSpec,
    bound: BoundCase,
    inputs: Mapping[str, Array],
    values: Mapping[str, Array],
    evaluate: Evaluate,
    *,
    seed: int,
) -> dict[str, Array]:
    """The tolerance where the reference is itself a kernel that computes in the arguments' types.

    The perturbation must survive rounding to those types, so it is larger than :data:`EPSILON`.
    """
    s = scales(spec, bound, reduces=True)
    epsilon = max(EPSILON, 64 * s.u_widest)
    rng = np.random.default_rng([seed, 0x71])
    wide = {n: a.astype(np.float64) if _is_float(a) else a for n, a in inputs.items()}
    squares = {n: np.zeros(v.shape) for n, v in values.items()}
    for _ in range(RANDOM_DRAWS // 2):
        moved = {n: _moved(a, epsilon, rng) if _is_float(a) else a for n, a in wide.items()}
        for name, change in _changes(evaluate(moved, np.float64), values).items():
            squares[name] += (change / epsilon) ** 2
    same = {n: np.zeros(v.shape) for n, v in values.items()}
    moved = {n: a * (1 + epsilon) if _is_float(a) else a for n, a in wide.items()}
    for name, change in _changes(evaluate(moved, np.float64), values).items():
        same[name] += change / epsilon
    result = {}
    for output in spec.outputs:
        if output.name in values and output.dtype.is_float:
            spread = np.sqrt(squares[output.name] / (RANDOM_DRAWS // 2)) + same[output.name]
            growth = _growth(s)
            magnitude = np.abs(values[output.name].astype(np.float64))
            tolerance = growth * spread + R * output.dtype.unit_roundoff * magnitude + D * _denormal(output.dtype)
            result[output.name] = np.nan_to_num(tolerance, nan=np.inf)
    return result

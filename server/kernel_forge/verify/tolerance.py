"""How far an output may be from the float64 reference: derived, never chosen.

Model. A kernel is accepted when it computes the exact result for slightly different inputs (backward error,
Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., ch. 1 and 3). So the reference is evaluated
in float64 at perturbed inputs, and what that moves an output by is the scale of its tolerance. This is Monte
Carlo arithmetic (Parker 1997) applied to the reference as a black box:

* ``S_random``: root mean square, over several draws, of the change when every input element is multiplied by
  1 + eps or 1 - eps at random, divided by eps;
* ``S_same``: sum, over the inputs, of the change when one whole input is multiplied by 1 + eps. Float scalars are
  inputs like any other: fl(p * theta) = p * theta * (1 + d) is the exact product for theta * (1 + d).

Integers are exact, but their first float result is not (sqrtf((float)i) rounds): that result is an input in the sense
of both, moved by 1 +- eps element by element and by 1 + eps as a whole (see :mod:`.rounding`).

For a sum of n terms, S_random is the root of the sum of squares and S_same the absolute sum. Accumulating in
working precision u in any order errs by about u * sqrt(n) * (S_random + S_same) with overwhelming probability
(Higham and Mary, *A New Approach to Probabilistic Rounding Error Analysis*, 2019: the constant n of the worst
case is sqrt(n) in practice). Hence, element by element,

    tolerance =   C * u_widest * (S_random + S_same)              rounding of intermediate values
                + C * sqrt(n) * u_sum * (S_random + S_same)       accumulation, where the reference reduces
                + R * u_out * |reference|                         rounding of the result
                + expansion                                       squares of differences, expanded
                + filtering                                       weights of few bits, see :mod:`.filtering`
                + E * own                                         the reference's own error in the kernel's type
                + E * contracted                                  products within a fused multiply-add
                + D * smallest denormal of the output             underflow
                + C * u_float64 * max |reference|                 only where the reference is 0 and does not move:
                                                                  it may have cancelled, as 1 + tanh(-30) does

The accumulation is also measured where it happens, since the terms of a sum need not move with the inputs (exp(x) for
x near 0 does not): every sum inside the reference is moved by C * sqrt(n) * u_sum of the root of its terms' squares and
of itself, and where that moves the output further than the first two lines, it takes their place.

With u_widest the unit roundoff of the widest float type among the arguments, u_sum the smaller of it and that of
float32 (half kernels are expected to accumulate in float32, and C is C_HALF for them where the reference reduces),
u_out that of the output. ``own`` is the largest error,
over a few draws of inputs moved by one rounding, of the reference evaluated in that widest type: it shows cancellation
inside the formula, which perturbing inputs does not. NumPy has no functions for bfloat16 and promotes integers to
float64, so there every result of a ufunc is rounded by hand (:mod:`.rounding`).

``contracted`` is the largest change when the products inside the reference are moved by one rounding, some up and
some down: a compiler that fuses a multiplication with an addition leaves that rounding out, so that products
which cancel exactly elsewhere (x * x - x * x) no longer do.

Where the reference overflows in the kernel's type, ``own`` says nothing: the other terms hold for what is finite, and
inf or NaN is accepted too, as the honest kernel overflows there. Such elements are not compared, and counted.

``expansion`` is what the output moves by when every sum of squared differences inside the reference, such as a
variance, moves by the accumulation error of the sum of the squares themselves (see :mod:`.cancellation`): kernels that
compute E[x^2] - E[x]^2 are honest, and where the mean dwarfs the deviation that formula errs far more than any rounding
of the inputs shows (layer norm of two columns is +-1 whatever they are). Elements where that makes the reference
infinite or NaN are not compared (tolerance infinite), and counted. So are those where the reference itself is not
finite, unless it got there without overflow or invalid operation: an infinity that was written down must be matched.
It says nothing about a kernel that takes the root of a variance below zero: NaN is reported, with one column and large
inputs too.

Where the reference computes without rounding (see :mod:`.exactness`: it compares, selects, adds numbers of few bits),
the kernel must too: integers are exact, and a threshold met exactly counts as what the reference says. Where the
reference is NaN, at these inputs and all near them, the kernel must give NaN.

Other integer outputs are exact, except where the float inputs moved by a few roundings, or the reference evaluated in
the kernel's own float type, give another integer: a comparison at a tie may go either way where rounding makes it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role, ScalarArg, Tolerance
from kernel_forge.spec import BoundCase
from kernel_forge.verify.filtering import filtered_textures, filtering_error
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.sensitivity import (
    Evaluate,
    Steady,
    accumulated,
    contracted,
    exact_outputs,
    expanded,
    flips,
    is_float,
    own_error,
    spread,
)

C = 8.0
C_HALF = 2.0
R = 4.0
E = 4.0
D = 4.0


@dataclass(frozen=True)
class Allowed:
    """Per element the largest accepted error (infinite: not compared), and whether inf or NaN is accepted as well."""

    error: Array
    overflow: Array


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

    @property
    def growth(self) -> float:
        """Units of (S_random + S_same) that rounding may move an output by."""
        if self.length <= 1:
            return C * self.u_widest
        intermediate = C_HALF if self.u_widest > self.u_sum else C
        return intermediate * self.u_widest + C * math.sqrt(self.length) * self.u_sum


def scales(spec: KernelSpec, bound: BoundCase, *, reduces: bool) -> Scales:
    """Roundoffs and reduction length of ``spec`` at one case."""
    buffers = [a for a in spec.args if isinstance(a, BufferArg) and a.role is not Role.SCRATCH]
    types = [a.dtype if a.texture is None else a.texture.gives(a.dtype) for a in buffers]
    floats = [t for t in types if t.is_float]
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
    troubled: bool,
    seed: int,
) -> dict[str, Allowed]:
    """Output -> largest accepted |got - reference| for each element (float64, infinite where not compared).

    ``inputs`` are in the arguments' own types, ``reference`` is the float64 result at them; ``troubled`` tells that
    making it something overflowed.
    """
    s = scales(spec, bound, reduces=reduces)
    wide = {n: a.astype(np.float64) if is_float(a) else a for n, a in inputs.items()}
    narrow = _NUMPY_FLOAT[s.widest]
    if narrow is np.float16 and s.length > 1:
        narrow = np.float32  # half kernels are expected to accumulate in float32
    own_type = ml_dtypes.bfloat16 if s.widest is DType.BFLOAT16 and s.length <= 1 else narrow
    scalars = {a.name: _value(a, bound) for a in spec.args if isinstance(a, ScalarArg) and a.dtype.is_float}
    steady = Steady(reference)
    evaluate = steady.watching(evaluate)
    exact = set() if filtered_textures(spec) else exact_outputs(wide, evaluate, s.widest)
    if exact >= reference.keys():
        return {
            a.name: exactly(_exactly(a, wide, reference[a.name], s.length)) for a in spec.outputs if a.name in reference
        }
    moves = spread(wide, scalars, reference, evaluate, seed)
    own, overflow = own_error(wide, reference, evaluate, narrow, own_type, s.u_widest, seed)
    fused = contracted(wide, reference, evaluate, s.u_widest)
    expansion = expanded(wide, reference, evaluate, s.growth)
    sums = accumulated(wide, reference, evaluate, s.growth, seed) if s.length > 1 else None
    filtering = filtering_error(spec, wide, reference, evaluate, seed)
    integers = {a.name: reference[a.name] for a in spec.outputs if not a.dtype.is_float and a.name in reference}
    others = flips(wide, integers, evaluate, narrow, s.u_widest, seed)
    result: dict[str, Allowed] = {}
    for output in spec.outputs:
        name = output.name
        if name not in reference:
            continue
        if name in exact:
            result[name] = exactly(_exactly(output, wide, reference[name], s.length))
            continue
        if not output.dtype.is_float:
            result[name] = exactly(np.maximum.reduce([others[name], np.rint(expansion[name]), filtering[name]]))
            continue
        magnitude = np.abs(reference[name].astype(np.float64))
        u_out = output.dtype.unit_roundoff
        with np.errstate(all="ignore"):
            rounding = R * u_out * magnitude + D * smallest(output.dtype)
            scale = _finite(s.growth * moves[name])
            if sums is not None:
                scale = np.maximum(scale, _finite(sums[name]))
            own_term = _finite(E * own[name]) + _finite(E * fused[name])
            tolerance = scale + own_term + _vanished(magnitude, moves[name]) + expansion[name] + rounding
            tolerance = tolerance + _finite(filtering[name])
        allowed = where_finite(reference[name], tolerance, troubled=troubled)
        result[name] = Allowed(np.where(steady.always_nan(name), 0.0, allowed), overflow[name])
    return result


def _exactly(output: BufferArg, inputs: Mapping[str, Array], reference: Array, length: int) -> Array:
    """The tolerance of an output that is computed without rounding: none for integers.

    A float output may come about in another way that does round, but no further than what went into it: a step to the
    other side of a threshold is no rounding.
    """
    if not output.dtype.is_float:
        return np.zeros(reference.shape)
    values = [np.abs(a[np.isfinite(a)].astype(np.float64)) for a in (*inputs.values(), reference)]
    largest = max((float(v.max()) for v in values if v.size), default=0.0)
    largest = largest if largest < _largest(output.dtype) else 0.0
    u = output.dtype.unit_roundoff
    magnitude = np.nan_to_num(np.abs(reference.astype(np.float64)), posinf=0.0)
    return R * u * magnitude + C * math.sqrt(length) * u * largest + D * smallest(output.dtype)


def exactly(error: Array) -> Allowed:
    """Within ``error`` and never anything else."""
    return Allowed(error, np.zeros(error.shape, bool))


def _finite(term: Array) -> Array:
    """The term where it can be told, else nothing: the other terms hold."""
    return np.where(np.isfinite(term), term, 0.0)


def where_finite(reference: Array, tolerance: Array, *, troubled: bool) -> Array:
    """What is not finite is matched exactly, or not compared where it may be the reference's own overflow."""
    finite = np.isfinite(reference.astype(np.float64))
    return np.where(finite, np.nan_to_num(tolerance, nan=0.0, posinf=np.inf), np.inf if troubled else 0.0)


def _value(arg: ScalarArg, bound: BoundCase) -> float:
    """A float scalar as the kernel gets it."""
    return float(np.asarray(bound.scalars[arg.name]).astype(arg.dtype.numpy))


def _vanished(magnitude: Array, moves: Array) -> Array:
    """Roundings of the reference itself where it cancelled to nothing."""
    finite = magnitude[np.isfinite(magnitude)]
    largest = float(finite.max()) if finite.size else 0.0
    return np.where((magnitude == 0) & (moves == 0), C * DType.FLOAT64.unit_roundoff * largest, 0.0)


def _finfo(dtype: DType) -> Any:
    return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]


def _largest(dtype: DType) -> float:
    return float(_finfo(dtype).max)


def smallest(dtype: DType) -> float:
    """The smallest positive number of a float type."""
    return float(_finfo(dtype).smallest_subnormal)


def fixed(tolerance: Tolerance, reference: Array, *, troubled: bool) -> Allowed:
    """The user's tolerance, element by element; ``troubled`` as for :func:`derive`."""
    with np.errstate(all="ignore"):
        error = tolerance.absolute + tolerance.relative * np.abs(reference.astype(np.float64))
    return exactly(where_finite(reference, error, troubled=troubled))

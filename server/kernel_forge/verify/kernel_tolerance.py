"""How far two kernels may be apart, where one is the reference of the other: see :mod:`.tolerance` for the model."""

from collections.abc import Mapping

import numpy as np

from kernel_forge.domain.spec import KernelSpec
from kernel_forge.spec import BoundCase
from kernel_forge.verify.filtering import filtered_textures, filtering_error
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.limits import ReferenceFailed
from kernel_forge.verify.sensitivity import EPSILON, Evaluate, changes, is_float, moved_by
from kernel_forge.verify.tolerance import Allowed, D, R, exactly, scales, smallest, where_finite

RANDOM_DRAWS = 4


def between_kernels(
    spec: KernelSpec,
    bound: BoundCase,
    inputs: Mapping[str, Array],
    values: Mapping[str, Array],
    evaluate: Evaluate,
    *,
    seed: int,
) -> dict[str, Allowed]:
    """The tolerance where the reference is itself a kernel that computes in the arguments' types: both round.

    The perturbation must survive rounding to those types, so it is larger than :data:`.sensitivity.EPSILON`.
    """
    s = scales(spec, bound, reduces=True)
    epsilon = max(EPSILON, 64 * s.u_widest)
    rng = np.random.default_rng([seed, 0x71])
    wide = {n: a.astype(np.float64) if is_float(a) else a for n, a in inputs.items()}
    squares = {n: np.zeros(v.shape) for n, v in values.items()}
    for _ in range(RANDOM_DRAWS):
        moved = {n: moved_by(a, epsilon, rng) if is_float(a) else a for n, a in wide.items()}
        for name, change in changes(evaluate(moved, np.float64), values).items():
            squares[name] += (change / epsilon) ** 2
    same = {n: np.zeros(v.shape) for n, v in values.items()}
    moved = {n: a * (1 + epsilon) if is_float(a) else a for n, a in wide.items()}
    for name, change in changes(evaluate(moved, np.float64), values).items():
        same[name] += change / epsilon
    filtering = _filtering(spec, wide, values, evaluate, seed, epsilon)
    result = {}
    for output in spec.outputs:
        if output.name in values and output.dtype.is_float:
            scale = np.sqrt(squares[output.name] / RANDOM_DRAWS) + same[output.name]
            magnitude = np.abs(values[output.name].astype(np.float64))
            one = s.growth * scale + R * output.dtype.unit_roundoff * magnitude + D * smallest(output.dtype)
            one = one + filtering[output.name]
            result[output.name] = exactly(2 * where_finite(values[output.name], one, troubled=False))
    return result


def _filtering(
    spec: KernelSpec,
    inputs: Mapping[str, Array],
    values: Mapping[str, Array],
    evaluate: Evaluate,
    seed: int,
    epsilon: float,
) -> Mapping[str, Array]:
    whole = next((a for a in filtered_textures(spec) if not a.dtype.is_float), None)
    if whole is not None:
        message = (
            f"how far linear filtering of {whole.name} may move the outputs cannot be derived from another kernel, "
            "which takes whole texels only; say it in the spec: tolerance = { absolute = 1e-2 }"
        )
        raise ReferenceFailed(message, None)
    return filtering_error(spec, inputs, values, evaluate, seed, epsilon)

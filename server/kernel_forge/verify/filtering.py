"""What linear filtering of textures adds to a tolerance: a GPU blends texels with weights of few bits.

The weights have eight bits of fraction (CUDA C++ Programming Guide, texture fetching), so each is wrong by up to 2^-9
(2^-8 where the bits are cut off, which the guide leaves open), and a fetch by that much of the spread of the texels
around it, once per dimension. Which texels a reference blends is not known here, so it is asked as for
:mod:`.tolerance`: every texel is moved by a small part of the spread of its neighbourhood, at random (fetches that err
independently) and all the same way (the weights of one fetch add up to one). The sum of both is at least that spread
times what a fetch contributes to an output.

Beyond the edge of a texture with a border there are no texels to move: outputs that hang on its outermost texels get
the largest of those, times the most that any output hangs on all texels together.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.domain.texture import Address, Filter
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.limits import OutOfTime, ReferenceFailed
from kernel_forge.verify.sensitivity import EPSILON, RANDOM_DRAWS, Evaluate, Values, changes

WEIGHT_ERROR = 2.0**-8
STEP_DRAWS = 6
_BEYOND = {Address.CLAMP: "edge", Address.BORDER: "constant", Address.WRAP: "wrap", Address.MIRROR: "edge"}


def filtered_textures(spec: KernelSpec) -> tuple[BufferArg, ...]:
    """The textures whose fetches blend texels."""
    return tuple(
        a for a in spec.args if isinstance(a, BufferArg) and a.texture is not None and a.texture.filter is Filter.LINEAR
    )


def filtering_error(
    spec: KernelSpec, inputs: Values, reference: Values, evaluate: Evaluate, seed: int, epsilon: float = EPSILON
) -> dict[str, Array]:
    """Output -> how far the low precision of linear filtering may move each element; zeros without such textures.

    ``epsilon`` is the part of the spread by which texels are moved.

    Raises:
        ReferenceFailed: the reference does not take texels that are no integers.
    """
    total = {n: np.zeros(r.shape) for n, r in reference.items()}
    rng = np.random.default_rng([seed, 0x7E])
    for arg in filtered_textures(spec):
        texels = inputs[arg.name].astype(np.float64)
        spread = neighbour_spread(arg, texels)
        per_fetch = WEIGHT_ERROR * _dimensions(arg)
        squares = {n: np.zeros(r.shape) for n, r in reference.items()}
        for _ in range(RANDOM_DRAWS):
            signs = rng.choice(np.array([-1.0, 1.0]), texels.shape)
            for name, change in _moved(arg, inputs, texels + epsilon * signs * spread, reference, evaluate).items():
                squares[name] += (change / epsilon) ** 2
        same = _moved(arg, inputs, texels + epsilon * spread, reference, evaluate)
        for name, error in total.items():
            error += per_fetch * (np.sqrt(squares[name] / RANDOM_DRAWS) + same[name] / epsilon)
            if not np.issubdtype(reference[name].dtype, np.floating):
                np.maximum(
                    error, _steps(arg, inputs, (texels, per_fetch * spread), reference, evaluate, rng)[name], error
                )
        if arg.texture is not None and arg.texture.address is Address.BORDER:
            for name, error in _at_the_border(arg, inputs, texels, reference, evaluate, epsilon).items():
                total[name] += per_fetch * error
    return total


def neighbour_spread(arg: BufferArg, texels: Array) -> Array:
    """Per texel the largest less the smallest of it and its neighbours, those beyond the edge included."""
    assert arg.texture is not None
    low, high = texels, texels
    for axis in range(_dimensions(arg)):
        low, high = (
            _over_neighbours(a, axis, arg.texture.address, f) for a, f in ((low, np.minimum), (high, np.maximum))
        )
    difference: Array = high - low
    return difference


def _over_neighbours(values: Array, axis: int, address: Address, choose: "np.ufunc") -> Array:
    widths = [(1, 1) if i == axis else (0, 0) for i in range(values.ndim)]
    padded = np.pad(values, widths, mode=_BEYOND[address])  # type: ignore[call-overload]
    count = values.shape[axis]
    parts = [np.take(padded, range(start, start + count), axis=axis) for start in range(3)]
    chosen: Array = choose(choose(parts[0], parts[1]), parts[2])
    return chosen


def _dimensions(arg: BufferArg) -> int:
    return len(arg.shape) - (arg.lanes > 1)


def _moved(arg: BufferArg, inputs: Values, texels: Array, reference: Values, evaluate: Evaluate) -> Mapping[str, Array]:
    try:
        return changes(evaluate({**inputs, arg.name: texels}, np.float64), reference)
    except OutOfTime:
        raise
    except ReferenceFailed as error:
        message = (
            f"how far linear filtering of {arg.name} may move the outputs cannot be derived ({error}); "
            "say it in the spec: tolerance = { absolute = 1e-2 }"
        )
        raise ReferenceFailed(message, error.location) from None


def _steps(
    arg: BufferArg,
    inputs: Values,
    moves: tuple[Array, Array],
    reference: Values,
    evaluate: Evaluate,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """The steps that integers may make: what ``moves`` (texels, and by how much) do to them."""
    texels, size = moves
    worst = {n: np.zeros(r.shape) for n, r in reference.items()}
    for signs in _signs(texels.shape, rng):
        for name, change in _moved(arg, inputs, texels + signs * size, reference, evaluate).items():
            worst[name] = np.maximum(worst[name], change)
    return worst


def _signs(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[Array]:
    yield np.ones(shape)
    yield -np.ones(shape)
    for _ in range(STEP_DRAWS):
        yield rng.choice(np.array([-1.0, 1.0]), shape)


def _at_the_border(
    arg: BufferArg, inputs: Values, texels: Array, reference: Values, evaluate: Evaluate, epsilon: float
) -> dict[str, Array]:
    inner = tuple(slice(1, -1) for _ in range(_dimensions(arg)))
    is_edge = np.ones(texels.shape, bool)
    is_edge[inner] = False
    largest = float(np.abs(texels[is_edge]).max(initial=0.0))
    unit = epsilon * max(largest, np.finfo(np.float64).tiny)
    all_texels = _moved(arg, inputs, texels + unit, reference, evaluate)
    at_edge = _moved(arg, inputs, texels + unit * is_edge, reference, evaluate)
    found = {}
    for name, change in at_edge.items():
        gain = float(all_texels[name].max(initial=0.0)) / unit
        found[name] = np.where(change > 0, gain * largest, 0.0)
    return found

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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.domain.texture import Address, Filter, Read
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.limits import OutOfTime, ReferenceFailed
from kernel_forge.verify.sensitivity import EPSILON, RANDOM_DRAWS, Evaluate, Values, changes

WEIGHT_ERROR = 2.0**-8
SIGNED_BYTE_ERROR = 2.0**-15
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
    for arg in filtered_textures(spec):
        asking = _Asking(arg, inputs, reference, evaluate, np.random.default_rng([seed, 0x7E]), epsilon)
        for name, error in asking.errors().items():
            total[name] += error
    return total


@dataclass(frozen=True)
class _Asking:
    """The reference, asked what one texture's texels do to it."""

    arg: BufferArg
    inputs: Values
    reference: Values
    evaluate: Evaluate
    rng: np.random.Generator
    epsilon: float

    def errors(self) -> dict[str, Array]:
        texels = self.inputs[self.arg.name].astype(np.float64)
        per_fetch = WEIGHT_ERROR * _dimensions(self.arg)
        spread = neighbour_spread(self.arg, texels) + _format_error(self.arg) / per_fetch
        made = {n: per_fetch * slope for n, slope in self._slopes(texels, spread).items()}
        # A step of an integer is no slope: what the errors do to them is asked at full size.
        steps = self._steps(texels, per_fetch * spread)
        made |= {n: steps[n] for n in made if not _rounds(self.reference[n])}
        if self.arg.texture is not None and self.arg.texture.address is Address.BORDER:
            for name, error in self._at_the_border(texels, per_fetch).items():
                made[name] += error
        return made

    def _changes(self, texels: Array) -> dict[str, Array]:
        try:
            return changes(self.evaluate({**self.inputs, self.arg.name: texels}, np.float64), self.reference)
        except OutOfTime:
            raise
        except ReferenceFailed as error:
            message = (
                f"how far linear filtering of {self.arg.name} may move the outputs cannot be derived ({error}); "
                "say it in the spec: tolerance = { absolute = 1e-2 }"
            )
            raise ReferenceFailed(message, error.location) from None

    def _slopes(self, texels: Array, spread: Array) -> dict[str, Array]:
        """Root mean square of random moves and sum of moves all the same way, in units of the spread."""
        squares = {n: np.zeros(r.shape) for n, r in self.reference.items()}
        for _ in range(RANDOM_DRAWS):
            signs = self.rng.choice(np.array([-1.0, 1.0]), texels.shape)
            for name, change in self._changes(texels + self.epsilon * signs * spread).items():
                squares[name] += (change / self.epsilon) ** 2
        same = self._changes(texels + self.epsilon * spread)
        return {n: np.sqrt(s / RANDOM_DRAWS) + same[n] / self.epsilon for n, s in squares.items()}

    def _steps(self, texels: Array, size: Array) -> dict[str, Array]:
        """The most that moves of ``size`` change."""
        worst = {n: np.zeros(r.shape) for n, r in self.reference.items()}
        for signs in _signs(texels.shape, self.rng) if not all(_rounds(r) for r in self.reference.values()) else ():
            for name, change in self._changes(texels + signs * size).items():
                worst[name] = np.maximum(worst[name], change)
        return worst

    def _at_the_border(self, texels: Array, per_fetch: float) -> dict[str, Array]:
        is_edge = np.ones(texels.shape, bool)
        is_edge[tuple(slice(1, -1) for _ in range(_dimensions(self.arg)))] = False
        largest = float(np.abs(texels[is_edge]).max(initial=0.0))
        hangs_on_edge = self._changes(texels + largest * is_edge)
        everything = self._changes(texels + per_fetch * largest)
        return {n: np.where(c > 0, everything[n].max(initial=0.0), 0.0) for n, c in hangs_on_edge.items()}


def _rounds(reference: Array) -> bool:
    return bool(np.issubdtype(reference.dtype, np.floating))


def _signs(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[Array]:
    yield np.ones(shape)
    yield -np.ones(shape)
    for _ in range(STEP_DRAWS):
        yield rng.choice(np.array([-1.0, 1.0]), shape)


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


def _format_error(arg: BufferArg) -> float:
    """By how much a texel itself may be off, in units of the stored texels.

    Signed bytes that are read as floats and blended have 16 bits on their way: 63 / 127 came back as 16254.5 / 32767
    rounded, on an H200. Wider and unsigned ones came back exactly.
    """
    signed_bytes = arg.dtype is DType.INT8 and arg.texture is not None and arg.texture.read is Read.NORMALIZED
    return SIGNED_BYTE_ERROR * 127 if signed_bytes else 0.0


def _dimensions(arg: BufferArg) -> int:
    return len(arg.shape) - (arg.lanes > 1)

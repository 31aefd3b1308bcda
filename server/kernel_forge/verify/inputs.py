"""Inputs that find mistakes: several kinds, fresh from a seed, rounded to the argument's type.

The kinds (policy step 3): ``centred`` around 0; ``shifted`` around 3, where cancellation hides or shows;
``one-signed``, where a missing term cannot be cancelled; ``low``, all far below zero, where a maximum that begins at
zero shows; ``large`` and ``tiny`` magnitudes; ``tied``, a few values many times over, for comparisons and degenerate
rows; ``spikes``, small values with large ones at the first, the last and the block-edge elements, so that leaving one
of those out changes the result beyond every tolerance; ``thresholds``, the numbers that the kernel compares with,
met exactly and missed by one rounding.
An explicit ``init`` is honoured in every kind.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.spec import (
    BufferArg,
    ConstantInit,
    FunctionInit,
    Init,
    IntegersInit,
    KernelSpec,
    NamedInit,
    Role,
)
from kernel_forge.spec import BoundCase
from kernel_forge.verify.limits import ReferenceFailed
from kernel_forge.verify.user_code import blame

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
KINDS = ("centred", "spikes", "one-signed", "shifted", "tied", "low", "thresholds", "large", "tiny")
LoadFunction = Callable[[str, str], Callable[..., Any]]
"""(Python file, function name) -> the function; raises ReferenceFailed."""


def master_seed(seed: int | None) -> int:
    """The seed that all inputs of a verification come from: ``seed`` within 32 bits, or a fresh one for None."""
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed % 2**32


# Scales at which products of two values stay inside the type's normal range.
_LARGE = {DType.FLOAT16: 30.0, DType.BFLOAT16: 1e4, DType.FLOAT32: 1e4, DType.FLOAT64: 1e6}
_TINY = {DType.FLOAT16: 2e-2, DType.BFLOAT16: 1e-9, DType.FLOAT32: 1e-9, DType.FLOAT64: 1e-60}
LARGE_INTEGER = 30000
MAX_THRESHOLDS = 12
_EDGE_STEPS = (32, 64, 128, 256, 512, 1024)


class InputsFailed(UsageError):
    """The ``init`` of an argument cannot be carried out; the message says which and why."""


@dataclass(frozen=True)
class Hints:
    """What else is known: ``thresholds`` the kernel may compare with, and how ``large`` integers may be."""

    thresholds: tuple[float, ...] = ()
    large: int = LARGE_INTEGER


def make_inputs(
    spec: KernelSpec, bound: BoundCase, kind: str, seed: int, load: LoadFunction, hints: Hints | None = None
) -> dict[str, Array]:
    """Contents of every buffer with role in or inout, and of scratch with an ``init``, by name, each in its shape and
    dtype.

    Raises:
        InputsFailed: an ``init`` that does not fit (integers out of range).
        ReferenceFailed: a function that fails.
    """
    inputs: dict[str, Array] = {}
    for index, arg in enumerate(spec.args):
        if isinstance(arg, BufferArg) and (arg.role in (Role.IN, Role.INOUT) or _is_made(arg)):
            rng = np.random.default_rng([seed, index])
            inputs[arg.name] = _array(arg, bound, kind, rng, load, hints or Hints())
    return inputs


def _is_made(arg: BufferArg) -> bool:
    """A workspace that the host prepares: a counter set to zero, say."""
    return arg.role is Role.SCRATCH and arg.init is not None


def _array(
    arg: BufferArg, bound: BoundCase, kind: str, rng: np.random.Generator, load: LoadFunction, hints: Hints
) -> Array:
    shape = bound.shapes[arg.name]
    if arg.init is not None:
        values = _from_init(arg, arg.init, shape, bound, rng, load)
    elif arg.dtype.is_float:
        values = _floats(arg.dtype, kind, shape, rng, hints.thresholds)
    else:
        values = _integers(arg.dtype, kind, shape, rng, hints)
    return np.ascontiguousarray(values).astype(arg.dtype.numpy)


def _floats(
    dtype: DType, kind: str, shape: tuple[int, ...], rng: np.random.Generator, thresholds: tuple[float, ...] = ()
) -> Array:
    normal = rng.standard_normal(shape)
    match kind:
        case "centred":
            return normal
        case "shifted":
            return normal + 3.0
        case "one-signed":
            return np.abs(normal) + 0.1
        case "low":
            # Terms of one sign add up: in half a sum of their products would soon overflow.
            return -(np.abs(normal) + 0.1) * (1.0 if dtype is DType.FLOAT16 else _LARGE[dtype])
        case "large":
            return normal * _LARGE[dtype]
        case "tiny":
            return normal * _TINY[dtype]
        case "tied":
            return rng.choice(np.array([-1.0, 0.0, 0.5, 2.0]), shape)
        case "thresholds":
            return rng.choice(_around(thresholds, dtype), shape)
        case "spikes":
            return _spikes(0.01 * normal, rng)
        case _:
            raise ValueError(f"unknown kind {kind}")


def _around(thresholds: tuple[float, ...], dtype: DType) -> Array:
    """Each threshold as the type holds it and its neighbours; halves, which rounding decides, also scaled by one."""
    small = [-2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5]
    with np.errstate(over="ignore"):
        met = np.array(thresholds[:MAX_THRESHOLDS], np.float64).astype(dtype.numpy)
    beside = [np.nextafter(met, np.array(side, dtype.numpy)) for side in (-np.inf, np.inf)]
    scales = [t for t in thresholds[:MAX_THRESHOLDS] if 1 < abs(t) < 2**16 and math.frexp(abs(t))[0] == 0.5]
    halves = [k / t for t in scales for k in (-1.5, -0.5, 0.5, 1.5, 2.5)]
    made: Array = np.concatenate([np.array([*small, *halves]), *(a.astype(np.float64) for a in (met, *beside))])
    finite: Array = made[np.isfinite(made)]
    return finite  # a threshold beyond the type is met by nothing


def _spikes(values: Array, rng: np.random.Generator) -> Array:
    flat = values.reshape(-1)
    edges = {0, flat.size - 1}
    for step in _EDGE_STEPS:
        for multiple in (1, 2, flat.size // step):
            edges.update((multiple * step - 1, multiple * step))
    if values.ndim > 1 and values.shape[-1] > 0:  # first and last of every row
        width = values.shape[-1]
        rows = np.arange(0, flat.size, width)
        flat[rows] = rng.uniform(1, 2, rows.size)
        flat[rows + width - 1] = rng.uniform(1, 2, rows.size)
    inside = np.array(sorted(e for e in edges if 0 <= e < flat.size), dtype=np.int64)
    flat[inside] = rng.uniform(2, 4, inside.size)
    return values


def _integers(
    dtype: DType, kind: str, shape: tuple[int, ...], rng: np.random.Generator, hints: Hints | None = None
) -> Array:
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(dtype.value)
    hints = hints or Hints()
    if kind == "thresholds":
        met = {int(t) + d for t in hints.thresholds[:MAX_THRESHOLDS] if abs(t) < 2**62 for d in (-1, 0, 1)}
        fitting = sorted(v for v in {-1, 0, 1, 2, *met} if limits.min <= v <= limits.max)
        return rng.choice(np.array(fitting), shape)
    reach = {"large": hints.large, "tiny": 2, "tied": 4}.get(kind, 100)
    low = 0 if kind in ("one-signed", "spikes") else -reach
    high = -1 if kind == "low" and limits.min < 0 else reach
    return rng.integers(max(low, int(limits.min)), min(high, int(limits.max)), shape, endpoint=True)


def _from_init(
    arg: BufferArg,
    init: Init,
    shape: tuple[int, ...],
    bound: BoundCase,
    rng: np.random.Generator,
    load: LoadFunction,
) -> Array:
    count = math.prod(shape)
    match init:
        case ConstantInit(value=value):
            return np.full(shape, value)
        case IntegersInit(low=low_expression, high=high_expression):
            scope = {**bound.configuration, **bound.scalars, **bound.sizes}
            try:
                low, high = low_expression.evaluate_int(scope), high_expression.evaluate_int(scope)
            except ExpressionError as error:
                raise InputsFailed(f"init of {arg.name}: {error}") from None
            if count and low >= high:
                raise InputsFailed(f"init of {arg.name}: no integer is >= {low} and < {high}")
            return rng.integers(low, max(high, low + 1), shape)
        case FunctionInit(path=path, function=function):
            return _from_function(arg, load(path, function), shape, bound, rng)
        case NamedInit(name="normal"):
            return rng.standard_normal(shape)
        case NamedInit(name="uniform"):
            if arg.dtype.is_float:
                return rng.random(shape)
            return _integers(arg.dtype, "centred", shape, rng)
        case NamedInit(name="permutation"):
            return rng.permutation(count).reshape(shape)
        case NamedInit(name="sorted"):
            values = _floats(arg.dtype, "centred", (count,), rng) if arg.dtype.is_float else rng.integers(0, 100, count)
            return np.sort(values).reshape(shape)
        case NamedInit(name="adversarial"):
            return _adversarial(arg.dtype, shape, rng)
        case NamedInit(name=name):
            raise InputsFailed(f"init of {arg.name}: unknown name {name}")


def _adversarial(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if not dtype.is_float:
        limits = np.iinfo(dtype.value) if dtype is not DType.BOOL else None
        special = [0, 1] if limits is None else [int(limits.min), -1 if limits.min < 0 else 1, 0, 1, int(limits.max)]
        return rng.choice(np.array(special, dtype=dtype.numpy), shape)
    tiny = float(np.ldexp(1.0, {DType.FLOAT16: -24, DType.FLOAT64: -1074}.get(dtype, -133)))
    special_floats = np.array(
        [0.0, -0.0, tiny, -tiny, 1.0, -1.0, _LARGE[dtype], -_LARGE[dtype], 1.0 + 2 * dtype.unit_roundoff]
    )
    return rng.choice(special_floats, shape)


def _from_function(
    arg: BufferArg,
    function: Callable[..., Any],
    shape: tuple[int, ...],
    bound: BoundCase,
    rng: np.random.Generator,
) -> Array:
    seed = int(rng.integers(2**32))
    np.random.seed(seed)  # for functions that do not draw from ``rng``
    random.seed(seed)
    try:
        with blame(function.__name__, None):
            made = np.asarray(function(rng, shape, **bound.sizes))
    except ReferenceFailed as error:
        raise ReferenceFailed(f"init of {arg.name}: {error}", error.location) from None
    if made.shape != shape:
        raise InputsFailed(f"init of {arg.name} returned the shape {made.shape}, not {shape}")
    if made.dtype.kind not in "fiub" and made.dtype.name != "bfloat16":
        raise InputsFailed(f"init of {arg.name} returned elements of the type {made.dtype}")
    return made

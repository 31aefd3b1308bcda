"""Sizes at which kernels break: nothing, one, beside every block multiple, primes, and a large one."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.spec import BufferArg, Configuration, KernelSpec, Sizes
from kernel_forge.spec.binding import bind, is_legal

MAX_CASES = 24
_SMALL_BASE = 19  # a prime, so that a size held fixed is no multiple of anything either
_PRIMES = (2, 3, 7, 31, 97, 257, 1021)
SEARCH = 512
DRAWN = 4
_Key = tuple[tuple[str, int], ...]


def edge_cases(
    spec: KernelSpec, configuration: Configuration, *, limit_bytes: int = 1 << 22, seed: int | None = None
) -> tuple[tuple[Sizes, str], ...]:
    """Legal sizes that differ from the spec's own cases, each with why it was chosen, cheap ones first.

    One size varies at a time over a small base, then all together; every candidate respects ``where`` (the
    nearest legal one above is taken) and needs at most ``limit_bytes`` of buffers. A few are drawn from ``seed``: no
    list of sizes has the one that a kernel was not written for.
    """
    sizes = _varying(spec)
    if not sizes:
        return ()
    base = _base(spec, configuration, sizes, limit_bytes)
    if base is None:
        return ()
    chosen: dict[_Key, tuple[Sizes, str]] = {}
    own = {tuple(sorted(c.items())) for c in spec.cases}

    def consider(candidate: Sizes, origin: str) -> None:
        key = tuple(sorted(candidate.items()))
        if key in own or key in chosen or not is_legal(spec, candidate, configuration):
            return
        if _bytes(spec, candidate, configuration) <= limit_bytes:
            chosen[key] = (candidate, origin)

    per_size = {name: list(_values(spec, configuration, name)) for name in sizes}
    for name in sizes:
        for value, origin in per_size[name]:
            consider({**base, name: value}, f"{name} {origin}")
    consider({**base, **dict.fromkeys(sizes, 1)}, "every size 1")
    for i in range(3):
        joint = {n: per_size[n][(5 + 3 * i + j) % len(per_size[n])][0] for j, n in enumerate(sizes)}
        consider({**base, **joint}, "several sizes odd at once")
    large = _largest(spec, configuration, base, sizes, limit_bytes)
    if large is not None:
        consider(large, f"the largest within {limit_bytes >> 20} MiB")
    drawn = [] if seed is None else _drawn(sizes, consider, chosen, random.Random(seed), base)
    ordered = sorted((c for k, c in chosen.items() if k not in drawn), key=lambda c: _bytes(spec, c[0], configuration))
    return (*_spread(ordered, MAX_CASES), *(chosen[k] for k in drawn))


def _drawn(
    sizes: tuple[str, ...],
    consider: Callable[[Sizes, str], None],
    chosen: Mapping[_Key, tuple[Sizes, str]],
    rng: random.Random,
    base: Sizes,
) -> list[_Key]:
    """Considers sizes drawn at random, between nothing special and a multiple of 16, and tells which were taken."""
    before = set(chosen)
    for attempt in range(8 * DRAWN):
        if len(chosen) - len(before) == DRAWN:
            break
        top = 2.0 ** rng.uniform(1, 11)
        draw = {s: rng.randint(1, 1 + int(top / len(sizes))) for s in sizes}
        if attempt % 2:
            draw = {s: 16 * max(1, v // 16) for s, v in draw.items()}
        consider({**base, **draw}, "drawn at random")
    return [key for key in chosen if key not in before]


def _spread(cases: list[tuple[Sizes, str]], most: int) -> Iterator[tuple[Sizes, str]]:
    """At most ``most`` of the cases, evenly, first and last included."""
    if len(cases) <= most:
        yield from cases
        return
    for i in range(most):
        yield cases[i * (len(cases) - 1) // (most - 1)]


def _varying(spec: KernelSpec) -> tuple[str, ...]:
    """The sizes that a shape, a scalar or a launch depends on."""
    used: set[str] = set()
    for arg in spec.args:
        if isinstance(arg, BufferArg):
            used.update(n for e in arg.shape for n in e.names)
        else:
            used.update(arg.value.names)
    for launch in spec.launches:
        used.update(n for e in (*launch.grid, *launch.block, launch.shared) for n in e.names)
    return tuple(s for s in spec.sizes if s in used)


def _base(spec: KernelSpec, configuration: Configuration, sizes: tuple[str, ...], limit: int) -> dict[str, int] | None:
    """Small legal sizes to vary from."""
    candidates: list[dict[str, int]] = [
        {**spec.cases[0], **dict.fromkeys(sizes, v)} for v in (_SMALL_BASE, 8, 16, 32, 64)
    ]
    candidates += [dict(c) for c in sorted(spec.cases, key=lambda c: math.prod(v + 1 for v in c.values()))]
    for candidate in candidates:
        if is_legal(spec, candidate, configuration) and _bytes(spec, candidate, configuration) <= limit:
            return candidate
    return None


def _values(spec: KernelSpec, configuration: Configuration, name: str) -> Iterable[tuple[int, str]]:
    yield 0, "= 0"
    yield 1, "= 1"
    for step, label in _steps(spec, configuration):
        for multiple in (1, 2):
            near = step * multiple
            yield near - 1, f"one below {multiple} × {label}"
            yield near, f"= {multiple} × {label}"
            yield near + 1, f"one above {multiple} × {label}"
    for prime in _PRIMES:
        yield prime, f"= {prime}, a prime"


def _steps(spec: KernelSpec, configuration: Configuration) -> list[tuple[int, str]]:
    """Strides in which a kernel may walk over a size: block extents, tunables, a warp."""
    steps: dict[int, str] = {}
    for launch in spec.launches:
        extents = []
        for expression in launch.block:
            try:
                extents.append(expression.evaluate_int({**spec.cases[0], **configuration}))
            except ExpressionError:
                continue
        for extent in (*extents, math.prod(extents)):
            if extent > 1:
                steps.setdefault(extent, f"the block's {extent}")
    for tunable in spec.tunables:
        value = configuration[tunable.name]
        if isinstance(value, int) and value > 1:
            steps.setdefault(value, tunable.name)
    products = [v for v in configuration.values() if isinstance(v, int) and v > 1]
    if len(products) > 1 and math.prod(products) <= 1 << 16:
        steps.setdefault(math.prod(products), "the tunables' product")
    steps.setdefault(32, "a warp")
    return sorted(steps.items())[:6]


def _bytes(spec: KernelSpec, sizes: Sizes, configuration: Configuration) -> float:
    """Bytes of all buffers; infinite where the sizes do not bind."""
    bound = bind(spec, sizes, configuration)
    if isinstance(bound, Finding):
        return math.inf
    return sum(bound.count(a.name) * a.dtype.itemsize for a in spec.args if isinstance(a, BufferArg))


def _largest(
    spec: KernelSpec, configuration: Configuration, base: Sizes, sizes: tuple[str, ...], limit: int
) -> Sizes | None:
    """The first size as large as the limit allows, odd where it may be."""
    best: Sizes | None = None
    low, high = base[sizes[0]], 1 << 24
    while low <= high:
        middle = (low + high) // 2
        candidate = _legal_at_or_below(spec, configuration, {**base, sizes[0]: middle | 1}, sizes[0])
        if candidate is not None and _bytes(spec, candidate, configuration) <= limit:
            best, low = candidate, middle + 1
        else:
            high = middle - 1
    return best


def _legal_at_or_below(
    spec: KernelSpec, configuration: Configuration, sizes: dict[str, int], name: str
) -> Sizes | None:
    for value in range(sizes[name], max(-1, sizes[name] - SEARCH), -1):
        candidate = {**sizes, name: value}
        if is_legal(spec, candidate, configuration):
            return candidate
    return None

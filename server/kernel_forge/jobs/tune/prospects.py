"""What is expected of configurations before any is tried: the shapes of their launches on a GPU, and the rules of kb.

A launch expression is evaluated once for each combination of the values that it names, whole columns at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.domain.spec import BufferArg, KernelSpec, LaunchSpec, Role, ScalarArg, Sizes
from kernel_forge.jobs.tune.static_shared import static_shared
from kernel_forge.knowledge import Rule, tunable_rules
from kernel_forge.perf import LaunchShapes, promise
from kernel_forge.perf.promise import LEAST, Floats, Ints
from kernel_forge.search import SearchSpace
from kernel_forge.search.array_expression import NotVectorizable, evaluate_columns
from kernel_forge.source import SourceFile

_POOL = 0.02
"""The share of the considered ones that the most promising are chosen from."""
_POOL_PER_CHOICE = 5
_MOST_RESULTS = 512.0
_REGISTER_BYTES = 4


@dataclass(frozen=True)
class Prospects:
    """What is expected of some configurations of one space.

    Attributes:
        indices: which; shape ``(n,)``.
        weights: in (0, 1], larger is more promising; shape ``(n,)``. All equal where nothing is known.
        shapes: of the launches.
        scores: what each rule that applies gives them: parameter's name, rule, column of shape ``(n,)``.
    """

    indices: Ints
    weights: Floats
    shapes: tuple[LaunchShapes, ...]
    scores: tuple[tuple[str, Rule, Floats], ...]
    knows_gpu: bool

    @staticmethod
    def of(
        space: SearchSpace,
        spec: KernelSpec,
        sizes: Sizes,
        gpu: GpuFacts | None,
        indices: Ints,
        intensity: float | None = None,
        source: SourceFile | None = None,
    ) -> "Prospects":
        """The prospects of the configurations ``indices`` at ``sizes``; ``source`` tells static shared memory."""
        columns = _columns(space, indices)
        scope = _Scope.of(spec, sizes, columns, len(indices))
        shapes = tuple(_shape(spec, launch, scope, source) for launch in spec.launches)
        scores = tuple(_scores(space, spec, columns, gpu))
        weights, fits = np.ones(len(indices)), np.ones(len(indices), bool)
        if gpu is not None and shapes:
            promises = np.array([promise(s, gpu, intensity) for s in shapes])
            fits = np.all(promises > LEAST, axis=0)
            weights = np.exp(np.mean(np.log(promises), axis=0))
        for _, _, column in scores:
            weights = weights * column
        weights = np.where(fits, np.maximum(weights, LEAST), LEAST)
        return Prospects(indices, weights, shapes, scores, gpu is not None)

    def choose(self, space: SearchSpace, count: int, exclude: set[int]) -> list[int]:
        """Rows of up to ``count`` promising configurations: the best, then those of the best that differ most."""
        free = np.array([i not in exclude for i in self.indices.tolist()], bool)
        if not free.any() or np.ptp(self.weights) == 0:
            return []
        order = np.argsort(np.where(free, -self.weights, np.inf), kind="stable")[: int(free.sum())]
        pool = order[: max(_POOL_PER_CHOICE * count, int(_POOL * len(order)))]
        pool = pool[self.weights[pool] > LEAST]
        lengths = np.array([max(1, len(p.values) - 1) for p in space.parameters])
        points = space.ranks(self.indices[pool]) / lengths
        chosen: list[int] = []
        distance = np.full(len(pool), np.inf)
        while len(chosen) < min(count, len(pool)):
            farthest = int(np.argmax(distance))
            chosen.append(farthest)
            distance = np.minimum(distance, np.abs(points - points[farthest]).sum(1))
            distance[farthest] = -1.0
        return [int(pool[k]) for k in chosen]

    def reason(self, row: int) -> str:
        """Why the configuration of that row is promising, in one line."""
        parts = []
        if self.knows_gpu and self.shapes:
            shape = self.shapes[0]
            results = shape.results[row]
            each = f", {results:.0f} results per thread" if results > 1 else ""
            parts.append(f"{shape.blocks[row]} blocks of {shape.threads[row]} threads{each}")
        parts += [
            f"{name}: {rule.reason}"
            for name, rule, column in self.scores
            if column[row] >= np.max(column) > np.min(column)
        ]
        return f"promising: {'; '.join(parts[:3])}" if parts else "promising"


@dataclass(frozen=True)
class _Scope:
    """Names with values: those that every configuration shares, and columns of those that differ."""

    shared: Mapping[str, Number]
    columns: Mapping[str, Sequence[Number]]
    rows: int

    @staticmethod
    def of(spec: KernelSpec, sizes: Sizes, columns: Mapping[str, Sequence[Number]], rows: int) -> "_Scope":
        """Sizes and tunables, and the scalar arguments that a launch names."""
        scope = _Scope(dict(sizes), dict(columns), rows)
        used = frozenset().union(*(e.names for each in spec.launches for e in _expressions(each)))
        scalars = {
            a.name: scope.column(a.value).tolist()
            for a in spec.args
            if isinstance(a, ScalarArg) and a.name in used and a.name not in {*sizes, *columns}
        }
        return _Scope(scope.shared, {**scope.columns, **scalars}, rows)

    def column(self, expression: Expression) -> Ints:
        """The expression in every configuration; 0 where it has no value, or one that is no extent."""
        if not expression.names & self.columns.keys():
            return np.full(self.rows, self._scalar(expression, {}))
        names = sorted(expression.names & self.columns.keys())
        values = list(zip(*(self.columns[n] for n in names), strict=True))
        different = list(dict.fromkeys(values))
        place = {row: k for k, row in enumerate(different)}
        found = self._vector(expression, names, different)
        if found is None:
            found = np.array([self._scalar(expression, dict(zip(names, row, strict=True))) for row in different])
        return np.asarray(found, np.int64)[[place[row] for row in values]]

    def _vector(self, expression: Expression, names: list[str], rows: list[tuple[Number, ...]]) -> Ints | None:
        numbers = [*(v for row in rows for v in row), *(v for n, v in self.shared.items() if n in expression.names)]
        if not all(isinstance(v, int) and abs(v) < 2**53 for v in numbers):
            return None
        table = np.array(rows, np.int64)
        columns = {name: table[:, k] for k, name in enumerate(names)}
        columns |= {n: np.full(len(rows), int(v)) for n, v in self.shared.items() if n in expression.names}
        try:
            made = evaluate_columns(expression, columns)
        except NotVectorizable:
            return None
        return None if made.doubtful.any() else np.clip(made.values, 0, 2**31)

    def _scalar(self, expression: Expression, values: Mapping[str, Number]) -> int:
        try:
            return min(max(0, expression.evaluate_int({**self.shared, **values})), 2**31)
        except ExpressionError:
            return 0


def _expressions(launch: LaunchSpec) -> tuple[Expression, ...]:
    return (*launch.grid, *launch.block, launch.shared)


def _shape(spec: KernelSpec, launch: LaunchSpec, scope: _Scope, source: SourceFile | None) -> LaunchShapes:
    grid = np.prod([scope.column(e).astype(float) for e in launch.grid], axis=0)
    block = [scope.column(e) for e in launch.block]
    threads = np.prod(block, axis=0)
    blocks = np.minimum(grid, 2.0**53).astype(np.int64)
    static = () if source is None else static_shared(source, spec, launch)
    shared = np.sum([scope.column(e) for e in (launch.shared, *static)], axis=0)
    return LaunchShapes(block[0], threads, blocks, shared, _results(spec, launch, scope, threads, grid))


def _results(spec: KernelSpec, launch: LaunchSpec, scope: _Scope, threads: Floats, grid: Floats) -> Floats:
    """Results of 32 bits that a thread holds at once.

    Where the grid shrinks as a tunable grows that is no extent of the block, a thread does more by it, and a kernel
    that is written so unrolls that. Where no tunable does so a loop covers the data, and holds one at a time.
    """
    in_block = frozenset().union(*(e.names for e in launch.block))
    in_grid = frozenset().union(*(e.names for e in launch.grid))
    work = (in_grid - in_block) & frozenset(t.name for t in spec.tunables)
    if not any(_falls(grid, np.array(scope.columns[name], float)) for name in work):
        return np.ones(scope.rows)
    buffers = [a for a in spec.args if isinstance(a, BufferArg) and a.name in launch.args and not a.is_symbol]
    counts = [(a, np.prod([scope.column(e).astype(float) for e in a.shape], axis=0)) for a in buffers]
    total = np.maximum(threads * grid, 1.0)
    outputs = [(a, n) for a, n in counts if a.role in (Role.OUT, Role.INOUT) and np.max(n / total) >= 1]
    each = [n / total * max(1.0, a.dtype.itemsize / _REGISTER_BYTES) for a, n in outputs or counts]  # or a reduction
    return np.clip(np.max(each, axis=0), 1.0, _MOST_RESULTS) if each else np.ones(scope.rows)


def _falls(grid: Floats, values: Floats) -> bool:
    """Whether the grid is smaller where the values are larger."""
    if np.ptp(values) == 0 or np.ptp(grid) == 0:
        return False
    return float(np.corrcoef(values, np.log(np.maximum(grid, 1.0)))[0, 1]) < 0


def _scores(
    space: SearchSpace, spec: KernelSpec, columns: Mapping[str, Sequence[Number]], gpu: GpuFacts | None
) -> Iterator[tuple[str, Rule, Floats]]:
    in_block = frozenset().union(*(e.names for each in spec.launches for e in each.block))
    in_grid = frozenset().union(*(e.names for each in spec.launches for e in each.grid))
    for parameter in space.parameters:
        name = parameter.name
        role = "threads" if name in in_block else "work" if name in in_grid else "code"
        for rule in tunable_rules():
            if len(parameter.values) > 1 and rule.applies(name, role, parameter.values, gpu):
                yield name, rule, np.array([rule.score(float(v)) for v in columns[name]])


def _columns(space: SearchSpace, indices: Ints) -> dict[str, Sequence[Number]]:
    """The values of every parameter that has numbers only, one per configuration."""
    ranks = space.ranks(indices)
    return {
        p.name: [v for r in ranks[:, k].tolist() for v in [p.values[r]] if not isinstance(v, str)]
        for k, p in enumerate(space.parameters)
        if p.is_numeric
    }

"""The valid configurations of one kernel, numbered from 0."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.search.constraints import Ranks
from kernel_forge.search.enumeration import Component, WithoutValue, enumerate_components, refuse_too_many
from kernel_forge.search.parameters import Ints, Parameter, Value


class SearchSpace:
    """Parameters and which of their combinations are valid. Immutable.

    Configurations are known by their *index*, ``0 <= index < size``, or by their *ranks*: for each parameter the place
    of its value. Independent groups of parameters are held apart, so that a space may have far more
    configurations than fit into memory.

    Attributes:
        parameters: the dimensions.
        size: how many configurations are valid; known before anything runs.
        combinations: how many there are without constraints.
        without_value: constraints that divide by zero (or the like) somewhere; there they rule out.
    """

    def __init__(
        self, parameters: Sequence[Parameter], components: Sequence[Component], notes: Sequence[WithoutValue] = ()
    ) -> None:
        self.parameters = tuple(parameters)
        self.without_value = tuple(notes)
        self._components = tuple(components)
        self._lengths = [len(p.values) for p in self.parameters]
        self.combinations = math.prod(self._lengths)
        self.size = math.prod(len(c.table) for c in components)
        if self.size >= 2**62:
            raise UsageError(f"{self.size:,} configurations are too many to number; constrain them")
        for component in components:
            refuse_too_many(self.parameters, component.columns)
        self._codes = [self._code(c, c.table) for c in components]

    @staticmethod
    def of(
        parameters: Sequence[Parameter], constraints: Sequence[Expression] = (), sizes: Mapping[str, Number] = {}
    ) -> "SearchSpace":
        """The combinations that satisfy every constraint; ``sizes`` are values of further names in them.

        Raises:
            EmptySpace: there are none; the message names the constraint at fault.
            UsageError: an unknown name in a constraint, or too many combinations that depend on each other.
        """
        components, notes = enumerate_components(parameters, constraints, sizes)
        return SearchSpace(parameters, components, notes)

    @staticmethod
    def listed(parameters: Sequence[Parameter], configurations: Sequence[Sequence[Value]]) -> "SearchSpace":
        """The configurations of a list (a recorded space), in the order of the parameters; indices follow ranks.

        Raises:
            UsageError: the list is empty, has one twice, or a value that its parameter does not have; or there are more
                combinations of the values than can be numbered.
        """
        if not configurations:
            raise UsageError("the list of configurations is empty")
        rank_of = [{value: k for k, value in enumerate(p.values)} for p in parameters]
        try:
            rows = [[ranks[v] for ranks, v in zip(rank_of, row, strict=True)] for row in configurations]
        except (KeyError, ValueError):
            raise UsageError("a listed configuration has a value that is none of its parameter's") from None
        table = np.unique(np.array(rows, np.int16), axis=0)
        if len(table) != len(rows):
            raise UsageError("a configuration is listed twice")
        return SearchSpace(parameters, [Component(tuple(range(len(parameters))), table)])

    def ranks(self, indices: Ints) -> Ranks:
        """Ranks of configurations, shape ``(len(indices), len(parameters))``."""
        found = np.empty((len(indices), len(self.parameters)), np.int16)
        rest = np.asarray(indices, np.int64)
        for component in reversed(self._components):
            rest, row = np.divmod(rest, len(component.table))
            found[:, component.columns] = component.table[row]
        return found

    def indices(self, ranks: Ranks) -> Ints:
        """Index of each row of ranks, -1 where it is not valid; shape ``(len(ranks),)``."""
        found = np.zeros(len(ranks), np.int64)
        valid = np.all((ranks >= 0) & (ranks < self._lengths), axis=1)
        inside = np.where(valid[:, None], ranks, 0)
        for component, codes in zip(self._components, self._codes, strict=True):
            code = self._code(component, inside[:, component.columns])
            row = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
            valid &= codes[row] == code
            found = found * len(codes) + row
        return np.where(valid, found, -1)

    def configuration(self, index: int) -> dict[str, Value]:
        """The value of every parameter."""
        return {p.name: p.values[r] for p, r in zip(self.parameters, self.ranks(np.array([index]))[0], strict=True)}

    def ranks_of(self, index: int) -> dict[str, int]:
        """The place of every parameter's value."""
        return dict(zip((p.name for p in self.parameters), self.ranks(np.array([index]))[0].tolist(), strict=True))

    def index_of(self, configuration: Mapping[str, object]) -> int | None:
        """The index of a configuration, None where it is not valid (or a parameter or value is unknown)."""
        if configuration.keys() != {p.name for p in self.parameters}:
            return None
        try:
            ranks = [self._rank_of[p.name][configuration[p.name]] for p in self.parameters]
        except (KeyError, TypeError):
            return None
        index = int(self.indices(np.array([ranks], np.int16))[0])
        return None if index < 0 else index

    def neighbours(self, index: int, changed: int = 1) -> Ints:
        """Valid configurations near one, ascending, without itself.

        One parameter takes any other value; with ``changed=2`` also two parameters each move one place.
        """
        own = self.ranks(np.array([index]))[0]
        single, double = self._moves
        rows = np.repeat(own[None], len(single), axis=0)
        rows[np.arange(len(single)), single[:, 0]] = single[:, 1]
        if changed > 1:
            pairs = np.repeat(own[None], len(double), axis=0)
            at = np.arange(len(double))
            pairs[at, double[:, 0]] += double[:, 2]
            pairs[at, double[:, 1]] += double[:, 3]
            rows = np.concatenate([rows, pairs])
        found = self.indices(rows)
        return np.unique(found[(found >= 0) & (found != index)])

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """``count`` different indices (all where there are fewer), uniformly, ascending."""
        if self.size <= count:
            return np.arange(self.size)
        if self.size <= 1 << 22:
            return np.sort(rng.choice(self.size, count, replace=False))
        found = np.unique(rng.integers(self.size, size=count + count // 8 + 8))
        while len(found) < count:
            found = np.unique(np.concatenate([found, rng.integers(self.size, size=count)]))
        return np.sort(rng.choice(found, count, replace=False))

    @cached_property
    def _moves(self) -> tuple[Ranks, Ranks]:
        """Rows ``(column, new rank)``, and rows ``(column, column, step, step)``."""
        single = [(k, r) for k, n in enumerate(self._lengths) for r in range(n)]
        free = [k for k, n in enumerate(self._lengths) if n > 1]
        double = [(a, b, x, y) for a, b in combinations(free, 2) for x in (-1, 1) for y in (-1, 1)]
        return np.array(single, np.int16).reshape(-1, 2), np.array(double, np.int16).reshape(-1, 4)

    @cached_property
    def _rank_of(self) -> dict[str, dict[object, int]]:
        return {p.name: {value: k for k, value in enumerate(p.values)} for p in self.parameters}

    def _code(self, component: Component, ranks: Ranks) -> Ints:
        code = np.zeros(len(ranks), np.int64)
        for position, column in enumerate(component.columns):
            code = code * self._lengths[column] + ranks[:, position]
        return code

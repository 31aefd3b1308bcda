"""Configurations as numbers for models, and the pool of those that a model ranks at once."""

import numpy as np

from kernel_forge.search.forest import Features
from kernel_forge.search.history import History
from kernel_forge.search.parameters import Floats, Ints, Mask
from kernel_forge.search.space import SearchSpace

MOST_CANDIDATES = 20_000
_FOLLOWED = 10


class Encoder:
    """Coordinates and features of the configurations of one space."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        parameters = space.parameters
        self._varied = [k for k, p in enumerate(parameters) if len(p.values) > 1]
        self._coordinates = [parameters[k].coordinates() for k in self._varied]
        logarithms = [(k, parameters[k].logarithms()) for k in self._varied]
        self._logarithms = [(k, table) for k, table in logarithms if table is not None]

    def coordinates(self, indices: Ints) -> Floats:
        """Points of the unit cube, shape ``(len(indices), varied parameters)``."""
        ranks = self._space.ranks(indices)
        columns = [table[ranks[:, k]] for k, table in zip(self._varied, self._coordinates, strict=True)]
        return np.column_stack(columns) if columns else np.zeros((len(indices), 1))

    def features(self, indices: Ints) -> Features:
        """Coordinates, and the logarithm of the product and the ratio of every two parameters; float32."""
        ranks = self._space.ranks(indices)
        columns = list(self.coordinates(indices).T)
        logs = [table[ranks[:, k]] for k, table in self._logarithms]
        for a in range(len(logs)):
            for b in range(a):
                columns += [logs[a] + logs[b], logs[a] - logs[b]]
        return np.column_stack(columns).astype(np.float32)


class Candidates:
    """The configurations that a model looks at: all, or where there are too many a sample and what is near the best.

    Attributes:
        indices: the pool, ascending; shape ``(n,)``.
        free: which of them were not yet asked for; shape ``(n,)``.
    """

    def __init__(self, space: SearchSpace, history: History, rng: np.random.Generator) -> None:
        self.is_all = space.size <= MOST_CANDIDATES
        self.indices = space.sample(MOST_CANDIDATES, rng)
        if not self.is_all:
            near = [space.neighbours(int(best), changed=2) for best in history.best(_FOLLOWED)]
            self.indices = np.unique(np.concatenate([self.indices, *near]))
        self.free: Mask = np.ones(len(self.indices), bool)

    def strike_out(self, history: History) -> None:
        """Note what was asked for."""
        seen = np.fromiter(history.seen, np.int64, len(history.seen))
        at = np.minimum(np.searchsorted(self.indices, seen), len(self.indices) - 1)
        self.free[at[self.indices[at] == seen]] = False

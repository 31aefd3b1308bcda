"""Evolutionary search."""

import numpy as np
import numpy.typing as npt

from kernel_forge.search.design import spread
from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.samplers.local import untried_neighbour
from kernel_forge.search.space import SearchSpace

_POPULATION = 12
_TRIES = 40
_FAR = 0.3


class EvolutionarySampler(Sampler):
    """A steady state of the best configurations: two parents, uniform crossover, mutation; one child at a time.

    Parents win a tournament of two. A mutated parameter moves one place, or now and then anywhere. A child that is not
    valid or was tried is made again; after many of these a neighbour of the best serves.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        self._lengths = np.array([len(p.values) for p in space.parameters])
        self._varied = max(1, int((self._lengths > 1).sum()))
        self._first = spread(space, _POPULATION, self.rng)

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        if history.asked >= self.space.size:
            return None
        first = history.unseen(self._first)
        if len(first) and history.asked < _POPULATION:
            return int(first[0])
        population = history.best(_POPULATION)
        if len(population) >= 2:
            ranks = self.space.ranks(population)
            children = np.array([self._child(ranks) for _ in range(_TRIES)], np.int16)
            found = self.space.indices(children)
            fresh = history.unseen(found[found >= 0])
            if len(fresh):
                return int(fresh[0])
        near = untried_neighbour(self.space, history, self.rng, _POPULATION)
        return self.untried(history) if near is None else near

    def _child(self, population: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
        # Rows are in order, so the smaller of two drawn places is the fitter one.
        mother, father = self.rng.integers(len(population), size=(2, 2)).min(1)
        child = np.where(self.rng.random(len(self._lengths)) < 0.5, population[mother], population[father])
        mutated = self.rng.random(len(child)) < 1 / self._varied
        steps = self.rng.choice([-1, 1], len(child))
        anywhere = self.rng.integers(self._lengths)
        moved = np.clip(child + steps, 0, self._lengths - 1)
        moved = np.where(self.rng.random(len(child)) < _FAR, anywhere, moved)
        return np.where(mutated, moved, child).astype(np.int16)

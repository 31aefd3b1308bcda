"""Local search over neighbours."""

import numpy as np

from kernel_forge.search.design import spread
from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.space import SearchSpace

_FIRST = 10


class LocalSampler(Sampler):
    """Best-first route search: a random neighbour of the best configuration that still has an untried one.

    One parameter changed comes before two parameters moved one place each. A better configuration is followed at once;
    where all around the best is tried, the route goes on from the next best, so it leaves local optima. It starts from
    a few configurations that are spread over the space.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        self._first = spread(space, _FIRST, self.rng)

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        first = history.unseen(self._first)
        if len(first) and history.asked < _FIRST:
            return int(first[0])
        for changed in (1, 2):
            for best in history.best(history.told):
                near = history.unseen(self.space.neighbours(int(best), changed))
                if len(near):
                    return int(self.rng.choice(near))
                if changed == 2 and history.asked >= self.space.size:
                    return None
        return self.untried(history)


def untried_neighbour(space: SearchSpace, history: History, rng: np.random.Generator, count: int) -> int | None:
    """A random untried neighbour of one of the ``count`` best, None where they have none."""
    for best in history.best(count):
        near = history.unseen(space.neighbours(int(best), changed=2))
        if len(near):
            return int(rng.choice(near))
    return None

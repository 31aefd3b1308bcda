"""Model-based search: a Gaussian process, a forest, and the portfolio of both with local search, the default."""

from typing import ClassVar

from kernel_forge.search.beliefs import Models
from kernel_forge.search.design import spread
from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.space import SearchSpace


class ModelSampler(Sampler):
    """First some configurations spread over the space, then what ``turns`` say, one after the other.

    A turn is ``process`` (expected improvement under a Gaussian process over all valid, untried configurations),
    ``trees`` (under a forest) or ``neighbour`` (the most promising untried neighbour of one of the three best).
    """

    turns: ClassVar[tuple[str, ...]]

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        varied = sum(len(p.values) > 1 for p in space.parameters)
        self._design = spread(space, max(8, min(20, 2 * varied)), self.rng)
        self._models = Models(space, self.rng)

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        if history.asked >= self.space.size:
            return None
        waiting = history.unseen(self._design)
        if len(waiting) and history.asked < len(self._design):
            return int(waiting[0])
        if not history.told:
            return self.untried(history)
        self._models.learn(history)
        found = self._turn(history, self.turns[history.asked % len(self.turns)])
        return self.untried(history) if found is None else found

    def _turn(self, history: History, turn: str) -> int | None:
        if turn == "trees":
            return self._models.most_promising_by_trees(history)
        if turn == "neighbour":
            for best in history.best(3):
                near = history.unseen(self.space.neighbours(int(best), changed=2))
                if len(near):
                    return self._models.best_of(near)
        return self._models.most_promising()


class GaussianProcessSampler(ModelSampler):
    """Bayesian optimisation with a Gaussian process alone."""

    turns = ("process",)


class TreesSampler(ModelSampler):
    """Bayesian optimisation with a forest, and the process only to tell what will fail."""

    turns = ("trees",)


class PortfolioSampler(ModelSampler):
    """The default: two models that err differently, and neighbours of the best, in turns."""

    turns = ("process", "process", "trees", "neighbour")

"""The tree-structured Parzen estimator of Optuna, kept to valid and untried configurations."""

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import Trial, TrialState, create_trial

from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.samplers.local import untried_neighbour
from kernel_forge.search.space import SearchSpace

_TRIES = 20


class TpeSampler(Sampler):
    """Optuna's TPE in a study of its own, over places of values.

    What is not valid is told to that study as pruned and costs nothing; when it proposes nothing new for a while, a
    neighbour of the best serves. Failed configurations are pruned as well.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        self._shadow = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self._distributions = {
            p.name: CategoricalDistribution(range(len(p.values))) for p in space.parameters if len(p.values) > 1
        }
        self._asked: dict[int, Trial] = {}
        self._taken = 0

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        if history.asked >= self.space.size:
            return None
        self._take(history)
        for _ in range(_TRIES):
            trial = self._shadow.ask(dict(self._distributions))
            index = self._index(trial.params)
            if index >= 0 and index not in history:
                self._asked[index] = trial
                return index
            self._shadow.tell(trial, state=TrialState.PRUNED)
        near = untried_neighbour(self.space, history, self.rng, 3)
        return self.untried(history) if near is None else near

    def _take(self, history: History) -> None:
        indices, values = history.indices[self._taken :], history.values[self._taken :]
        self._taken = history.told
        for index, value in zip(indices.tolist(), values.tolist(), strict=True):
            failed = value != value
            state = TrialState.PRUNED if failed else TrialState.COMPLETE
            trial = self._asked.pop(index, None)
            if trial is not None:
                self._shadow.tell(trial, None if failed else value, state)
                continue
            ranks = self.space.ranks_of(index)
            self._shadow.add_trial(
                create_trial(
                    params={name: ranks[name] for name in self._distributions},
                    distributions=dict(self._distributions),
                    value=None if failed else value,
                    state=state,
                )
            )

    def _index(self, ranks: dict[str, int]) -> int:
        row = [ranks.get(p.name, 0) for p in self.space.parameters]
        return int(self.space.indices(np.array([row], np.int16))[0])

"""What two models believe: a Gaussian process over coordinates, and a forest over products and ratios."""

from dataclasses import dataclass

import numpy as np

from kernel_forge.search.acquisition import log_expected_improvement
from kernel_forge.search.candidates import Candidates, Encoder
from kernel_forge.search.forest import Forest
from kernel_forge.search.gaussian_process import Belief, GaussianProcess
from kernel_forge.search.history import History
from kernel_forge.search.parameters import Floats, Ints, Mask
from kernel_forge.search.space import SearchSpace
from kernel_forge.search.targets import Targets, targets_of

_CONSIDERED_BY_TREES = 2500
_LEAST_DEVIATION = 0.05
_FOLLOWED = 5


@dataclass(frozen=True, slots=True)
class _State:
    """What the models were told; both arrays are in the order of the history."""

    observed: Floats
    indices: Ints
    targets: Targets
    pending: Floats


class Models:
    """Beliefs of one sampler; ``learn`` first, then ask. Needs at least one result."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._encoder = Encoder(space)
        self._candidates: Candidates | None = None
        self._process: GaussianProcess | None = None
        self._state = _State(np.zeros((0, 1)), np.zeros(0, np.int64), targets_of(np.zeros(0)), np.zeros((0, 1)))

    def learn(self, history: History) -> None:
        """Take in what ``history`` says."""
        coordinates = self._encoder.coordinates
        indices = history.indices
        targets = targets_of(history.values)
        self._state = _State(coordinates(indices), indices, targets, coordinates(history.pending))
        if self._candidates is None or self._process is None:
            self._candidates = Candidates(self._space, history, self._rng)
            self._process = GaussianProcess(coordinates(self._candidates.indices))
        elif not self._candidates.is_all and self._process.wants_fit(len(indices)):
            self._candidates = Candidates(self._space, history, self._rng)
            self._process.look_at(coordinates(self._candidates.indices))
        self._candidates.strike_out(history)
        self._process.observe(self._state.observed, targets)

    def most_promising(self) -> int | None:
        """The free candidate of the largest expected improvement under the process; None where none is free."""
        candidates, process = self._ready()
        if not candidates.free.any():
            return None
        value = self._improvement(process.beliefs(self._state.pending))
        return int(candidates.indices[np.argmax(np.where(candidates.free, value, -np.inf))])

    def most_promising_by_trees(self, history: History) -> int | None:
        """The same under a forest, among a sample of the free candidates and the neighbours of the best."""
        candidates, process = self._ready()
        free = candidates.indices[candidates.free]
        if not len(free):
            return None
        if len(free) > _CONSIDERED_BY_TREES:
            free = self._rng.choice(free, _CONSIDERED_BY_TREES, replace=False)
        near = [history.unseen(self._space.neighbours(int(b), changed=2)) for b in history.best(_FOLLOWED)]
        some = np.unique(np.concatenate([free, *near]))
        features = self._encoder.features
        forest = Forest(features(self._state.indices), self._state.targets.values, self._rng)
        said = forest.predict(features(some))
        works = process.beliefs_at(self._encoder.coordinates(some), self._state.pending).works
        belief = Belief(said.mean(0), said.std(0) + _LEAST_DEVIATION, works)
        return int(some[np.argmax(self._improvement(belief))])

    def best_of(self, indices: Ints) -> int:
        """The one of ``indices`` with the lowest time under the process, its deviation counted half in its favour."""
        _, process = self._ready()
        belief = process.beliefs_at(self._encoder.coordinates(indices), self._state.pending)
        doubtful: Mask = belief.works < 0.5
        return int(indices[np.argmin(belief.mean - 0.5 * belief.deviation + 2.0 * doubtful)])

    def _improvement(self, belief: Belief) -> Floats:
        gain = log_expected_improvement(belief.mean, belief.deviation, self._state.targets.best)
        return gain + np.log(belief.works)

    def _ready(self) -> tuple[Candidates, GaussianProcess]:
        assert self._candidates is not None and self._process is not None, "learn first"
        return self._candidates, self._process

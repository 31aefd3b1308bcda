"""The contract that every sampler keeps."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from kernel_forge.search.history import History
from kernel_forge.search.space import SearchSpace


class Sampler(ABC):
    """Proposes configurations of one space, one at a time.

    Contract, checked by ``tests/search/test_sampler_contract.py`` for every sampler:

    - a proposal is a valid configuration that was never asked for;
    - None, and only then, when every valid configuration was asked for;
    - the same seed and the same history give the same proposals;
    - nothing is remembered that the history does not say, except random state and models of it, so a study that was
      begun by another process can be continued;
    - failed configurations are results: what is like them becomes less likely;
    - a proposal may be asked for while others are pending; one that ``learns`` chooses better the fewer are.
    """

    learns: ClassVar[bool] = True

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)

    @abstractmethod
    def propose(self, history: History) -> int | None:
        """The index of the configuration to try next."""

    def untried(self, history: History) -> int | None:
        """A configuration that was never asked for, uniformly; None where there is none left."""
        left = self.space.size - history.asked
        if left <= 0:
            return None
        if left < self.space.size // 2 and self.space.size <= 1 << 22:
            free = history.unseen(np.arange(self.space.size))
            return int(self.rng.choice(free))
        while True:
            index = int(self.rng.integers(self.space.size))
            if index not in history:
                return index

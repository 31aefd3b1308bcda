"""Random search."""

from typing import ClassVar

from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler


class RandomSampler(Sampler):
    """Uniformly among what was not tried: what every other sampler has to beat."""

    learns: ClassVar[bool] = False

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        return self.untried(history)

"""Exhaustive search."""

from typing import ClassVar

from kernel_forge.search.history import History
from kernel_forge.search.sampler import Sampler


class ExhaustiveSampler(Sampler):
    """Every configuration in order, the last parameter fastest; the seed does not matter."""

    learns: ClassVar[bool] = False
    _next = 0

    def propose(self, history: History) -> int | None:
        """See :class:`Sampler`."""
        while self._next < self.space.size and self._next in history:
            self._next += 1
        return self._next if self._next < self.space.size else None

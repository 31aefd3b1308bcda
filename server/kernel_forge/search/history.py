"""What a sampler knows: which configurations were asked for, and how they went."""

import math
from dataclasses import dataclass, field

import numpy as np

from kernel_forge.search.parameters import Floats, Ints, Mask


@dataclass(slots=True)
class History:
    """Results in the order in which they were told; the same order gives the same proposals.

    A configuration is *pending* from when it is asked until it is told. Failed ones (they do not compile, or are
    wrong) have no value.
    """

    _indices: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _pending: dict[int, None] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def ask(self, index: int) -> None:
        """Note that ``index`` is being tried."""
        self._pending[index] = None
        self._seen.add(index)

    def tell(self, index: int, value: float | None) -> None:
        """Note the result of ``index``: a time (any positive quantity to be made small), or None where it failed."""
        self._pending.pop(index, None)
        self._seen.add(index)
        self._indices.append(index)
        self._values.append(math.nan if value is None else value)

    def __contains__(self, index: int) -> bool:
        return index in self._seen

    @property
    def seen(self) -> frozenset[int]:
        """Every configuration that was ever asked for."""
        return frozenset(self._seen)

    @property
    def asked(self) -> int:
        """How many different configurations were asked for."""
        return len(self._seen)

    @property
    def told(self) -> int:
        """How many results there are."""
        return len(self._indices)

    @property
    def indices(self) -> Ints:
        """Told configurations, shape ``(told,)``."""
        return np.array(self._indices, np.int64)

    @property
    def values(self) -> Floats:
        """Their values, NaN where they failed; shape ``(told,)``."""
        return np.array(self._values, np.float64)

    @property
    def pending(self) -> Ints:
        """Configurations asked for and not yet told."""
        return np.array(list(self._pending), np.int64)

    def unseen(self, indices: Ints) -> Ints:
        """Those of ``indices`` that were never asked for, in their order."""
        return indices[self.unseen_mask(indices)]

    def unseen_mask(self, indices: Ints) -> Mask:
        """Which of ``indices`` were never asked for."""
        return np.fromiter((i not in self._seen for i in indices.tolist()), bool, len(indices))

    def best(self, count: int = 1) -> Ints:
        """The ``count`` best configurations so far, best first; failed ones never."""
        values = self.values
        order = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
        return self.indices[order[:count]]

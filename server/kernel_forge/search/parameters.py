"""Tunable parameters as the search sees them: a name and its values in order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_forge.domain.errors import UsageError

Value = int | float | str
"""A value of a parameter (``bool`` is an ``int``); text is allowed because recorded spaces have it."""

MOST_VALUES = 10_000
"""Of one parameter: places of values are numbers of 16 bits, and samplers look at every neighbour along it."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One dimension of a space.

    Raises:
        UsageError: no values, the same value twice, or more than :data:`MOST_VALUES`.
    """

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise UsageError(f"{self.name} has no values")
        if len(self.values) > MOST_VALUES:
            raise UsageError(
                f"{self.name} has {len(self.values):,} values, a tunable can have {MOST_VALUES:,}; leave some out"
            )
        if len(set(self.values)) != len(self.values):
            raise UsageError(f"{self.name} has a value twice")

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number."""
        return not any(isinstance(v, str) for v in self.values)

    def coordinates(self) -> Floats:
        """Where each value lies between the smallest, 0, and the largest, 1; shape ``(len(values),)``.

        The mean of the place in the order and of the place on a logarithmic scale: tile sizes double, unroll
        factors count, and most lists of values are something between. Text keeps the order it was written in; numbers
        that no float tells apart have their place in the order alone.
        """
        count = len(self.values)
        if count == 1:
            return np.zeros(1)
        if not self.is_numeric:
            return np.arange(count) / (count - 1)
        # By the values themselves: integers that differ may be the same float.
        order = sorted(range(count), key=lambda k: self.values[k])
        rank = np.argsort(order) / (count - 1)
        numbers = np.array([float(v) for v in self.values])
        if count == 2 or numbers.min() <= 0:
            return rank
        logs = np.log(numbers)
        span = logs.max() - logs.min()
        if span == 0:
            return rank
        coordinates: Floats = (rank + (logs - logs.min()) / span) / 2
        return coordinates

    def logarithms(self) -> Floats | None:
        """The base-2 logarithms of the values, shape ``(len(values),)``; None where products mean nothing.

        Switches (two values) and parameters with text, zero or negative values have none.
        """
        if len(self.values) < 3 or not self.is_numeric or min(float(v) for v in self.values) <= 0:
            return None
        return np.log2([float(v) for v in self.values])


def parameters_of(values: Iterable[tuple[str, Sequence[Value]]]) -> tuple[Parameter, ...]:
    """Parameters from names and values.

    Raises:
        UsageError: a name twice, or as :class:`Parameter`.
    """
    made = tuple(Parameter(name, tuple(each)) for name, each in values)
    names = [p.name for p in made]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the parameter {name} is there twice")
    return made

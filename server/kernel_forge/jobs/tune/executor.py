"""Where trials are done.

A search knows no device: it hands configurations to an :class:`Executor` and takes results as they come, or in the
order in which it asked. Another executor (many GPUs, a cluster) takes the place of the local one without a change in
the search.
"""

from concurrent.futures import Future
from typing import Protocol

from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import TunedTrial


class Executor(Protocol):
    """Does trials of one kernel.

    ``width`` is how many trials it wants to have at a time to be busy. A future gives a :class:`TunedTrial` for
    anything that a configuration does wrong, and raises :class:`DeviceGone` where no trial can be done any more.
    """

    @property
    def width(self) -> int:
        """Trials at a time."""
        ...

    def submit(self, configuration: Configuration) -> "Future[TunedTrial]":
        """Begin a trial; returns at once. From one thread only, the one that made the executor."""
        ...

    def close(self) -> None:
        """Stop what has not begun; what runs ends within its limits."""
        ...


class DeviceGone(Exception):
    """The device answers nothing any more; the text says why."""

"""What a running job tells: progress, then exactly one end."""

from collections.abc import Callable
from dataclasses import dataclass

from kernel_forge.domain.tuning import SearchProgress


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of a job. ``done`` of ``total`` steps, ``total`` 0 while unknown; ``search`` while a search runs."""

    message: str
    done: int = 0
    total: int = 0
    search: SearchProgress | None = None


Report = Callable[[Progress], None]
"""Where a job sends its progress; must return at once and never raise."""

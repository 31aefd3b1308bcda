"""What a job of the worker came to."""

from dataclasses import dataclass, field
from typing import Any

from kernel_forge.devices.cuda.wire import Array


@dataclass
class Result:
    """Facts about one job, and the arrays that go with them; ``spent``: the context is lost, the process must end."""

    header: dict[str, Any]
    arrays: list[Array] = field(default_factory=list)
    spent: bool = False

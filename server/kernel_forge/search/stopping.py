"""When a search ends."""

import math
from collections.abc import Sequence

from kernel_forge.domain.tuning import Budget


def reason_to_stop(budget: Budget, values: Sequence[float | None], seconds: float) -> str | None:
    """``trials``, ``seconds`` or ``patience``, whichever limit of ``budget`` is reached; None to go on.

    ``values`` are those of all trials so far, in order, None where one failed; ``seconds`` were spent on them.
    """
    if budget.trials is not None and len(values) >= budget.trials:
        return "trials"
    if budget.seconds is not None and seconds >= budget.seconds:
        return "seconds"
    if budget.patience is not None and since_best(values) >= budget.patience:
        return "patience"
    return None


def since_best(values: Sequence[float | None]) -> int:
    """Trials since the best one so far; 0 before there is one."""
    best, at = math.inf, None
    for number, value in enumerate(values):
        if value is not None and value < best:
            best, at = value, number
    return 0 if at is None else len(values) - 1 - at


def remaining_seconds(
    budget: Budget, values: Sequence[float | None], limit: int | None, seconds: float, taken: int = 0
) -> float | None:
    """An estimate of how long a search goes on: at the pace so far, up to the nearest limit; None while unknown.

    ``limit`` is the number of trials at which it ends at the latest. The first ``taken`` of the trials were another
    process's: the ``seconds`` were spent on those after them.
    """
    left = [] if budget.seconds is None else [max(0.0, budget.seconds - seconds)]
    if len(values) > taken and seconds > 0:
        pace = seconds / (len(values) - taken)
        left += [] if limit is None else [pace * max(0, limit - len(values))]
        left += [] if budget.patience is None else [pace * max(0, budget.patience - since_best(values))]
    return min(left, default=None)

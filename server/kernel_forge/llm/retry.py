"""Which failures are worth another attempt, and when."""

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from kernel_forge.domain.model import FailureKind, ModelFailure

# What was answered is never asked again: it was paid for, and would be answered the same way.
_WORTH_IT = frozenset(
    {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.STREAM_DROPPED, FailureKind.UNREACHABLE}
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently.

    Attributes:
        attempts: in all, the first too.
        first, longest: seconds before the second attempt; the wait doubles up to ``longest``.
        patience: a server that wants a longer wait than this many seconds is not waited for.
    """

    attempts: int = 4
    first: float = 1.0
    longest: float = 20.0
    patience: float = 90.0

    def wait(self, failure: ModelFailure, attempt: int, time_left: float | None) -> float | None:
        """Seconds before the attempt after ``attempt`` (from 1); None where there is to be none."""
        if failure.kind not in _WORTH_IT or attempt >= self.attempts:
            return None
        wanted = failure.retry_after
        if wanted is None:
            # Spread, so that calls that failed together do not come back together.
            wanted = min(self.longest, self.first * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
        if wanted > self.patience or (time_left is not None and wanted >= time_left):
            return None
        return wanted


def seconds_of(header: str | None) -> float | None:
    """A ``retry-after`` header, in seconds or as a date; None where it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())

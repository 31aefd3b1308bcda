"""When a failure is worth another attempt."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from kernel_forge.domain.model import FailureKind, ModelFailure
from kernel_forge.llm import RetryPolicy
from kernel_forge.llm.retry import seconds_of

POLICY = RetryPolicy(attempts=4, first=1.0, longest=3.0, patience=60.0)
AGAIN = {"RATE_LIMITED", "OVERLOADED", "STREAM_DROPPED", "UNREACHABLE"}


@pytest.mark.parametrize("kind", FailureKind)
def test_only_what_was_not_answered_is_asked_again(kind: FailureKind) -> None:
    assert (POLICY.wait(ModelFailure(kind, ""), 1, None) is not None) == (kind.name in AGAIN)


def test_waits_double_up_to_the_longest_and_are_spread() -> None:
    failure = ModelFailure(FailureKind.OVERLOADED, "")
    for attempt, most in ((1, 1.0), (2, 2.0), (3, 3.0)):
        waits = [POLICY.wait(failure, attempt, None) or 0.0 for _ in range(50)]
        assert most / 2 <= min(waits) < max(waits) <= most
    assert POLICY.wait(failure, 4, None) is None


def test_the_servers_word_goes_first_within_patience_and_time() -> None:
    failure = ModelFailure(FailureKind.RATE_LIMITED, "", retry_after=20.0)
    assert POLICY.wait(failure, 1, None) == 20.0
    assert POLICY.wait(failure, 1, 20.0) is None
    assert RetryPolicy(patience=19).wait(failure, 1, None) is None


def test_retry_after_is_seconds_or_a_date() -> None:
    assert seconds_of("1.5") == 1.5
    assert seconds_of("-3") == 0.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 28 <= (seconds_of(later) or 0) <= 30
    assert [seconds_of(header) for header in (None, "soon", "", "nan", "inf")] == [None] * 5

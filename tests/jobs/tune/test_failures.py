"""What a failed trial says decides whether a user is warned: the kernel's own faults, and only those."""

import pytest

from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CompileFailed,
    LaunchFailed,
    MemoryFault,
    Outcome,
    RaceFound,
    TimedOut,
    Unavailable,
)
from kernel_forge.domain.tuning import TunedTrial
from kernel_forge.jobs.tune.failures import reason_of
from tests.views.tunings import wrong


@pytest.mark.parametrize(
    ("outcome", "is_wrong"),
    [
        (wrong(), True),
        (MemoryFault("out-of-bounds", "read past x"), True),
        (RaceFound("the result depends on the order"), True),
        (BarrierDivergence("deadlock", "threads wait for each other"), True),
        (LaunchFailed("assert", "assertion failed: i < n"), True),
        (LaunchFailed("trap", "the kernel trapped"), True),
        (LaunchFailed("configuration", "2048 threads per block; CUDA allows 1024"), False),
        (LaunchFailed("memory-limit", "8 GiB are too much"), False),
        (CompileFailed(()), False),
        (TimedOut(1.0, "it did not end in 1 s"), False),
        (Unavailable("no textures"), False),
    ],
)
def test_who_is_wrong(outcome: Outcome, is_wrong: bool) -> None:
    assert TunedTrial({}, None, reason_of(outcome)).is_wrong is is_wrong

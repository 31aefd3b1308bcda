"""Orders of launches that their streams allow."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.launch import Launch, Schedule
from kernel_forge.domain.stream_order import in_order


def launches(streams: str) -> list[Launch]:
    """One launch per letter, named by its place; ``.`` is the default stream."""
    return [Launch(str(i), (), (1, 1, 1), (1, 1, 1), stream=None if s == "." else s) for i, s in enumerate(streams)]


def order(streams: str, schedule: Schedule, seed: int = 0) -> str:
    return "".join(launch.kernel for launch in in_order(launches(streams), schedule, seed))


def test_forward_is_as_listed() -> None:
    assert order("ab.ba", Schedule.FORWARD) == "01234"


def test_reverse_runs_the_last_stream_first_between_launches_of_the_default_stream() -> None:
    assert order("aab.ba", Schedule.REVERSE) == "201354"
    assert order("...", Schedule.REVERSE) == "012"


def test_random_takes_every_order_that_two_streams_allow() -> None:
    # Two launches of a among one of b: three places for b, by hand.
    assert {order("aab", Schedule.RANDOM, seed) for seed in range(40)} == {"012", "021", "201"}


@given(st.text(alphabet="ab.", max_size=12), st.sampled_from(Schedule), st.integers(0, 1000))
def test_streams_and_the_default_stream_are_kept(streams: str, schedule: Schedule, seed: int) -> None:
    made = in_order(launches(streams), schedule, seed)
    place = {int(launch.kernel): i for i, launch in enumerate(made)}
    assert sorted(place) == list(range(len(streams)))
    for i, first in enumerate(streams):
        for j in range(i + 1, len(streams)):
            if first == streams[j] or "." in (first, streams[j]):
                assert place[i] < place[j]

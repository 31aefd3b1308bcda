"""Replays by hand: six configurations, two of which fail."""

from kernel_forge.domain.recorded_space import RecordedSpace, RecordedTrial
from kernel_forge.search import ReplayedSpace

TIMES = {(1, 0): 8.0, (1, 1): None, (2, 0): 4.0, (2, 1): 2.0, (4, 0): None, (4, 1): 5.0}
SPACE = RecordedSpace(
    "k", "d", (("B", (1, 2, 4)), ("P", (0, 1))), tuple(RecordedTrial(c, t, "x") for c, t in TIMES.items())
)


def test_failures_cost_budget_and_never_win() -> None:
    simulation = ReplayedSpace(SPACE).simulate("exhaustive", 6, 1, 0)
    (replay,) = simulation.replays
    assert replay.times == (8.0, None, 4.0, 2.0, None, 5.0)
    assert [replay.best_after(n) for n in (1, 2, 3, 4, 6)] == [8.0, 8.0, 4.0, 2.0, 2.0]
    assert [simulation.fractions_after(n)[0] for n in (1, 3, 6)] == [0.25, 0.5, 1.0]
    assert len(replay.overheads) == 6 and simulation.overhead > 0


def test_a_search_where_all_failed_has_reached_nothing() -> None:
    failing = RecordedSpace("k", "d", (("B", (1, 2)),), (RecordedTrial((1,), None, "x"), RecordedTrial((2,), 3.0)))
    simulation = ReplayedSpace(failing).simulate("exhaustive", 1, 1, 0)
    assert simulation.fractions_after(1) == [0.0]


def test_a_search_ends_with_the_space() -> None:
    simulation = ReplayedSpace(SPACE).simulate("portfolio", 100, 2, 0)
    assert [len(r.times) for r in simulation.replays] == [6, 6]
    assert simulation.fractions_after(100) == [1.0, 1.0]


def test_seeds_count_up() -> None:
    replayed = ReplayedSpace(SPACE)
    both = replayed.simulate("random", 6, 2, 3).replays
    assert [r.times for r in both] == [replayed.simulate("random", 6, 1, s).replays[0].times for s in (3, 4)]

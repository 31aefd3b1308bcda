import os
import signal
import time
from collections.abc import Iterator
from itertools import product

import pytest

from kernel_forge.domain.errors import InternalError, UsageError
from kernel_forge.jobs.tune.search_process import AskAndTell, SearchProcess, searches
from kernel_forge.processes import descendants
from kernel_forge.search import Parameter, SearchSpace

NAMES = ("A", "B", "C")


def space(values: int = 8) -> SearchSpace:
    return SearchSpace.of([Parameter(name, tuple(range(1, values + 1))) for name in NAMES])


@pytest.fixture
def process() -> Iterator[SearchProcess]:
    made = SearchProcess()
    yield made
    made.close()


def searched(search: AskAndTell, trials: int, seconds: float = 0.0) -> list[tuple[object, ...]]:
    """The configurations of a search that takes ``seconds`` for each; every seventh fails."""
    search.recall({"A": 1, "B": 1, "C": 1}, 5.0)
    found: list[tuple[object, ...]] = []
    while len(found) < trials and (proposal := search.ask()) is not None:
        time.sleep(seconds)
        a, b, c = (int(proposal.configuration[name]) for name in NAMES)
        if len(found) % 7 == 6:
            search.tell_failed(proposal, "does not compile")
        else:
            search.tell(proposal, 1.0 + (a - 3) ** 2 + (b - 5) ** 2 + abs(c - 2))
        found.append((a, b, c))
    return found


@pytest.mark.parametrize("seconds", [0.0, 0.1])
@pytest.mark.parametrize("sampler", ["portfolio", "random"])
def test_a_process_proposes_what_a_search_here_does(process: SearchProcess, sampler: str, seconds: float) -> None:
    """Also while it starts, which takes a second or so."""
    first = [{"A": 2, "B": 2, "C": 2}]
    with searches(apart=False) as here:
        expected = searched(here(space(), sampler, 4, first), 30)
    assert expected[0] == (2, 2, 2)
    assert searched(process.search(space(), sampler, 4, first), 30, seconds) == expected
    assert process.searches == (seconds > 0)


def test_everything_is_asked_once_and_then_nothing(process: SearchProcess) -> None:
    search = process.search(space(2), "random", 0, ())
    rest = set(product((1, 2), repeat=3)) - {(1, 1, 1)}
    assert set(searched(search, 100)) == rest
    assert search.ask() is None


def test_what_a_search_refuses_is_raised_by_the_next_question(process: SearchProcess) -> None:
    search = process.search(space(), "random", 0, ())
    while (proposal := search.ask()) is not None and not process.searches:
        time.sleep(0.05)
    assert proposal is not None
    search.tell(proposal, -1.0)
    with pytest.raises(UsageError, match="positive"):
        search.ask()


def test_a_search_that_cannot_begin_says_why(process: SearchProcess) -> None:
    with pytest.raises(UsageError, match="no such sampler"):
        process.search(space(), "no such sampler", 0, ())


def test_an_end_of_the_process_is_told(process: SearchProcess) -> None:
    search = process.search(space(), "random", 0, ())
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(InternalError, match="exit code -9"):
        while search.ask() is not None:
            time.sleep(0.05)


def test_nothing_is_left_over() -> None:
    before = set(descendants(os.getpid()))  # other tests have processes that serve on
    with searches(apart=True) as search_of:
        started = set(descendants(os.getpid())) - before
        assert search_of(space(), "random", 0, ()).ask() is not None
    assert started
    assert not started & set(descendants(os.getpid()))

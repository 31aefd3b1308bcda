"""What every sampler promises (:class:`kernel_forge.search.sampler.Sampler`)."""

import math

import numpy as np
import pytest

from kernel_forge.domain.expression import Expression
from kernel_forge.search import SAMPLERS, SearchSpace, parameters_of
from kernel_forge.search.history import History

EVERY = pytest.mark.parametrize("name", SAMPLERS)


def small_space() -> SearchSpace:
    values = {"a": (1, 2, 4, 8), "b": (1, 2, 3), "t": ("x", "y")}
    return SearchSpace.of(parameters_of(values.items()), [Expression.parse("a * b <= 8")])


def wide_space() -> SearchSpace:
    values = {"a": tuple(2**k for k in range(10)), "b": tuple(range(1, 17)), "c": tuple(range(1, 17)), "d": (0, 1)}
    return SearchSpace.of(parameters_of(values.items()), [Expression.parse("a * b <= 1024")])


def bowl(space: SearchSpace, index: int) -> float:
    """A time with its least value, 1, at a=32, b=5, c=9, d=1."""
    c = space.configuration(index)
    a, b, d = float(c["a"]), float(c["b"]), float(c["d"])
    return 1 + abs(math.log2(a) - 5) + abs(b - 5) / 4 + abs(float(c["c"]) - 9) / 4 + 2 * (d == 0)


def proposals(name: str, space: SearchSpace, seed: int, count: int) -> list[int]:
    sampler, history, found = SAMPLERS[name](space, seed), History(), list[int]()
    while len(found) < count and (index := sampler.propose(history)) is not None:
        history.ask(index)
        history.tell(index, bowl(space, index))
        found.append(index)
    return found


@EVERY
def test_every_valid_configuration_once_and_then_none(name: str) -> None:
    space = small_space()
    sampler, history, found = SAMPLERS[name](space, 3), History(), list[int]()
    while (index := sampler.propose(history)) is not None:
        history.ask(index)
        history.tell(index, 1.0 + index if index % 3 else None)
        found.append(index)
        assert len(found) <= space.size
    assert sorted(found) == list(range(space.size))
    assert sampler.propose(history) is None


@EVERY
def test_proposals_while_others_are_pending_differ_from_them(name: str) -> None:
    space = small_space()
    sampler, history, found = SAMPLERS[name](space, 0), History(), list[int]()
    while (index := sampler.propose(history)) is not None:
        history.ask(index)
        found.append(index)
        if len(found) % 3 == 0:  # told late, and the last one first
            for late in reversed(found[-3:]):
                history.tell(late, 1.0 + late)
    assert sorted(found) == list(range(space.size))


@EVERY
def test_the_same_seed_and_results_give_the_same_proposals(name: str) -> None:
    space = wide_space()
    first = proposals(name, space, 7, 40)
    assert first == proposals(name, space, 7, 40)
    assert len(set(first)) == 40
    if name != "exhaustive":
        assert first != proposals(name, space, 8, 40)


@EVERY
def test_a_history_that_others_made_is_continued(name: str) -> None:
    space = wide_space()
    history = History()
    for index in range(0, 60, 2):
        history.tell(index, bowl(space, index) if index % 4 else None)
    sampler, found = SAMPLERS[name](space, 0), set[int]()
    for _ in range(30):
        index = sampler.propose(history)
        assert index is not None and index not in history
        history.ask(index)
        history.tell(index, bowl(space, index))
        found.add(index)
    assert len(found) == 30


@EVERY
def test_a_space_with_one_configuration(name: str) -> None:
    space = SearchSpace.of(parameters_of([("a", (4,)), ("b", (1, 2))]), [Expression.parse("b == 2")])
    sampler, history = SAMPLERS[name](space, 0), History()
    assert sampler.propose(history) == 0
    history.ask(0)
    assert sampler.propose(history) is None
    history.tell(0, None)
    assert sampler.propose(history) is None


@EVERY
def test_failures_alone_are_no_obstacle(name: str) -> None:
    space = wide_space()
    sampler, history = SAMPLERS[name](space, 0), History()
    for _ in range(40):
        index = sampler.propose(history)
        assert index is not None and index not in history
        history.ask(index)
        history.tell(index, None)


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n not in ("random", "exhaustive")])
def test_results_are_learned_from(name: str) -> None:
    space = wide_space()
    values = np.array([bowl(space, k) for k in range(space.size)])
    rng = np.random.default_rng(0)
    by_chance = np.mean([values[rng.choice(space.size, 100, replace=False)].min() for _ in range(1000)])
    found = np.mean([values[proposals(name, space, seed, 100)].min() for seed in range(3)])
    assert found - 1 < 0.6 * (by_chance - 1)  # 1 is the optimum


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n not in ("random", "exhaustive")])
def test_failures_are_learned_from(name: str) -> None:
    """What has c above 8 fails, half of the space; the rest is all alike, so only failure can be learned."""
    space = wide_space()
    failed = 0
    for seed in range(3):
        sampler, history = SAMPLERS[name](space, seed), History()
        for step in range(60):
            index = sampler.propose(history)
            assert index is not None
            history.ask(index)
            fails = int(space.configuration(index)["c"]) > 8
            failed += fails and step >= 30
            history.tell(index, None if fails else 1.0 + 0.01 * (index % 7))
    assert failed < 0.35 * 90  # chance is .5


def test_a_space_too_large_for_one_pool_is_searched_near_the_best() -> None:
    space = SearchSpace.of(parameters_of((f"p{k}", tuple(range(1, 41))) for k in range(5)))
    assert space.size == 40**5
    sampler, history = SAMPLERS["portfolio"](space, 0), History()
    for _ in range(50):
        index = sampler.propose(history)
        assert index is not None
        history.ask(index)
        history.tell(index, 1 + float(np.abs(space.ranks(np.array([index])) - 20).sum()))
    # The best of 50 random ones is 1 + 20 on average (Monte Carlo, 10,000 repeats), the mean 1 + 50.
    assert history.values.min() < 15

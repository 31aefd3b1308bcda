"""Spaces against brute force over the Cartesian product, and by hand."""

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression
from kernel_forge.search import EmptySpace, SearchSpace, parameters_of

CONSTRAINTS = [
    "a * b <= 64",
    "a % c == 0",
    "c != 0 and a % c == 0",
    "b >= 4 or d == 1",
    "a + b + c + d > 9",
    "sqrt(b) < 3",
    "1 <= d",
    "n % a == 0",
    "a / c > 2",
]
VALUES = {"a": (1, 2, 4, 32), "b": (1, 8, 16), "c": (0, 1, 3), "d": (0, 1), "e": (0.5, 2)}


def space(constraints: list[str], values: dict[str, tuple[float, ...]] = VALUES) -> SearchSpace:
    return SearchSpace.of(parameters_of(values.items()), [Expression.parse(c) for c in constraints], {"n": 96})


def admitted(constraints: list[str]) -> list[tuple[float, ...]]:
    """By the scalar evaluator alone; no value counts as violated."""

    def holds(text: str, row: tuple[float, ...]) -> bool:
        try:
            return bool(Expression.parse(text).evaluate({"n": 96, **dict(zip(VALUES, row, strict=True))}))
        except ExpressionError:
            return False

    return [row for row in product(*VALUES.values()) if all(holds(c, row) for c in constraints)]


@given(st.lists(st.sampled_from(CONSTRAINTS), max_size=5))
def test_valid_configurations_are_those_of_brute_force(constraints: list[str]) -> None:
    expected = admitted(constraints)
    if not expected:
        with pytest.raises(EmptySpace):
            space(constraints)
        return
    made = space(constraints)
    assert made.size == len(expected)
    found = [tuple(made.configuration(k).values()) for k in range(made.size)]
    assert sorted(found) == sorted(expected)
    assert [made.index_of(made.configuration(k)) for k in range(made.size)] == list(range(made.size))


def test_what_is_not_valid_has_no_index() -> None:
    made = space(["a * b <= 64"])
    valid = {"a": 2, "b": 8, "c": 0, "d": 1, "e": 2}
    assert made.index_of(valid) is not None
    assert made.index_of({**valid, "a": 32}) is None  # 32 * 8 > 64
    assert made.index_of({**valid, "a": 3}) is None
    assert made.index_of({"a": 2}) is None


def test_neighbours_are_one_parameter_away_or_two_steps() -> None:
    made = space(["a * b <= 64"])
    own = {"a": 4, "b": 8, "c": 0, "d": 1, "e": 2}
    index = made.index_of(own)
    assert index is not None
    near = [made.configuration(int(k)) for k in made.neighbours(index)]
    # a: 1, 2 (32 breaks the constraint); b: 1, 16; c: 1, 3; d: 0; e: 0.5
    assert len(near) == 8
    assert all(sum(c[k] != own[k] for k in own) == 1 for c in near)
    assert index not in made.neighbours(index, changed=2)
    two = {"a": 2, "b": 16, "c": 0, "d": 1, "e": 2}
    assert made.index_of(two) in made.neighbours(index, changed=2).tolist()


def test_an_empty_space_names_the_constraint_that_kills_it() -> None:
    with pytest.raises(EmptySpace, match=r"none satisfies a > 100$"):
        space(["b > 1", "a > 100"])
    with pytest.raises(EmptySpace, match=r"none of the 3 combinations that satisfy a >= 32 satisfies a \* b < 32$"):
        space(["a >= 32", "a * b < 32"])
    with pytest.raises(EmptySpace, match="n > 100 does not hold"):
        space(["n > 100"])


def test_division_by_zero_rules_out_and_is_reported() -> None:
    made = space(["a % c == 0"])
    assert all(made.configuration(k)["c"] != 0 for k in range(made.size))
    (note,) = made.without_value
    assert note.constraint == "a % c == 0" and "division by zero" in note.reason
    assert note.combinations == 4  # c = 0 with each of the four values of a
    assert not space(["c != 0 and a % c == 0"]).without_value
    with pytest.raises(EmptySpace, match=r"none satisfies a / \(d - d\) > 0 \(division by zero"):
        space(["a / (d - d) > 0"])


def test_an_unknown_name_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="BLOK in the constraint BLOK > 1"):
        space(["BLOK > 1"])


def test_ten_million_combinations_are_counted_soon() -> None:
    values = {f"p{k}": tuple(range(1, 11)) for k in range(7)}
    began = time.perf_counter()
    made = SearchSpace.of(parameters_of(values.items()), [Expression.parse(f"p{k} * p{k + 1} <= 50") for k in range(6)])
    took = time.perf_counter() - began
    # A walk along the chain counts the same: pairs (x, y) of 1..10 with x * y <= 50.
    step = np.array([[x * y <= 50 for y in range(1, 11)] for x in range(1, 11)], int)
    assert made.combinations == 10_000_000
    assert made.size == np.linalg.matrix_power(step, 6).sum()
    assert took < 20  # 1.3 s on two cores of 2020


def test_independent_parameters_are_counted_without_being_made() -> None:
    made = SearchSpace.of(parameters_of((f"p{k}", tuple(range(100))) for k in range(8)))
    assert made.size == 100**8
    index = 98_765_432_101_234
    assert made.index_of(made.configuration(index)) == index
    some = made.sample(50, np.random.default_rng(0))
    assert len(set(some.tolist())) == 50


def test_a_list_of_configurations_is_a_space() -> None:
    made = SearchSpace.listed(parameters_of({"a": (1, 2), "t": ("x", "y")}.items()), [(2, "x"), (1, "y")])
    assert [made.configuration(k) for k in range(made.size)] == [{"a": 1, "t": "y"}, {"a": 2, "t": "x"}]
    with pytest.raises(UsageError, match="twice"):
        SearchSpace.listed(parameters_of([("a", (1, 2))]), [(1,), (1,)])


def test_what_only_the_scalar_evaluator_can_do_is_refused_for_millions_of_combinations() -> None:
    """199^3 combinations, some microseconds each; the same without a root is whole columns."""
    values = {name: tuple(range(1, 200)) for name in "abc"}
    with pytest.raises(UsageError, match=r"sqrt\(a \* b\) < c has to be evaluated one by one"):
        space(["sqrt(a * b) < c"], values)
    numbers = np.arange(1, 200)
    valid = np.multiply.outer(numbers, numbers)[:, :, None] < numbers**2
    assert space(["a * b < c * c"], values).size == np.count_nonzero(valid)


def test_a_parameter_has_values_that_fit_its_places() -> None:
    assert space([], {"a": tuple(range(10_000))}).size == 10_000
    with pytest.raises(UsageError, match="a has 10,001 values"):
        space([], {"a": tuple(range(10_001))})


def test_values_that_no_float_tells_apart_have_places_all_the_same() -> None:
    """float(10**300 + i) is 1e300 for i from 0 to 4: on a logarithmic scale they are one point."""
    (parameter,) = parameters_of([("a", [10**300 + i for i in (3, 0, 4, 1, 2)])])
    assert parameter.coordinates().tolist() == [0.75, 0.0, 1.0, 0.25, 0.5]
    (few,) = parameters_of([("a", [10**300 + 1, 10**300])])
    assert few.coordinates().tolist() == [1.0, 0.0]


def test_a_list_whose_combinations_have_no_number_is_refused() -> None:
    """2**62 rows would still have codes of 64 bits with a sign; 70 switches have not, and rows were mistaken."""
    for count, is_refused in ((61, False), (62, True), (70, True)):
        parameters = parameters_of([(f"p{k}", (0, 1)) for k in range(count)])
        rows = [[int(j == k) for j in range(count)] for k in range(count)]
        if is_refused:
            with pytest.raises(UsageError, match=r"too many combinations of p0, p1, .* more; give fewer values"):
                SearchSpace.listed(parameters, rows)
        else:
            found = SearchSpace.listed(parameters, rows)
            assert [found.index_of(found.configuration(i)) for i in range(found.size)] == list(range(found.size))

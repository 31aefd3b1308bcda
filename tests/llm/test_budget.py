"""Limits in money, tokens, calls and seconds, with several calls at a time."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from kernel_forge.domain.model import FailureKind, ModelBudget, ModelFailure, ModelSpending
from kernel_forge.llm import Meter
from kernel_forge.llm.budget import Reservation

CENT = Decimal("0.01")


def held(got: Reservation | ModelFailure) -> Reservation:
    assert isinstance(got, Reservation), got
    return got


def refused(got: Reservation | ModelFailure) -> str:
    assert isinstance(got, ModelFailure), got
    assert got.kind is FailureKind.BUDGET
    return got.reason


def test_what_is_reserved_counts_as_spent_until_it_is_settled() -> None:
    meter = Meter(ModelBudget(dollars=CENT * 3))
    first = held(meter.reserve(CENT * 2, 0))
    assert "$0.0100 of $0.03 are left" in refused(meter.reserve(CENT * 2, 0))
    meter.settle(first, CENT, 0)  # cheaper than feared
    held(meter.reserve(CENT * 2, 0))
    assert meter.spent.dollars == CENT


def test_the_limit_itself_may_be_reached_and_not_a_hair_more() -> None:
    assert isinstance(Meter(ModelBudget(dollars=CENT)).reserve(CENT, 0), Reservation)
    refused(Meter(ModelBudget(dollars=CENT)).reserve(CENT + Decimal("1e-9"), 0))
    assert isinstance(Meter(ModelBudget(tokens=10)).reserve(None, 10), Reservation)
    assert "10 are left" in refused(Meter(ModelBudget(tokens=10)).reserve(None, 11))


def test_calls_under_way_count_too() -> None:
    meter = Meter(ModelBudget(calls=2))
    first = held(meter.reserve(None, 0))
    held(meter.reserve(None, 0))
    assert "all 2 calls" in refused(meter.reserve(None, 0))
    meter.settle(first, None, 5, calls=0)
    held(meter.reserve(None, 0))
    assert meter.spent == ModelSpending(Decimal(0), 5, 0)


def test_seconds_run_from_the_start() -> None:
    now = 100.0
    meter = Meter(ModelBudget(seconds=5), clock=lambda: now)
    held(meter.reserve(None, 0))
    now = 104.0
    assert meter.seconds_left() == 1.0
    now = 105.0
    assert "5 s" in refused(meter.reserve(None, 0))
    assert meter.seconds_left() == 0.0
    assert Meter().seconds_left() is None


def test_a_resumed_job_goes_on_from_what_it_had_spent() -> None:
    meter = Meter(ModelBudget(dollars=CENT * 2, calls=9), ModelSpending(CENT, 70, 8))
    refused(meter.reserve(CENT * 2, 0))
    meter.settle(held(meter.reserve(CENT, 0)), CENT, 30)
    assert meter.spent == ModelSpending(CENT * 2, 100, 9)


def test_money_cannot_be_limited_for_an_unknown_price() -> None:
    got = Meter(ModelBudget(dollars=CENT)).reserve(None, 0)
    assert isinstance(got, ModelFailure) and got.kind is FailureKind.NO_PRICE


def test_threads_together_never_pass_the_limit() -> None:
    meter = Meter(ModelBudget(dollars=CENT * 50))

    def one(_: int) -> bool:
        got = meter.reserve(CENT, 1)
        if isinstance(got, ModelFailure):
            return False
        meter.settle(got, CENT, 1)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(400))) == 50
    assert meter.spent == ModelSpending(CENT * 50, 50, 50)

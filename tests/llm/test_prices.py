"""The price table, and costs worked out by hand."""

from decimal import Decimal

import pytest

from kernel_forge.domain.model import TokenUsage
from kernel_forge.llm import Price, Rates, read_prices
from kernel_forge.resources import kb_folder

PRICES = read_prices(kb_folder() / "models.toml")


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        # 1000 * 2 + 500 * 10 + 4000 * 2.5 + 8000 * 0.1 = 17800 millionths
        ("claude-sonnet-5-5", TokenUsage(1000, 500, 4000, 8000), "0.0178"),
        # 7 * 4 + 3 * 20 = 88 millionths
        ("claude-opus-5-5", TokenUsage(7, 3), "0.000088"),
        # a prompt of 100,000 tokens: 100000 * 0.1 + 10 * 0.5 = 10005 millionths
        ("claude-haiku-5-5", TokenUsage(100_000, 10), "0.010005"),
        # one more, of which one is read from the cache: 100000 * 0.5 + 0.05 + 10 * 2.5 = 50025.05 millionths
        ("claude-haiku-5-5", TokenUsage(100_000, 10, 0, 1), "0.05002505"),
    ],
)
def test_costs(model: str, usage: TokenUsage, dollars: str) -> None:
    assert PRICES[model].cost(usage) == Decimal(dollars)


def test_no_use_within_the_limits_costs_more_than_the_worst_case() -> None:
    for price in PRICES.values():
        worst = price.worst(150_000, 1000)
        for usage in (TokenUsage(150_000, 1000), TokenUsage(0, 1000, 150_000), TokenUsage(50_000, 9, 50_000, 50_000)):
            assert price.cost(usage) <= worst


def test_the_worst_case_is_each_token_at_its_dearest() -> None:
    price = Price(Rates(Decimal(3), Decimal(15), Decimal(4), Decimal("0.5")))
    assert price.worst(1000, 10) == Decimal("0.00415")  # 1000 * 4 + 10 * 15


def test_a_model_that_is_not_in_the_table_has_no_price() -> None:
    assert "claude-of-tomorrow" not in PRICES

"""What models cost: the table ``kb/models.toml``, and the arithmetic, exact in decimals."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from kernel_forge.domain.model import TokenUsage

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens. ``cache_write`` is that of the five-minute cache, the one we use."""

    input: Decimal
    output: Decimal
    cache_write: Decimal
    cache_read: Decimal

    def cost(self, usage: TokenUsage) -> Decimal:
        """US dollars, not rounded."""
        return (
            self.input * usage.input
            + self.output * usage.output
            + self.cache_write * usage.cache_write
            + self.cache_read * usage.cache_read
        ) / _MILLION


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model; some have ``long_rates`` for a call whose prompt has more than ``long_from`` tokens."""

    rates: Rates
    long_from: int | None = None
    long_rates: Rates | None = None

    def cost(self, usage: TokenUsage) -> Decimal:
        """What a call cost, in US dollars, not rounded."""
        if self.long_rates is not None and self.long_from is not None and usage.prompt > self.long_from:
            return self.long_rates.cost(usage)
        return self.rates.cost(usage)

    def worst(self, prompt: int, output: int) -> Decimal:
        """The most that a call with at most so many tokens can cost: each token at the dearest rate it can have."""
        everywhere = [self.rates, *([self.long_rates] if self.long_rates is not None else [])]
        dearest = max(max(r.input, r.cache_write, r.cache_read) for r in everywhere)
        return (dearest * prompt + max(r.output for r in everywhere) * output) / _MILLION


def read_prices(path: Path) -> Mapping[str, Price]:
    """Model name -> price, from a table like ``kb/models.toml``. A model that is not in it has no price."""
    models = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)["model"]
    return {name: _price(row) for name, row in models.items()}


def _price(row: Mapping[str, object]) -> Price:
    long = row.get("long_prompt")
    if not isinstance(long, Mapping):
        return Price(_rates(row))
    return Price(_rates(row), int(str(long["above"])), _rates(long))


def _rates(row: Mapping[str, object]) -> Rates:
    return Rates(*(Decimal(str(row[name])) for name in ("input", "output", "cache_write", "cache_read")))

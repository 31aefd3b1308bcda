"""Language models behind the port ``Model``; the only importer of anthropic. Knows ``ports`` and ``domain`` only."""

from kernel_forge.llm.budget import Meter
from kernel_forge.llm.outgoing import Outgoing, outgoing
from kernel_forge.llm.prices import Price, Rates, read_prices
from kernel_forge.llm.retry import RetryPolicy
from kernel_forge.llm.scripted import ScriptedModel, failing

__all__ = [
    "Meter",
    "Outgoing",
    "Price",
    "Rates",
    "RetryPolicy",
    "ScriptedModel",
    "failing",
    "outgoing",
    "read_prices",
]

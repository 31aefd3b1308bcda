"""The scripted model keeps the contract of a real one."""

import asyncio
import threading
import time
from decimal import Decimal

import pytest

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.model import (
    FailureKind,
    ModelBudget,
    ModelFailure,
    ModelProgress,
    ModelReply,
    ModelRequest,
    Part,
    PartKind,
    TokenUsage,
)
from kernel_forge.llm import Meter, ScriptedModel, failing
from kernel_forge.ports import Model

REQUEST = ModelRequest("", (Part(PartKind.BRIEF, "in /home/ann"),))


def reply(text: str, cost: str = "0.01") -> ModelReply:
    return ModelReply(text, None, "end_turn", TokenUsage(3, 4), Decimal(cost), "scripted", None)


async def test_it_answers_in_order_and_keeps_what_was_asked() -> None:
    seen: list[ModelProgress] = []
    model: Model = ScriptedModel([reply("a"), failing(FailureKind.REFUSED), lambda r: reply(r.parts[0].text)])
    assert await model.ask(REQUEST, seen.append) == reply("a")
    assert await model.ask(REQUEST) == failing(FailureKind.REFUSED)
    assert await model.ask(REQUEST) == reply("in <path>")
    assert [p.text for p in seen] == ["a"]
    assert model.preview(REQUEST) == "--- system\n\n--- brief\nin <path>\n"
    assert isinstance(model, ScriptedModel) and len(model.requests) == 3
    with pytest.raises(InternalError, match="request 4"):
        await model.ask(REQUEST)


async def test_it_keeps_to_the_budget_to_the_cent() -> None:
    meter = Meter(ModelBudget(dollars=Decimal("0.03")))
    model = ScriptedModel([reply("a")] * 9, meter)
    got = [await model.ask(REQUEST) for _ in range(4)]
    assert [isinstance(g, ModelReply) for g in got] == [True, True, True, False]
    assert isinstance(got[3], ModelFailure) and got[3].kind is FailureKind.BUDGET
    assert (meter.spent.dollars, meter.spent.tokens, meter.spent.calls) == (Decimal("0.03"), 21, 3)


async def test_a_secret_is_not_asked() -> None:
    model = ScriptedModel([reply("a")])
    got = await model.ask(ModelRequest("", (Part(PartKind.BRIEF, "AKIAIOSFODNN7EXAMPLE"),)))
    assert isinstance(got, ModelFailure) and got.kind is FailureKind.SECRET and model.requests == []


async def test_cancel_ends_a_call_within_a_second() -> None:
    model = ScriptedModel([reply("a")], seconds=60)
    task = asyncio.create_task(model.ask(REQUEST))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    threading.Thread(target=model.cancel).start()
    got = await task
    assert isinstance(got, ModelFailure) and got.kind is FailureKind.CANCELLED
    assert time.monotonic() - began < 1

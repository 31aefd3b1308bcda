"""The adapter against a server on this machine: what is sent, what each answer means, what it costs, what is left.

Prices of the tests, in dollars per million tokens: prompt 3, answer 15, cache written 4, cache read 0.5.
"""

import asyncio
import json
import socket
import threading
import time
from decimal import Decimal

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.model import (
    AnswerSchema,
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
from kernel_forge.llm import Meter, Price, Rates, RetryPolicy
from kernel_forge.llm.anthropic_model import AnthropicModel, AnthropicSettings
from tests.llm.messages_server import Answer, Server, block, end, error, event, serving, start, text, tool

NAME = "claude-sonnet-5-5"
PRICE = Price(Rates(Decimal(3), Decimal(15), Decimal(4), Decimal("0.5")))
SCHEMA = AnswerSchema(
    "give", "The kernel goes here.", {"type": "object", "properties": {"kernel": {}}, "required": ["kernel"]}
)
REQUEST = ModelRequest(
    "You write kernels.", (Part(PartKind.BRIEF, "add one"),), (Part(PartKind.KNOWLEDGE, "a page"),), max_tokens=1000
)
STRUCTURED = ModelRequest("You write kernels.", (Part(PartKind.BRIEF, "add one"),), answer=SCHEMA, max_tokens=1000)
QUICK = RetryPolicy(attempts=3, first=0.01, longest=0.02, patience=5)

F = FailureKind


def model(
    server: Server, meter: Meter | None = None, retry: RetryPolicy = QUICK, price: Price | None = PRICE, **limits: float
) -> AnthropicModel:
    settings = AnthropicSettings(NAME, server.url, retry=retry, **limits)
    prices = {} if price is None else {NAME: price}
    return AnthropicModel(settings, prices, meter or Meter(), lambda: "sk-of-the-test")


async def asked(
    *script: Answer, request: ModelRequest = REQUEST, meter: Meter | None = None, **limits: float
) -> tuple[ModelReply | ModelFailure, Server]:
    async with serving(*script) as server:
        return await model(server, meter, **limits).ask(request), server


def failure(answer: ModelReply | ModelFailure) -> ModelFailure:
    assert isinstance(answer, ModelFailure), answer
    return answer


def reply(answer: ModelReply | ModelFailure) -> ModelReply:
    assert isinstance(answer, ModelReply), answer
    return answer


async def test_a_text_arrives_piece_by_piece_and_its_cost_is_exact() -> None:
    seen: list[ModelProgress] = []
    meter = Meter()
    answers = text("int ", "x;", output=200, cache_creation_input_tokens=1000, cache_read_input_tokens=2000)
    async with serving(answers) as server:
        got = reply(await model(server, meter).ask(REQUEST, seen.append))
    assert (got.text, got.structured, got.stop_reason) == ("int x;", None, "end_turn")
    assert (got.model, got.request_id) == (NAME, "req_1")
    assert got.usage == TokenUsage(100, 200, 1000, 2000)
    # 100 * 3 + 200 * 15 + 1000 * 4 + 2000 * 0.5 = 8300 millionths of a dollar
    assert got.cost == Decimal("0.0083")
    assert [(p.text, p.characters) for p in seen] == [("int ", 4), ("x;", 6)]
    assert (meter.spent.dollars, meter.spent.tokens, meter.spent.calls) == (Decimal("0.0083"), 3300, 1)


async def test_what_is_sent_is_the_request_with_a_cached_prefix_and_nothing_else() -> None:
    _, server = await asked(text("x"))
    assert server.bodies == [
        {
            "model": NAME,
            "max_tokens": 1000,
            "stream": True,
            "system": [{"type": "text", "text": "You write kernels."}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a page", "cache_control": {"type": "ephemeral"}},
                        {"type": "text", "text": "add one"},
                    ],
                }
            ],
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer sk-of-the-test"


async def test_every_text_that_is_sent_is_in_the_preview() -> None:
    request = ModelRequest(
        "Be brief.", (Part(PartKind.KERNEL, 'float x; // "/home/ann/x.cu"'),), answer=SCHEMA, max_tokens=77
    )
    async with serving(tool('{"kernel": 1}')) as server:
        ours = model(server)
        preview = ours.preview(request)
        await ours.ask(request)
    body = server.bodies[0]
    (sent,) = body["tools"]  # type: ignore[misc]
    schema = json.dumps(SCHEMA.schema)
    assert preview == (
        f'--- answer\ngive\nThe kernel goes here.\n{schema}\n--- system\nBe brief.\n--- kernel\nfloat x; // "<path>"\n'
    )
    assert sent == {"name": "give", "description": "The kernel goes here.", "input_schema": dict(SCHEMA.schema)}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert body["messages"][0]["content"] == [{"type": "text", "text": 'float x; // "<path>"'}]  # type: ignore[index]


async def test_a_structured_answer_is_read_from_the_tool() -> None:
    got, server = await asked(tool('{"ker', 'nel": "x"', "}"), request=STRUCTURED)
    assert reply(got).structured == {"kernel": "x"}
    assert server.bodies[0]["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (text("I will not", stop="refusal"), F.REFUSED, "refused"),
        (text("int", stop="max_tokens"), F.TRUNCATED, "within 1000 tokens"),
        (text("int", stop="model_context_window_exceeded"), F.TRUNCATED, "longer than the model"),
        (text("hm", stop="pause_turn"), F.MALFORMED, "pause_turn"),
        (text("no tool"), F.MALFORMED, "called 0 times"),
        (tool('{"kernel": '), F.MALFORMED, "not JSON"),
        (tool('["kernel"]'), F.MALFORMED, "not an object"),
        (tool('{"other": 1}'), F.MALFORMED, "lacks kernel"),
        (tool("{}", name="take"), F.MALFORMED, "take was"),
        (tool('{"kernel": "x'), F.MALFORMED, "not JSON"),
        (tool('{"kernel": ', stop="max_tokens"), F.TRUNCATED, "within 1000 tokens"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_a_failure_paid_exactly_and_not_asked_again(
    answer: Answer, kind: FailureKind, reason: str
) -> None:
    meter = Meter()
    got, server = await asked(answer, request=STRUCTURED, meter=meter)
    assert failure(got).kind is kind and reason in failure(got).reason
    # 100 * 3 + 10 * 15 = 450 millionths
    assert failure(got).cost == meter.spent.dollars == Decimal("0.00045")
    assert len(server.bodies) == 1


async def test_the_reason_of_a_refusal_is_told() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "looks like malware"}
    got, _ = await asked(Answer([start(), end("refusal", stop_details=details)]))
    assert "looks like malware" in failure(got).reason


@pytest.mark.parametrize(
    "chunks",
    [
        [start(), b"event: content_block_delta\ndata: {broken\n\n"],
        [start(), event("content_block_delta", index=0, delta={"type": "text_delta", "text": 5})],
        [start(), event("content_block_delta", index=7, delta={"type": "input_json_delta", "partial_json": "{"})],
        [event("message_start", message=None)],
        [start(input_tokens=-5)],
        [b"event: message_start\ndata: 5\n\n"],
    ],
)
async def test_a_malformed_event_is_a_failure_and_counts_as_the_most_it_can_have_cost(chunks: list[bytes]) -> None:
    meter = Meter()
    got, server = await asked(Answer(chunks), meter=meter)
    assert failure(got).kind is F.MALFORMED
    assert len(server.bodies) == 1
    # The prompt: 18 + 6 + 7 bytes of text and 2000 of overhead at 4, and 1000 tokens of answer at 15.
    assert failure(got).cost == meter.spent.dollars == Decimal(2031 * 4 + 1000 * 15) / 1_000_000


async def test_what_is_no_model_is_not_asked_again() -> None:
    got, server = await asked(Answer([b"<html>Sign in</html>"], content_type="text/html"))
    assert failure(got).kind is F.MALFORMED and len(server.bodies) == 1


async def test_an_unknown_event_is_passed_over() -> None:
    got, _ = await asked(Answer([start(), event("novelty", more=1), *block(["x"]), end("end_turn")]))
    assert reply(got).text == "x"


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (error(429, "rate_limit_error", retry_after="0.2"), F.RATE_LIMITED),
        (error(529, "overloaded_error", retry_after="0.2"), F.OVERLOADED),
        (error(500, "api_error", retry_after="0.2"), F.UNREACHABLE),
        (error(503, "api_error", retry_after="0.2"), F.UNREACHABLE),
    ],
)
async def test_a_busy_server_is_asked_again_when_it_says(first: Answer, kind: FailureKind) -> None:
    began = time.monotonic()
    got, server = await asked(first, text("x"))
    assert time.monotonic() - began >= 0.2
    assert reply(got).text == "x" and len(server.bodies) == 2
    (lost,) = reply(got).retries
    assert (lost.kind, lost.retry_after, lost.cost, lost.request_id) == (kind, 0.2, Decimal(0), "req_1")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
    ],
)
async def test_a_request_that_is_not_accepted_is_not_sent_again(status: int, kind: str) -> None:
    meter = Meter()
    got, server = await asked(error(status, kind), meter=meter)
    assert failure(got).kind is F.REJECTED and f"{kind} it is" in failure(got).reason
    assert len(server.bodies) == 1 and meter.spent.dollars == 0


async def test_a_redirect_is_not_followed() -> None:
    async with serving(text("elsewhere")) as other:
        moved = Answer([], 307, {"location": f"{other.url}/v1/messages"}, "text/plain")
        got, _ = await asked(moved)
    assert failure(got).kind is F.REJECTED and other.bodies == []


@pytest.mark.parametrize(
    "first",
    [
        Answer([start(), *block(["half"])[:2]], cut=True),
        Answer([start(), *block(["half"])], cut=False),  # ends in order, but before its last event
        Answer([start(), *block(["half"]), end("end_turn").partition(b"event: message_stop")[0]]),
        Answer([start(), *block(["half"])[:2], event("error", error={"type": "overloaded_error", "message": "m"})]),
    ],
)
async def test_a_stream_that_breaks_off_is_asked_again_and_its_loss_counted(first: Answer) -> None:
    meter = Meter()
    got, server = await asked(first, text("whole"), meter=meter)
    assert reply(got).text == "whole" and len(server.bodies) == 2
    (lost,) = reply(got).retries
    assert lost.kind in (F.STREAM_DROPPED, F.OVERLOADED) and lost.text == "half"
    worst = Decimal(2031 * 4 + 1000 * 15) / 1_000_000
    assert lost.cost == worst
    assert meter.spent.dollars == worst + Decimal("0.00045")


async def test_it_gives_up_after_the_last_attempt() -> None:
    got, server = await asked(*[error(529, "overloaded_error") for _ in range(5)])
    assert failure(got).kind is F.OVERLOADED and len(server.bodies) == 3
    assert len(failure(got).retries) == 2


async def test_a_server_that_wants_too_long_a_wait_is_told_at_once() -> None:
    got, server = await asked(error(429, "rate_limit_error", retry_after="3600"), text("x"))
    assert (failure(got).kind, failure(got).retry_after, len(server.bodies)) == (F.RATE_LIMITED, 3600, 1)


async def test_a_server_that_is_not_there_costs_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        meter = Meter()
        got = await model(Server(f"http://127.0.0.1:{taken.getsockname()[1]}"), meter).ask(REQUEST)
    assert failure(got).kind is F.UNREACHABLE and len(failure(got).retries) == 2
    assert meter.spent.dollars == 0


async def test_a_silent_stream_ends_at_the_idle_limit() -> None:
    silent = Answer([start(), 30.0])
    got, _ = await asked(silent, text("x"), idle=0.2)
    assert reply(got).retries[0].kind is F.STREAM_DROPPED


async def test_a_slow_stream_ends_at_the_limit_of_an_attempt() -> None:
    slow = Answer([start(), *[c for _ in range(100) for c in (event("ping"), 0.05)]])
    began = time.monotonic()
    got, _ = await asked(slow, slow, slow, total=0.3)
    assert failure(got).kind is F.STREAM_DROPPED and time.monotonic() - began < 3


async def test_the_seconds_of_the_budget_end_a_call() -> None:
    slow = Answer([start(), *block(["half"]), 30.0])
    began = time.monotonic()
    got, _ = await asked(slow, meter=Meter(ModelBudget(seconds=0.3)))
    assert failure(got).kind is F.BUDGET and failure(got).text == "half"
    assert time.monotonic() - began < 1.3


async def test_without_a_key_or_for_too_little_money_nothing_is_sent() -> None:
    async with serving(text("x")) as server:
        keyless = AnthropicModel(AnthropicSettings(NAME, server.url), {NAME: PRICE}, Meter(), lambda: None)
        assert failure(await keyless.ask(REQUEST)).kind is F.NO_KEY
        # One call can cost (2031 * 4 + 1000 * 15) / 1e6 = 0.023124 dollars.
        poor = Meter(ModelBudget(dollars=Decimal("0.023123")))
        assert failure(await model(server, poor).ask(REQUEST)).kind is F.BUDGET
        unknown = model(server, Meter(ModelBudget(dollars=Decimal(1))), price=None)
        assert failure(await unknown.ask(REQUEST)).kind is F.NO_PRICE
        assert server.bodies == []
        rich = Meter(ModelBudget(dollars=Decimal("0.023124")))
        assert reply(await model(server, rich).ask(REQUEST)).text == "x"


async def test_a_model_of_unknown_price_works_within_a_limit_of_tokens() -> None:
    meter = Meter(ModelBudget(tokens=10_000))
    async with serving(text("x")) as server:
        got = reply(await model(server, meter, price=None).ask(REQUEST))
    assert got.cost is None and meter.spent.tokens == 110


async def test_a_temperature_is_refused_and_a_secret_stays_here() -> None:
    hot = ModelRequest("", (Part(PartKind.BRIEF, "x"),), temperature=0.5)
    secret = ModelRequest("", (Part(PartKind.KERNEL, "int a;\n// AKIAIOSFODNN7EXAMPLE"),))
    async with serving(text("x")) as server:
        assert failure(await model(server).ask(hot)).kind is F.REJECTED
        held = failure(await model(server).ask(secret))
    assert held.kind is F.SECRET and "kernel, line 2: AWS Access Key" in held.reason and "AKIA" not in held.reason
    assert server.bodies == []


async def test_cancel_from_another_thread_ends_all_calls_within_a_second() -> None:
    meter = Meter()
    slow = [Answer([start(), *block(["half"]), 60.0]) for _ in range(3)]
    async with serving(*slow) as server:
        ours = model(server, meter)
        arrived = 0

        def seen(_: ModelProgress) -> None:
            nonlocal arrived, began
            arrived += 1
            if arrived == 3:
                began = time.monotonic()
                threading.Thread(target=ours.cancel).start()

        began = 0.0
        got = await asyncio.gather(*(ours.ask(REQUEST, seen) for _ in range(3)))
        assert time.monotonic() - began < 1
        assert {failure(g).kind for g in got} == {F.CANCELLED}
        assert {failure(g).text for g in got} == {"half"}
        assert sum(failure(g).cost or 0 for g in got) == meter.spent.dollars > 0
        assert failure(await ours.ask(REQUEST)).kind is F.CANCELLED  # and stays so
        await asyncio.sleep(0.1)
        assert server.open == 0


async def test_a_cancelled_wait_for_the_next_attempt_keeps_what_failed() -> None:
    async with serving(error(429, "rate_limit_error", retry_after="4")) as server:
        ours = model(server)
        task = asyncio.create_task(ours.ask(REQUEST, lambda p: ours.cancel() if p.waiting else None))
        got = failure(await asyncio.wait_for(task, 1))
    assert got.kind is F.CANCELLED and got.retries[0].kind is F.RATE_LIMITED


async def test_cancelling_the_task_closes_the_connection_and_counts_the_cost() -> None:
    meter = Meter()
    async with serving(Answer([start(), *block(["half"]), 60.0])) as server:
        task: asyncio.Task[object] = asyncio.create_task(
            model(server, meter).ask(REQUEST, lambda _: asyncio.get_running_loop().call_soon(task.cancel) and None)
        )
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        await asyncio.sleep(0.1)
        assert server.open == 0
    assert meter.spent.dollars == Decimal(2031 * 4 + 1000 * 15) / 1_000_000


def test_no_thread_is_left_over() -> None:
    before = set(threading.enumerate())
    got, _ = asyncio.run(asked(text("x")))
    assert reply(got).text == "x"
    assert set(threading.enumerate()) <= before


async def test_an_error_of_the_listener_is_not_taken_for_one_of_the_server() -> None:
    def broken(_: ModelProgress) -> None:
        raise ValueError("a bug of ours")

    async with serving(text("x")) as server:
        with pytest.raises(ValueError, match="a bug of ours"):
            await model(server).ask(REQUEST, broken)


@pytest.mark.parametrize("url", ["http://example.org", "ftp://x", "http://localhost.example.org", "example.org"])
def test_the_key_is_never_sent_in_the_clear(url: str) -> None:
    with pytest.raises(UsageError, match="https://"):
        AnthropicModel(AnthropicSettings(NAME, url), {}, Meter(), lambda: "k")

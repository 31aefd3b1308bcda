"""The Anthropic Messages API behind the port ``Model``: streamed, within a budget, with the retries that help."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from urllib.parse import urlsplit

import anthropic
import httpx2

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.model import FailureKind, ModelFailure, ModelProgress, ModelReply, ModelRequest, TokenUsage
from kernel_forge.llm.budget import Meter
from kernel_forge.llm.calls import Calls
from kernel_forge.llm.failures import EXPECTED, can_have_cost, failure_of
from kernel_forge.llm.key import find_key
from kernel_forge.llm.messages import MalformedEvent, StreamedAnswer, body_of, structured_of
from kernel_forge.llm.outgoing import Outgoing, outgoing
from kernel_forge.llm.prices import Price
from kernel_forge.llm.retry import RetryPolicy

_OVERHEAD = 2_000
"""Tokens that the provider adds to a prompt at most: the frame of the turns and its own words about tools."""

_CANCELLED = "the call was cancelled"


@dataclass(frozen=True, slots=True)
class AnthropicSettings:
    """How to reach the model. Nothing of this may come from a file of a workspace: it decides where the key goes.

    Attributes:
        base_url: https, or http to this machine itself.
        connect, idle, total: seconds to connect, between two pieces of an answer, and for one attempt.
    """

    model: str
    base_url: str = "https://api.anthropic.com"
    connect: float = 10.0
    idle: float = 90.0
    total: float = 600.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class AnthropicModel:
    """A ``Model`` (see ``ports``) of one job."""

    def __init__(
        self,
        settings: AnthropicSettings,
        prices: Mapping[str, Price],
        meter: Meter,
        key: Callable[[], str | None] = find_key,
    ) -> None:
        """Raises UsageError where the base URL would send the key in the clear."""
        url = urlsplit(settings.base_url)
        if url.scheme != "https" and (url.scheme != "http" or url.hostname not in ("localhost", "127.0.0.1", "::1")):
            raise UsageError(f"the address of the model must begin with https:// (it is {settings.base_url})")
        self._settings = settings
        self._price = prices.get(settings.model)
        self._meter = meter
        self._key = key
        self._calls = Calls()

    @property
    def name(self) -> str:
        """The model that is asked for."""
        return self._settings.model

    def preview(self, request: ModelRequest) -> str | ModelFailure:
        """See ``ports.Model``."""
        checked = self._checked(request)
        return checked.text if isinstance(checked, Outgoing) else checked

    async def ask(
        self, request: ModelRequest, progress: Callable[[ModelProgress], None] = lambda _: None
    ) -> ModelReply | ModelFailure:
        """See ``ports.Model``."""
        checked = self._checked(request)
        if isinstance(checked, ModelFailure):
            return checked
        key = self._key()
        if key is None:
            reason = "there is no key: set ANTHROPIC_API_KEY, or put it into the system's keyring"
            return ModelFailure(FailureKind.NO_KEY, reason, self.name)
        return await self._calls.run(self._attempts(checked.request, key, progress))

    def cancel(self) -> None:
        """See ``ports.Model``."""
        self._calls.cancel()

    def _checked(self, request: ModelRequest) -> Outgoing | ModelFailure:
        if request.temperature is not None:
            reason = "this provider takes no temperature (Messages API 2026-10-21); leave it out"
            return ModelFailure(FailureKind.REJECTED, reason, self.name)
        if not request.parts:
            return ModelFailure(FailureKind.REJECTED, "there is nothing to ask", self.name)
        return outgoing(request)

    async def _attempts(
        self, request: ModelRequest, key: str, progress: Callable[[ModelProgress], None]
    ) -> ModelReply | ModelFailure:
        failed: tuple[ModelFailure, ...] = ()
        while True:
            attempt = len(failed) + 1
            answer = await self._metered(request, key, attempt, progress)
            if isinstance(answer, ModelReply):
                return replace(answer, retries=failed)
            wait = self._settings.retry.wait(answer, attempt, self._meter.seconds_left())
            if wait is None:
                return replace(answer, retries=failed)
            failed = (*failed, answer)
            progress(ModelProgress(attempt, len(answer.text), waiting=f"{answer.kind.value}: again in {wait:.0f} s"))
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                if not self._calls.over:
                    raise
                return ModelFailure(FailureKind.CANCELLED, _CANCELLED, self.name, retries=failed)

    async def _metered(
        self, request: ModelRequest, key: str, attempt: int, progress: Callable[[ModelProgress], None]
    ) -> ModelReply | ModelFailure:
        """One attempt, reserved before and settled after, whatever ends it."""
        # No token is shorter than a byte.
        prompt = sum(len(text.encode()) for _, text in Outgoing(request).sections) + _OVERHEAD
        worst = None if self._price is None else self._price.worst(prompt, request.max_tokens)
        reservation = self._meter.reserve(worst, prompt + request.max_tokens)
        if isinstance(reservation, ModelFailure):
            return replace(reservation, model=self.name)
        dollars, tokens = worst, prompt + request.max_tokens  # what an attempt costs of which nothing more is known
        try:
            answer = await self._attempt(request, key, worst, attempt, progress)
            dollars = answer.cost
            if answer.usage is not None:
                tokens = answer.usage.total
            elif answer.cost == 0:
                tokens = 0
            return answer
        finally:
            self._meter.settle(reservation, dollars, tokens)

    async def _attempt(
        self,
        request: ModelRequest,
        key: str,
        worst: Decimal | None,
        attempt: int,
        progress: Callable[[ModelProgress], None],
    ) -> ModelReply | ModelFailure:
        started, answer, request_id = time.monotonic(), StreamedAnswer(), None
        left = self._meter.seconds_left()
        limit = self._settings.total if left is None else min(left, self._settings.total)
        try:
            async with asyncio.timeout(limit), self._client(key) as client:
                # The SDK's own accumulation completes cut JSON silently, so the events are read here.
                stream = await client.messages.create(model=self.name, stream=True, **body_of(request))
                async with stream:
                    request_id = stream.response.headers.get("request-id")
                    if not stream.response.headers.get("content-type", "").startswith("text/event-stream"):
                        raise MalformedEvent("what answered is no model: it does not stream events")
                    async for event in stream:
                        new = answer.add(event)
                        if new:
                            progress(ModelProgress(attempt, len(answer.written), new))
        except EXPECTED as error:
            failure = failure_of(error, request_id is not None or answer.usage is not None)
            most = worst if answer.usage is not None or can_have_cost(error) else Decimal(0)
            return self._lost(failure, answer, most, request_id)
        except asyncio.CancelledError:
            if not self._calls.over:
                raise
            return self._lost(ModelFailure(FailureKind.CANCELLED, _CANCELLED), answer, worst, request_id)
        except TimeoutError:
            over = left is not None and limit == left
            kind = FailureKind.BUDGET if over else FailureKind.STREAM_DROPPED
            whose = "that the budget had left" if over else "of one attempt"
            return self._lost(ModelFailure(kind, f"no end after the {limit:g} s {whose}"), answer, worst, request_id)
        except MalformedEvent as error:
            return self._lost(ModelFailure(FailureKind.MALFORMED, str(error)), answer, worst, request_id)
        return self._read(request, answer, worst, request_id, time.monotonic() - started)

    def _read(
        self,
        request: ModelRequest,
        answer: StreamedAnswer,
        worst: Decimal | None,
        request_id: str | None,
        seconds: float,
    ) -> ModelReply | ModelFailure:
        usage, stop = answer.usage, answer.stop_reason
        if usage is None or stop is None or not answer.complete:
            failure = ModelFailure(FailureKind.STREAM_DROPPED, "the answer broke off before its end")
            return self._lost(failure, answer, worst, request_id)
        kind, reason = _of_stop(stop, answer, request.max_tokens)
        structured = None
        if kind is None and request.answer is not None:
            try:
                structured = structured_of(answer, request.answer)
            except ValueError as error:
                kind, reason = FailureKind.MALFORMED, str(error)
        cost = self._cost(usage)
        if kind is not None:
            return ModelFailure(kind, reason, answer.model, request_id, usage, cost, answer.written)
        return ModelReply(answer.text, structured, stop, usage, cost, answer.model, request_id, seconds)

    def _lost(
        self, failure: ModelFailure, answer: StreamedAnswer, most: Decimal | None, request_id: str | None
    ) -> ModelFailure:
        """``failure`` with what had arrived, and the ``most`` it can have cost."""
        return replace(
            failure,
            model=self.name,
            request_id=failure.request_id or request_id,
            cost=most,
            text=answer.written,
        )

    def _cost(self, usage: TokenUsage) -> Decimal | None:
        return None if self._price is None else self._price.cost(usage)

    def _client(self, key: str) -> anthropic.AsyncAnthropic:
        settings = self._settings
        timeout = httpx2.Timeout(settings.idle, connect=settings.connect)
        return anthropic.AsyncAnthropic(
            api_key=key,
            base_url=settings.base_url,
            max_retries=0,  # ours are counted
            timeout=timeout,
            open_telemetry=False,  # tells nobody what is sent
            # A redirect would take the request to a server that nobody agreed to.
            http_client=anthropic.DefaultAsyncHttpxClient(timeout=timeout, follow_redirects=False),
        )


def _of_stop(stop: str, answer: StreamedAnswer, max_tokens: int) -> tuple[FailureKind | None, str]:
    match stop:
        case "end_turn" | "stop_sequence" | "tool_use":
            return None, ""
        case "max_tokens":
            return FailureKind.TRUNCATED, f"the answer did not end within {max_tokens} tokens"
        case "model_context_window_exceeded":
            return FailureKind.TRUNCATED, "the prompt and the answer are longer than the model can hold"
        case "refusal":
            return FailureKind.REFUSED, f"the model refused ({answer.refusal or 'no reason given'})"
        case _:
            return FailureKind.MALFORMED, f"the answer stopped for a reason we do not know ({stop})"

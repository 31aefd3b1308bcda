"""Our requests in the words of the Messages API, and its stream of events as an answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from anthropic.types import (
    CacheControlEphemeralParam,
    MessageDeltaUsage,
    MessageParam,
    RawMessageStreamEvent,
    TextBlockParam,
    ToolChoiceAutoParam,
    ToolParam,
    Usage,
)

from kernel_forge.domain.model import AnswerSchema, ModelRequest, TokenUsage

_CACHED: CacheControlEphemeralParam = {"type": "ephemeral"}


class Body(TypedDict, total=False):
    """The arguments of a call that come from a request."""

    max_tokens: int
    system: list[TextBlockParam]
    messages: list[MessageParam]
    tools: list[ToolParam]
    tool_choice: ToolChoiceAutoParam


def body_of(request: ModelRequest) -> Body:
    """The request as the API wants it; the cache ends with ``stable``, or with the system text where that is empty."""
    system: TextBlockParam = {"type": "text", "text": request.system}
    blocks: list[TextBlockParam] = [{"type": "text", "text": p.text} for p in (*request.stable, *request.parts)]
    (blocks[len(request.stable) - 1] if request.stable else system)["cache_control"] = _CACHED
    body: Body = {"max_tokens": request.max_tokens, "messages": [{"role": "user", "content": blocks}]}
    if request.system:
        body["system"] = [system]
    if request.answer is not None:
        answer = request.answer
        body["tools"] = [{"name": answer.name, "description": answer.description, "input_schema": dict(answer.schema)}]
        # Not forced: models from the generation of Sonnet 5.5 on refuse a request that forces a tool.
        body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return body


class MalformedEvent(Exception):
    """An event of the stream is not as the API describes it."""


@dataclass(slots=True)
class StreamedAnswer:
    """An answer while it arrives.

    Attributes:
        usage: None before the first event.
        stop_reason: None before the end.
        complete: the last event has come; without it the stream was cut.
        tools: by index of the block: the name of the tool called and its JSON so far.
    """

    model: str = ""
    text: str = ""
    usage: TokenUsage | None = None
    stop_reason: str | None = None
    refusal: str | None = None
    complete: bool = False
    tools: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, event: RawMessageStreamEvent) -> str:
        """Take in one event; returns what is new of the text or of the JSON.

        Raises:
            MalformedEvent: it is not as the API describes it.
        """
        try:
            return self._take(event)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            # The SDK makes events without checking them.
            raise MalformedEvent(f"an event of the answer is not as described: {error}") from error

    def _take(self, event: RawMessageStreamEvent) -> str:
        if event.type == "message_start":
            self.model, self.usage = str(event.message.model), _usage(event.message.usage, TokenUsage())
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.tools[event.index] = (event.content_block.name, "")
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            self.text += event.delta.text
            return event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            name, so_far = self.tools[event.index]
            self.tools[event.index] = (name, so_far + event.delta.partial_json)
            return event.delta.partial_json
        elif event.type == "message_delta":
            self.stop_reason = event.delta.stop_reason
            details = event.delta.stop_details
            self.refusal = None if details is None else details.explanation or details.category
            self.usage = _usage(event.usage, self.usage or TokenUsage())
        elif event.type == "message_stop":
            self.complete = True
        return ""

    @property
    def written(self) -> str:
        """All that arrived: the text, and the JSON of tools."""
        return "".join([self.text, *(so_far for _, so_far in self.tools.values())])


def structured_of(answer: StreamedAnswer, schema: AnswerSchema) -> Mapping[str, object]:
    """The structured answer.

    Raises:
        ValueError: it is missing or not what was asked for; the message says how, for a person and for the model.
    """
    if len(answer.tools) != 1:
        raise ValueError(f"{schema.name} was to be called once, and was called {len(answer.tools)} times")
    ((name, text),) = answer.tools.values()
    if name != schema.name:
        raise ValueError(f"{schema.name} was to be called, and {name} was")
    try:
        value: object = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise ValueError(f"the input of {name} is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(f"the input of {name} is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"the input of {name} is not an object")
    required = schema.schema.get("required")
    missing = [str(key) for key in required if key not in value] if isinstance(required, list | tuple) else []
    if missing:
        raise ValueError(f"the input of {name} lacks {', '.join(missing)}")
    return value


def _usage(said: Usage | MessageDeltaUsage, before: TokenUsage) -> TokenUsage:
    """Counts are totals so far; those that an event leaves out stay what they were."""

    def count(value: int | None, old: int) -> int:
        if value is None:
            return old
        if not isinstance(value, int) or value < 0:
            raise ValueError(f"{value!r} is no number of tokens")
        return value

    return TokenUsage(
        count(said.input_tokens, before.input),
        count(said.output_tokens, before.output),
        count(said.cache_creation_input_tokens, before.cache_write),
        count(said.cache_read_input_tokens, before.cache_read),
    )

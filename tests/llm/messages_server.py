"""A server on this machine that speaks the Messages API as far as the adapter needs it, from a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Chunk = bytes | float  # a float is a pause in seconds

EVENTS = "text/event-stream; charset=utf-8"


@dataclass
class Answer:
    """One answer: status, headers and what follows; ``cut`` drops the connection in the middle of the body."""

    chunks: Sequence[Chunk]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = EVENTS
    cut: bool = False


@dataclass
class Server:
    url: str
    bodies: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    open: int = 0


def event(kind: str, **data: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def start(model: str = "claude-sonnet-5-5", **usage: int) -> bytes:
    counts = {"input_tokens": 100, "output_tokens": 1, **usage}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    return event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": counts})


def end(stop: str, output: int = 10, **delta: object) -> bytes:
    changed = {"stop_reason": stop, "stop_sequence": None, **delta}
    return event("message_delta", delta=changed, usage={"output_tokens": output}) + event("message_stop")


def block(pieces: Sequence[str], index: int = 0, tool: str | None = None) -> list[bytes]:
    kind, name = ("input_json_delta", "partial_json") if tool else ("text_delta", "text")
    first = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}} if tool else {"type": "text", "text": ""}
    return [
        event("content_block_start", index=index, content_block=first),
        *(event("content_block_delta", index=index, delta={"type": kind, name: piece}) for piece in pieces),
        event("content_block_stop", index=index),
    ]


def text(*pieces: str, stop: str = "end_turn", output: int = 10, **usage: int) -> Answer:
    return Answer([start(**usage), event("ping"), *block(pieces), end(stop, output)])


def tool(*pieces: str, name: str = "give", stop: str = "tool_use", output: int = 10) -> Answer:
    return Answer([start(), *block(pieces, tool=name), end(stop, output)])


def error(status: int, kind: str, **headers: str) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": f"{kind} it is"}, "request_id": "req_e"}
    return Answer([json.dumps(body).encode()], status, headers, "application/json")


@asynccontextmanager
async def serving(*script: Answer) -> AsyncIterator[Server]:
    """Answers the requests in order; one request more than there are answers is a failure of the test (HTTP 418)."""
    answers = iter(script)
    tasks: set[asyncio.Task[None]] = set()
    server = Server("")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        server.open += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            assert first == "POST /v1/messages HTTP/1.1"
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
            server.bodies.append(json.loads(await reader.readexactly(int(headers["content-length"]))))
            server.headers.append(headers)
            await _write(writer, next(answers, Answer([], 418)), reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            server.open -= 1
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def _write(writer: asyncio.StreamWriter, answer: Answer, reader: asyncio.StreamReader) -> None:
    headers = {"content-type": answer.content_type, "request-id": "req_1", "connection": "close", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode())
    gone = asyncio.ensure_future(reader.read())  # ends when the client hangs up
    try:
        for chunk in answer.chunks:
            if isinstance(chunk, float):
                await asyncio.wait([gone], timeout=chunk)
                if gone.done():
                    return
                continue
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        if not answer.cut:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    finally:
        gone.cancel()

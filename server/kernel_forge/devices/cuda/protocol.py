"""What a GPU worker and its owner say to each other: frames over two byte streams.

A frame is ``b"KF"``, the lengths of header (4 bytes) and payload (8 bytes), big endian, a JSON object as header and
raw bytes as payload. Arrays travel in the payload, one after the other; their sizes are in the header. Nothing is
ever unpickled, so a remote worker is trusted with data only.

The worker sends ``hello`` first. The owner sends ``job`` frames, one at a time, and ``ping`` frames all the while;
the worker answers each job with exactly one ``result`` and sends ``alive`` frames all the while. Either side takes
the other for dead when it hears nothing for :data:`SILENCE_LIMIT` seconds or the stream ends.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

VERSION = 8
BEAT_SECONDS = 1.0
SILENCE_LIMIT = 15.0
_PREFIX = struct.Struct(">2sIQ")
_MAGIC = b"KF"
HEADER_LIMIT = 16 << 20
PAYLOAD_LIMIT = 256 << 30


class ProtocolError(Exception):
    """The bytes are no frame of ours: the other side is something else, or of another version."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: ``header["type"]`` names it."""

    header: Mapping[str, Any]
    payload: bytes | bytearray = field(default=b"", repr=False)

    @property
    def kind(self) -> str:
        """The value of ``type``."""
        return str(self.header.get("type"))

    def arrays(self, sizes: Iterable[int]) -> list[memoryview]:
        """The payload cut into parts of ``sizes`` bytes.

        Raises:
            ProtocolError: the sizes do not add up to the payload.
        """
        whole = memoryview(self.payload)
        parts, start = [], 0
        for size in sizes:
            if not isinstance(size, int) or size < 0:
                raise ProtocolError(f"a part of {size!r} bytes")
            parts.append(whole[start : start + size])
            start += size
        if start != len(whole):
            raise ProtocolError(f"{len(whole)} bytes of payload where {start} were announced")
        return parts


def write_frame(stream: IO[bytes], header: Mapping[str, Any], payload: Iterable[bytes | memoryview] = ()) -> None:
    """Write one frame and flush. Not safe for several threads: the caller locks.

    Raises:
        OSError: the stream is closed.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    parts = [memoryview(part).cast("B") for part in payload]
    stream.write(_PREFIX.pack(_MAGIC, len(text), sum(len(part) for part in parts)) + text)
    for part in parts:
        stream.write(part)
    stream.flush()


def read_frame(stream: IO[bytes], heard: Callable[[], None] = lambda: None) -> Frame | None:
    """The next frame; None where the stream ends between two frames.

    ``heard`` is called for every part that arrives: a large frame over a slow line is no silence.

    Raises:
        ProtocolError: these are not frames of ours, or the stream ends within one.
    """
    prefix = stream.read(_PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < _PREFIX.size or not prefix.startswith(_MAGIC):
        raise ProtocolError(f"this is no worker's frame, but other text, such as a login banner: {prefix!r}")
    _, header_size, payload_size = _PREFIX.unpack(prefix)
    if header_size > HEADER_LIMIT or payload_size > PAYLOAD_LIMIT:
        raise ProtocolError(f"a frame of {header_size} + {payload_size} bytes is beyond the limits")
    try:
        header = json.loads(_exactly(stream, header_size, heard))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header is not JSON: {error}") from None
    if not isinstance(header, dict) or "type" not in header:
        raise ProtocolError("the header has no type")
    return Frame(header, _exactly(stream, payload_size, heard))


def _exactly(stream: IO[bytes], size: int, heard: Callable[[], None]) -> bytearray:
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        count = stream.readinto1(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise ProtocolError("the stream ended within a frame")
        filled += count
        heard()
    return data

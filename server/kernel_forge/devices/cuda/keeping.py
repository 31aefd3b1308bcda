"""Arrays that travel to a worker once and are kept there for the jobs that follow.

A search times hundreds of configurations on the same inputs. An array that cannot change (it and all that it is a view
of are read-only) has a token; the owner notes which tokens its worker has, tells it which to forget, and sends nothing
for those that it still has. Frames arrive in order, so both sides always agree.
"""

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernel_forge.devices.cuda.protocol import Frame, ProtocolError

KEPT_BYTES = 2 << 30
"""What a worker keeps at most, in the memory of its host."""
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Part = bytes | memoryview

_numbers = itertools.count(1)
_tokens: dict[int, tuple[weakref.ref[Any], int]] = {}


def token_of(array: Array) -> int | None:
    """A number for the elements of an array that can never change; None for any other, and for a part of one."""
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        if owner.flags.writeable:
            return None
        owner = owner.base
    if owner.flags.writeable or not owner.flags.owndata or owner.nbytes != array.nbytes or not array.nbytes:
        return None
    if not array.flags.c_contiguous or not owner.flags.c_contiguous:
        return None
    key = id(owner)
    known = _tokens.get(key)
    if known is not None and known[0]() is owner:
        return known[1]
    number = next(_numbers)
    _tokens[key] = (weakref.ref(owner, lambda _: _tokens.pop(key, None)), number)
    return number


class Sent:
    """The owner's side: what its worker keeps, the least recently used first."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._held: OrderedDict[int, int] = OrderedDict()

    def reduced(self, header: Mapping[str, Any], payload: Sequence[Part]) -> tuple[Mapping[str, Any], list[Part]]:
        """The job without the parts that the worker still has: ``parts`` are then the sizes that are sent."""
        tokens: Sequence[int | None] | None = header.get("tokens")
        if tokens is None:
            return header, list(payload)
        wanted = {t: len(part) for t, part in zip(tokens, payload, strict=True) if t is not None}
        for token in wanted:
            if token in self._held:
                self._held.move_to_end(token)
        known = {token for token in wanted if token in self._held}
        keep: list[int] = []
        forget: list[int] = []
        for token, size in wanted.items():
            if token in known:
                continue
            while self._held and sum(self._held.values()) + size > self._limit:
                oldest = next(iter(self._held))
                if oldest in wanted:
                    break
                del self._held[oldest]
                forget.append(oldest)
            if sum(self._held.values()) + size <= self._limit:
                self._held[token] = size
                keep.append(token)
        sent: list[Part] = [b"" if t in known else part for t, part in zip(tokens, payload, strict=True)]
        more = {"parts": [len(part) for part in sent], "known": sorted(known), "keep": keep, "forget": forget}
        return {**header, **more}, sent


class Kept:
    """The worker's side; ``copied`` makes the copy that is kept, in memory that suits the worker."""

    def __init__(self, copied: Callable[[memoryview], Part] = bytes) -> None:
        self._copied = copied
        self._held: dict[int, Part] = {}

    def parts(self, frame: Frame) -> list[memoryview]:
        """The parts of a job, those that were kept from earlier ones among them.

        Raises:
            ProtocolError: the job counts on a part that is not here.
        """
        header = frame.header
        parts = frame.arrays(header["parts"])
        tokens = header.get("tokens")
        if tokens is None:
            return parts
        for token in header["forget"]:
            self._held.pop(token, None)
        known, keep = set(header["known"]), set(header["keep"])
        for number, token in enumerate(tokens):
            if token in known:
                if token not in self._held:
                    raise ProtocolError(f"part {token} was never sent, or was forgotten")
                parts[number] = memoryview(self._held[token])
            elif token in keep:
                # Copied: a view would keep the whole payload of its job.
                self._held[token] = self._copied(parts[number])
                parts[number] = memoryview(self._held[token])
        return parts

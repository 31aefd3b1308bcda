"""A search for another process, which asks and tells over two streams. It need not import more than searching needs.

What passes are pickles of our own, on pipes that nobody else has: first the arguments of :func:`begin_search`, then
``(method, *arguments)`` of the search. Only ``ask`` is answered, with the length of the pickle before it
(:data:`LENGTH` bytes, little-endian).
"""

import contextlib
import pickle
import sys
from collections.abc import Iterator
from typing import IO, Any

from kernel_forge.search import Search, begin_search

LENGTH = 4


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Search until the requests end. What fails is told to whoever asks next, in place of a proposal."""
    search: Search | None = None
    failed: Exception | None = None
    for method, *arguments in _messages(requests):
        answer: object = None
        try:
            if search is None:
                search = begin_search(method, *arguments)
            else:
                answer = getattr(search, method)(*arguments)
        except Exception as error:
            failed = failed or error
        if method == "ask":
            made = pickle.dumps(failed or answer, pickle.HIGHEST_PROTOCOL)
            answers.write(len(made).to_bytes(LENGTH, "little") + made)
            answers.flush()
            failed = None


def _messages(pipe: IO[bytes]) -> Iterator[tuple[Any, ...]]:
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(pipe)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # whoever asked has ended
        serve(sys.stdin.buffer, sys.stdout.buffer)

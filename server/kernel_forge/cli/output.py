"""Standard output that may be closed before we are done (``kernel-forge ... | head``)."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def may_be_closed() -> Iterator[None]:
    """Print inside this: a reader that has gone away is no error and changes no exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would raise again when the interpreter ends.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def warn(message: str) -> None:
    """One line on standard error."""
    print(f"kernel-forge: {message}", file=sys.stderr)


class ReportConsole(Console):
    """A console that leaves a closed output to :func:`may_be_closed`."""

    def on_broken_pipe(self) -> None:
        """Go on raising, where rich would end the process."""
        raise BrokenPipeError

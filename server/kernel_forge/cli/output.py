"""Standard output that may be closed before we are done, full, or unable to show our characters."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from kernel_forge.domain.errors import UsageError
from kernel_forge.views.sparkline import BLOCKS


def prepare_streams() -> None:
    """Make the standard streams usable: a closed one leads to nothing, and what one cannot encode is escaped."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Filled in the order of the numbers, so that no file of ours gets one of theirs.
            _lead_to_nothing(number)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _lead_to_nothing(number: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing != number:
        os.dup2(nothing, number)
        os.close(nothing)


@contextmanager
def may_be_closed() -> Iterator[None]:
    """Print inside this: a reader that has gone away is no error and changes no exit code.

    Raises:
        UsageError: the output cannot be written for another reason.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would raise again when the interpreter ends.
        _lead_to_nothing(sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"the output cannot be written: {error.strerror or error}") from error


def warn(message: str) -> None:
    """One line on standard error, which may be closed or full as well."""
    try:
        print(f"kernel-forge: {message}", file=sys.stderr, flush=True)
    except OSError:
        _lead_to_nothing(sys.stderr.fileno())


def can_show_blocks(encoding: str | None) -> bool:
    """Whether an output of that encoding has the characters of a sparkline."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class ReportConsole(Console):
    """A console that leaves a closed output to :func:`may_be_closed`."""

    def on_broken_pipe(self) -> None:
        """Go on raising, where rich would end the process."""
        raise BrokenPipeError

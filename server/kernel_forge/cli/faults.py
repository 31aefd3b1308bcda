"""What a command did not foresee, as a fault of ours: one message and exit code 70, not a traceback and 1."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel_forge.domain.errors import InternalError, KernelForgeError


@contextmanager
def faults_are_ours() -> Iterator[None]:
    """Do a command inside this.

    Raises:
        InternalError: in place of anything that was not raised on purpose; it says what and where.
    """
    try:
        yield
    except KernelForgeError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = str(error).strip().split("\n", 1)[0][:200]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise InternalError(f"{type(error).__name__}{f': {said}' if said else ''} ({place})") from error

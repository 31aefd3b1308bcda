"""Replacing the text of a file so that at every moment either the old or the new text is there, whole."""

import contextlib
import os
import tempfile
from pathlib import Path

from kernel_forge.domain.errors import UsageError


def replace_text(path: Path, text: str) -> None:
    """Give the file at ``path`` (the target, where that is a link) the ``text``, in UTF-8; its mode is kept.

    Raises:
        UsageError: it cannot be written; the old text is still there.
    """
    target = Path(os.path.realpath(path))
    private: str | None = None
    try:
        if not os.access(target, os.W_OK):  # a rename would ask the folder only
            raise PermissionError(0, "the file is not writable")
        status = target.stat()
        descriptor, private = tempfile.mkstemp(prefix=".kernel-forge-", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            with contextlib.suppress(OSError):  # another's file: then it becomes ours, as with most editors
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(file.fileno(), status.st_mode & 0o7777)
            os.fsync(file.fileno())
        os.replace(private, target)  # noqa: PTH105 (Path.replace, said with both names)
        private = None
    except OSError as error:
        raise UsageError(f"{path} is unchanged: it cannot be written: {error.strerror or error}") from error
    finally:
        if private is not None:
            with contextlib.suppress(OSError):
                os.unlink(private)  # noqa: PTH108

"""Writing a file so that at every moment either the old or the new text is there, whole."""

import contextlib
import os
import tempfile
from pathlib import Path

from kernel_forge.domain.errors import UsageError

_MODE = 0o644


def replace_text(path: Path, text: str) -> None:
    """Give the file at ``path`` (the target, where that is a link) the ``text``, in UTF-8; its mode is kept.

    Raises:
        UsageError: it cannot be written; the old text is still there.
    """
    target = Path(os.path.realpath(path))
    try:
        if not os.access(target, os.W_OK):  # a rename would ask the folder only
            raise PermissionError(0, "the file is not writable")
        write_whole(target, text, like=target.stat())
    except OSError as error:
        raise UsageError(f"{path} is unchanged: it cannot be written: {error.strerror or error}") from error


def write_whole(target: Path, text: str, like: os.stat_result | None = None) -> None:
    """Put ``text``, in UTF-8, at ``target``, with owner and mode as ``like`` has them.

    Raises:
        OSError: it cannot be written; what was there before is there still.
    """
    private: str | None = None
    try:
        descriptor, private = tempfile.mkstemp(prefix=".kernel-forge-", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            if like is not None:
                with contextlib.suppress(OSError):  # another's file: then it becomes ours, as with most editors
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
            os.fchmod(file.fileno(), _MODE if like is None else like.st_mode & 0o7777)
            os.fsync(file.fileno())
        os.replace(private, target)  # noqa: PTH105 (Path.replace, said with both names)
        private = None
    finally:
        if private is not None:
            with contextlib.suppress(OSError):
                os.unlink(private)  # noqa: PTH108

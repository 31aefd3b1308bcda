"""Writing a file so that at every moment either the old or the new text is there, whole."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from kernel_forge.domain.errors import UsageError

_MODE = 0o644
_BEGINNING = 4096
"""Characters that tell whose file it is."""


def check_output(path: Path, option: str, what: str, is_ours: Callable[[str], bool]) -> None:
    """Refuse to write ``what`` over anything else; ``is_ours`` says it of the beginning of a text. Links are followed.

    Raises:
        UsageError: there is another file, no folder for it, or it cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise UsageError(f"{option} {path}: it is a folder; name a file")
        if not target.parent.is_dir():
            raise UsageError(f"{option} {path}: it cannot be written: the folder {target.parent} does not exist")
        exists = target.exists()
        beginning = None
        if exists and target.is_file():
            with target.open(encoding="utf-8", errors="replace") as file:
                beginning = file.read(_BEGINNING)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {path}: {getattr(error, 'strerror', None) or error}") from None
    if exists and (beginning is None or not is_ours(beginning)):
        raise UsageError(f"{option} {path}: that is there already and is no {what}: it is left as it is")
    if not os.access(target if exists else target.parent, os.W_OK):
        raise UsageError(f"{option} {path}: it cannot be written")


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

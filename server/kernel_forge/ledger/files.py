"""The ledger's folder and the connections to its file.

Why ``synchronous=NORMAL``: in WAL mode a committed transaction is in the operating system's hands when COMMIT returns,
so that it outlives the death of any process, ``kill -9`` included. A power failure may take the newest entries with
it, never the soundness of the rest; what a closed connection or an exported anchor has seen is on the disk. With
``FULL`` every trial of a search would wait for the disk (4 ms against 0.03 ms on the machine this was decided on).
"""

import contextlib
import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.ledger.project import FOLDER
from kernel_forge.ledger.schema import make_ready

NAME = "ledger.sqlite"
BUSY_SECONDS = 10.0


def ledger_file(project: Path) -> Path:
    """Where the ledger of ``project`` is."""
    return project / FOLDER / NAME


def write_ahead_file(file: Path) -> Path:
    """Where SQLite keeps what is not in the ledger's ``file`` itself yet."""
    return file.with_name(f"{file.name}-wal")


def make_folder(file: Path) -> None:
    """Make the folder of ``file``, with a ``.gitignore`` by which version control passes over all of it.

    Raises:
        OSError: as from the system.
    """
    file.parent.mkdir(exist_ok=True)
    if not file.exists():
        with contextlib.suppress(FileExistsError), (file.parent / ".gitignore").open("x", encoding="utf-8") as ignore:
            ignore.write("# Kernel Forge keeps what it knows of this machine's runs here.\n*\n")


def open_for_writing(file: Path) -> sqlite3.Connection:
    """A connection to a ledger of the present version, made where there is none.

    Raises:
        LedgerUnavailable, sqlite3.Error: it cannot be used.
    """
    connection = _connect(file, "mode=rwc")
    try:
        _write_ahead(connection, file)
        connection.execute("PRAGMA synchronous = NORMAL")
        make_ready(connection, str(file))
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(file: Path) -> sqlite3.Connection:
    """A connection to a ledger that is there; works in a folder that cannot be written, too.

    Raises:
        LedgerUnavailable, sqlite3.Error: it cannot be used.
    """
    connection = _connect(file, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        waiting = write_ahead_file(file)
        if os.access(file.parent, os.W_OK) or (waiting.exists() and waiting.stat().st_size > 0):
            raise
        # SQLite wants a file beside it for readers of a WAL database. Nobody can write here, so none is needed.
        connection = _connect(file, "immutable=1")
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_special(file: Path) -> None:
    """Refuse a ledger, or a file that SQLite keeps beside it, that is a pipe or a device: to open one may never end.

    Raises:
        LedgerUnavailable: it is refused.
    """
    for each in (file, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm", "journal"))):
        try:
            mode = each.stat().st_mode
        except OSError:
            continue  # not there, or not to be looked at: opening it says why
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # SQLite says of a folder that it is none of its files
            raise LedgerUnavailable(f"{each} is no regular file; move it away")


def _connect(file: Path, how: str) -> sqlite3.Connection:
    refuse_special(file)
    connection = sqlite3.connect(
        f"{file.as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _harden(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _harden(connection: sqlite3.Connection) -> None:
    # Text that is none shall be found by its hash and not end the reading.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    # The file may come with a project from anywhere: its schema must not call functions, its pages are checked.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _write_ahead(connection: sqlite3.Connection, file: Path) -> None:
    """Go to WAL mode. SQLite does not wait for others there, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise LedgerUnavailable(f"{file} lies on a file system that SQLite's write-ahead log cannot be used on")
        return


def claim_file(file: Path) -> Callable[[], None] | None:
    """Lock ``file``, made for it, until what is returned is called or the process ends; None where another has it.

    Whoever lets go removes the file. One that is left is of a process that was killed.

    Raises:
        OSError: as from the system.
    """
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, descriptor):
                return partial(_release, file, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # it was removed between opening and locking: others would not find this lock


def _release(file: Path, descriptor: int) -> None:
    # Removed before the lock is let go of, so that nobody can lock a file that is about to lose its name.
    with contextlib.suppress(OSError):
        if _is_at(file, descriptor):
            file.unlink()
    os.close(descriptor)


def _is_at(file: Path, descriptor: int) -> bool:
    """Whether ``file`` is still the name of what is open."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False

"""The ledger port on SQLite."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Anchor, Audit, BadEntry, Entry, Kind, Record, Selection, Subject, Unreadable
from kernel_forge.ledger.chain import GENESIS, Row, check, check_part, digest
from kernel_forge.ledger.files import (
    claim_file,
    ledger_file,
    make_folder,
    open_for_reading,
    open_for_writing,
    write_ahead_file,
)
from kernel_forge.ledger.queries import FIELDS, statement
from kernel_forge.ledger.rows import Lookup, checked_entry, content_of, entry_of, lookup_of
from kernel_forge.ledger.schema import TRIGGERS, triggers, version_of

_INSERT = (
    "INSERT INTO entries (number, content, previous, hash, kind, path, kernel, run, key) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ALL = "SELECT number, content, previous, hash, kind, path, kernel, run, key FROM entries NOT INDEXED ORDER BY number"
_PART = _ALL.replace("ORDER BY", "WHERE number BETWEEN ? AND ? ORDER BY")
# The second where SQLite's own message quotes what is not UTF-8.
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)


def _now() -> datetime:
    return datetime.now(UTC)


class SqliteLedger:
    """The ledger of one project, in ``.kernel-forge/ledger.sqlite`` of its folder; see the port for the contract.

    The first append makes the file. One connection stays open for writing until :meth:`close`.
    """

    def __init__(self, project: Path, clock: Callable[[], datetime] = _now) -> None:
        self.project = project
        self.file = ledger_file(project)
        self._clock = clock
        self._lock = threading.Lock()
        self._claimed: dict[int, str] = {}  # number of a search -> its hash
        self._writer: tuple[sqlite3.Connection, tuple[int, int]] | None = None

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    def append(self, record: Record) -> Entry:
        """Write ``record`` down; see the port."""
        subject = record.subject
        if subject is not None:
            record = replace(record, subject=self._within(subject))
        with self._lock, self._explained("written"):
            if record.run is not None and not self.file.exists():
                raise self._another(record.run)  # before a new ledger is made of it
            connection = self._for_writing()
            try:
                # IMMEDIATE: whoever reads the last hash is the only writer until its own entry is in.
                connection.execute("BEGIN IMMEDIATE")
                last = connection.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
                number, previous = (last[0] + 1, last[1]) if last is not None else (1, GENESIS)
                if record.run is not None:
                    self._refuse_strange(connection, record.run)
                try:
                    content = content_of(record, self._clock())
                    made = digest(number, previous, content)
                    entry = entry_of(number, content, previous, made)  # what could not be read is not written
                except ValueError as error:
                    raise LedgerUnavailable(f"{self.file} takes no such record: {error}") from None
                connection.execute(_INSERT, (number, content, previous, made, *lookup_of(content)))
                connection.execute("COMMIT")
            except BaseException:
                self._drop()  # rolls back
                raise
        return entry

    def entry(self, number: int) -> Entry | Unreadable | None:
        """The entry of that number, if there is one."""
        found = self._select(f"SELECT {FIELDS} FROM entries WHERE number = ?", (number,))
        return found[0] if found else None

    def entries(self, selection: Selection) -> tuple[Entry, ...]:
        """The entries of ``selection``, the newest first, without what is unreadable."""
        return _readable(self.listing(selection))

    def listing(self, selection: Selection) -> tuple[Entry | Unreadable, ...]:
        """The entries of ``selection``, the newest first."""
        path = selection.path
        if path is not None:
            selection = replace(selection, path=self._relative(path))
        return self._select(*statement(selection))

    def unfinished(self, key: str) -> tuple[Entry, ...]:
        """Searches of that key without an end, the newest first."""
        found = self._select(
            f"SELECT {FIELDS} FROM entries AS begun WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM entries "
            "AS other WHERE other.run = begun.number AND other.kind = ? AND other.number > begun.number) "
            "ORDER BY number DESC",
            (key, Kind.TUNE.value, Kind.TUNE_END.value),
        )
        return _readable(found)

    def claim(self, run: int) -> Callable[[], None] | None:
        """Claim a search; see the port. A lock on a file beside the ledger, which the system lets go of."""
        with self._explained("written"):
            let_go = claim_file(self.file.with_name(f"run-{run}.lock"))
        if let_go is None:
            return None
        try:
            self._claimed[run] = self._hash_of(run)
        except BaseException:
            let_go()
            raise

        def release() -> None:
            self._claimed.pop(run, None)
            let_go()

        return release

    def check(self, run: int) -> BadEntry | None:
        """Check the entries of a search; see the port. Those of others between them are checked as well."""
        with self._lock, self._explained("read"), self._for_reading() as (connection, _):
            last = connection.execute("SELECT max(number) FROM entries WHERE run = ? OR number = ?", (run, run))
            before = connection.execute("SELECT hash FROM entries WHERE number = ?", (run - 1,)).fetchone()
            rows = connection.execute(_PART, (run, last.fetchone()[0]))
            part = (
                Row(number, content, previous, made, Lookup(*lookup))
                for number, content, previous, made, *lookup in rows
            )
            return check_part(part, run, GENESIS if before is None else before[0])

    def audit(self, anchor: Anchor | None = None) -> Audit:
        """Check every entry; see the port. A file that SQLite cannot read is an altered one."""
        with self._lock, self._explained("read"):
            if not self.file.exists():
                return check((), anchor)
            rows = _Rows()
            try:
                with self._for_reading() as (connection, version):
                    if not version:
                        return check((), anchor)
                    found = check(rows.of(connection), anchor)
                    return replace(found, altered=tuple(_altered(connection)))
            except sqlite3.OperationalError:
                raise  # locked, or not ours to open: that says nothing about what is in it
            except _DAMAGE as error:
                return Audit(check((), None).anchor, BadEntry(rows.read + 1, f"cannot be read: {error}"))

    def settle(self) -> None:
        """Have everything that was written on the disk itself, where it outlives a power failure too."""
        with self._lock, self._explained("written"):
            waiting = write_ahead_file(self.file)
            if waiting.exists() and waiting.stat().st_size > 0:
                self._for_writing().execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def close(self) -> None:
        """Close the connection; the ledger can be used again."""
        with self._lock:
            self._drop()

    def _select(self, query: str, values: tuple[object, ...]) -> tuple[Entry | Unreadable, ...]:
        with self._lock, self._explained("read"):
            if not self.file.exists():
                return ()
            with self._for_reading() as (connection, version):
                # Version 0: another process is making it just now.
                rows = connection.execute(query, values).fetchall() if version else []
            return tuple(checked_entry(*row) for row in rows)

    def _hash_of(self, run: int) -> str:
        with self._lock, self._explained("read"):
            if not self.file.exists():
                raise self._another(run)
            with self._for_reading() as (connection, version):
                found = _search(connection, run) if version else None
        if found is None:
            raise self._another(run)
        return found

    def _refuse_strange(self, connection: sqlite3.Connection, run: int) -> None:
        """Refuse what belongs to a search that is not in this file: it was replaced since the search began."""
        found = _search(connection, run)
        if found is None or self._claimed.get(run, found) != found:
            raise self._another(run)

    def _another(self, run: int) -> LedgerUnavailable:
        return LedgerUnavailable(f"{self.file} was removed or replaced: run {run}, which began in it, is not there")

    def _for_writing(self) -> sqlite3.Connection:
        """The open connection; another one where the file is not the same any more."""
        if self._writer is not None:
            with contextlib.suppress(FileNotFoundError):
                if _identity(self.file) == self._writer[1]:
                    return self._writer[0]
            self._drop()
        make_folder(self.file)
        connection = open_for_writing(self.file)
        self._writer = connection, _identity(self.file)
        return connection

    @contextlib.contextmanager
    def _for_reading(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        connection = open_for_reading(self.file)
        try:
            yield connection, version_of(connection, self.place)
        finally:
            connection.close()

    def _drop(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(sqlite3.Error):
                self._writer[0].close()
            self._writer = None

    @contextlib.contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise LedgerUnavailable(f"{self.file} cannot be {verb}: {error}") from error
        except OSError as error:
            raise LedgerUnavailable(f"{self.file} cannot be {verb}: {error.strerror or error}") from error

    def _within(self, subject: Subject) -> Subject:
        files = {self._relative(path): digest for path, digest in subject.files.items()}
        return replace(subject, path=self._relative(subject.path), files=files)

    def _relative(self, path: str) -> str:
        whole = Path(path)
        if not whole.is_absolute():
            return path
        resolved = whole.resolve()
        return resolved.relative_to(self.project).as_posix() if resolved.is_relative_to(self.project) else path


class _Rows:
    """Every row in order, counting those that SQLite could give."""

    def __init__(self) -> None:
        self.read = 0

    def of(self, connection: sqlite3.Connection) -> Iterator[Row]:
        for number, content, previous, made, *lookup in connection.execute(_ALL):
            yield Row(number, content, previous, made, Lookup(*lookup))
            self.read += 1


def _readable(found: tuple[Entry | Unreadable, ...]) -> tuple[Entry, ...]:
    return tuple(entry for entry in found if isinstance(entry, Entry))


def _search(connection: sqlite3.Connection, run: int) -> str | None:
    """The hash of a search; None where the entry of that number is none."""
    query = "SELECT hash FROM entries WHERE number = ? AND kind = ?"
    found = connection.execute(query, (run, Kind.TUNE.value)).fetchone()
    return None if found is None else str(found[0])


def _altered(connection: sqlite3.Connection) -> Iterator[str]:
    if triggers(connection) != TRIGGERS:
        yield "the triggers that refuse changes are not as they were made"
    problems = [str(text) for (text,) in connection.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        yield f"the file is damaged: {'; '.join(problems)}"


def _identity(file: Path) -> tuple[int, int]:
    status = os.stat(file)  # noqa: PTH116
    return status.st_dev, status.st_ino

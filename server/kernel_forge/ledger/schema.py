"""The tables of a ledger, their version, and how an older one becomes the present one.

``user_version`` of the file is the version. A newer one is refused: what it means is not known here. An older one is
migrated step by step in one transaction; a step may add columns and indexes, and never touches what is hashed.
"""

import sqlite3
from collections.abc import Callable, Mapping

from kernel_forge.domain.errors import LedgerUnavailable

VERSION = 1
APPLICATION = 0x4B464C31  # "KFL1": that the file is a ledger at all

_TABLE = """CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  content TEXT NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL,
  kind TEXT NOT NULL,
  path TEXT,
  kernel TEXT,
  run INTEGER,
  key TEXT
) STRICT"""
_INDEXES = (
    "CREATE INDEX entries_of_kernel ON entries (path, kernel)",
    "CREATE INDEX entries_of_run ON entries (run) WHERE run IS NOT NULL",
    "CREATE INDEX entries_of_key ON entries (key) WHERE key IS NOT NULL",
)
TRIGGERS = {
    f"entries_no_{action.lower()}": (
        f"CREATE TRIGGER entries_no_{action.lower()} BEFORE {action} ON entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END"
    )
    for action in ("UPDATE", "DELETE")
}
Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: Mapping[int, Migration] = {}
"""Version -> the step from it to the next one; a key for every version below :data:`VERSION`."""


def make_ready(connection: sqlite3.Connection, place: str) -> None:
    """Make an empty file a ledger, and an older ledger one of the present version; several processes may at once.

    Raises:
        LedgerUnavailable: the file is something else, of a newer version, or its triggers are not ours.
        sqlite3.Error: as from SQLite.
    """
    if version_of(connection, place) != VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            _advance(connection, version_of(connection, place))  # another process may have been faster
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk ends it by itself
                connection.execute("ROLLBACK")
            raise
    if triggers(connection) != TRIGGERS:
        raise LedgerUnavailable(f"{place} has been altered and takes no more entries; kernel-forge audit says more")


def _advance(connection: sqlite3.Connection, version: int) -> None:
    if version == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for statement in (_TABLE, *_INDEXES, *TRIGGERS.values()):
            connection.execute(statement)
    else:
        for step in range(version, VERSION):
            MIGRATIONS[step](connection)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def version_of(connection: sqlite3.Connection, place: str) -> int:
    """The version of the file; 0 where it is empty.

    Raises:
        LedgerUnavailable: it is no ledger, or of a newer version.
    """
    version, application, tables = _facts(connection)
    if application != APPLICATION and (version or application or tables):
        raise LedgerUnavailable(f"{place} is no ledger of Kernel Forge; move it away")
    if version > VERSION:
        raise LedgerUnavailable(
            f"{place} is of version {version}, made by a newer Kernel Forge; this one knows up to {VERSION}: upgrade it"
        )
    return version


def triggers(connection: sqlite3.Connection) -> dict[str, str]:
    """The triggers of the file, name -> statement."""
    return dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())


def _facts(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Version, application and number of tables, all of one moment: another process may be making the ledger."""
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN")
    try:
        # The table first: it is what begins a transaction's view of the file.
        tables = _value(connection, "SELECT count(*) FROM sqlite_master")
        return _value(connection, "PRAGMA user_version"), _value(connection, "PRAGMA application_id"), tables
    finally:
        if own and connection.in_transaction:
            connection.execute("ROLLBACK")


def _value(connection: sqlite3.Connection, statement: str) -> int:
    (value,) = connection.execute(statement).fetchone()
    return int(value)

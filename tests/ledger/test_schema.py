"""Versions of the file: newer ones are refused, older ones migrated, other people's files left alone."""

import sqlite3
from pathlib import Path

import pytest

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Selection
from kernel_forge.ledger import SqliteLedger, schema
from tests.ledger.records import record, written


def set_version(file: Path, version: int) -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def version_of(file: Path) -> int:
    (version,) = sqlite3.connect(file).execute("PRAGMA user_version").fetchone()
    return int(version)


def test_a_newer_one_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    set_version(ledger.file, schema.VERSION + 1)
    before = ledger.file.read_bytes()
    for use in (lambda: ledger.append(record()), lambda: ledger.entries(Selection()), lambda: ledger.audit()):
        with pytest.raises(LedgerUnavailable, match=r"newer Kernel Forge.*upgrade"):
            use()
    assert ledger.file.read_bytes() == before


def test_an_older_one_is_migrated_and_stays_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = written(tmp_path, 2)
    anchor = ledger.audit().anchor
    first, second = schema.VERSION, schema.VERSION + 1
    steps = {
        first: lambda c: c.execute("ALTER TABLE entries ADD COLUMN note TEXT"),
        second: lambda c: c.execute("CREATE INDEX entries_of_note ON entries (note)"),
    }
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", second + 1)
    assert ledger.append(record()).number == 3
    ledger.close()
    assert version_of(ledger.file) == second + 1
    assert ledger.audit(anchor).is_sound


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = written(tmp_path, 2)
    old = schema.VERSION

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE entries ADD COLUMN note TEXT")
        connection.execute("no SQL")

    monkeypatch.setattr(schema, "MIGRATIONS", {old: fail})
    monkeypatch.setattr(schema, "VERSION", old + 1)
    with pytest.raises(LedgerUnavailable, match="syntax error"):
        ledger.append(record())
    monkeypatch.undo()
    assert version_of(ledger.file) == old
    assert ledger.append(record()).number == 3


def test_every_older_version_has_its_step() -> None:
    assert set(schema.MIGRATIONS) == set(range(1, schema.VERSION))


@pytest.mark.parametrize("statement", ["CREATE TABLE mine (a)", "PRAGMA user_version = 1", "PRAGMA application_id = 9"])
def test_a_file_of_somebody_else(tmp_path: Path, statement: str) -> None:
    ledger = SqliteLedger(tmp_path.resolve())
    ledger.file.parent.mkdir()
    connection = sqlite3.connect(ledger.file)
    connection.execute(statement)
    connection.close()
    with pytest.raises(LedgerUnavailable, match="no ledger of Kernel Forge"):
        ledger.append(record())
    with pytest.raises(LedgerUnavailable, match="no ledger of Kernel Forge"):
        ledger.entries(Selection())


def test_a_trigger_that_came_with_the_file_does_not_run(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    connection = sqlite3.connect(ledger.file)
    connection.execute(
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN INSERT INTO entries VALUES (9,9,9,9,9,9,9,9,9); END"
    )
    connection.close()
    with pytest.raises(LedgerUnavailable, match="altered"):
        ledger.append(record())

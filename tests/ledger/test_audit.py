"""Whatever is done to the rows, the first of them that it was done to is named."""

import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Anchor, Audit, Entry, Selection
from kernel_forge.ledger import SqliteLedger
from kernel_forge.ledger.chain import digest
from tests.ledger.records import record, tamper, written

COUNT = 6
COLUMNS = ("content", "previous", "hash", "kind", "path", "kernel", "key")
ALL = f"{', '.join(COLUMNS)}, run"
rows = st.integers(1, COUNT)


@cache
def original() -> tuple[bytes, Anchor, tuple[Entry, ...]]:
    """A ledger's file, its anchor and its entries."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = written(Path(folder), COUNT)
        audit = ledger.audit()
        assert audit == Audit(audit.anchor, None)
        assert audit.anchor.count == COUNT
        return ledger.file.read_bytes(), audit.anchor, ledger.entries(Selection())


def audits(change: Callable[[sqlite3.Connection], object]) -> tuple[Audit, Audit]:
    """What is said of a ledger after ``change``: without an anchor, and against that of before."""
    content, anchor, _ = original()
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger(Path(folder).resolve())
        ledger.file.parent.mkdir()
        ledger.file.write_bytes(content)
        tamper(ledger.file, change)
        return ledger.audit(), ledger.audit(anchor)


def first_bad(audit: Audit) -> int:
    assert audit.bad is not None
    assert audit.anchor.count == audit.bad.number - 1
    return audit.bad.number


@settings(deadline=None)
@given(row=rows, column=st.sampled_from(COLUMNS), at=st.integers(0, 10_000), byte=st.integers(1, 255))
def test_any_byte_of_any_row(row: int, column: str, at: int, byte: int) -> None:
    def change(connection: sqlite3.Connection) -> None:
        query = f"SELECT CAST({column} AS BLOB) FROM entries WHERE number = ?"
        raw = bytearray(connection.execute(query, (row,)).fetchone()[0])
        assume(raw[at % len(raw)] != byte)
        raw[at % len(raw)] = byte
        connection.execute(f"UPDATE entries SET {column} = CAST(? AS TEXT) WHERE number = ?", (bytes(raw), row))

    assert [first_bad(a) for a in audits(change)] == [row, row]


@settings(deadline=None)
@given(row=rows, value=st.one_of(st.none(), st.integers(-3, 9)))
def test_the_number_of_its_run(row: int, value: int | None) -> None:
    assume(value is not None)
    alone, _ = audits(lambda c: c.execute("UPDATE entries SET run = ? WHERE number = ?", (value, row)))
    assert first_bad(alone) == row


@settings(deadline=None)
@given(row=rows)
def test_a_deletion(row: int) -> None:
    alone, anchored = audits(lambda c: c.execute("DELETE FROM entries WHERE number = ?", (row,)))
    assert first_bad(anchored) == row
    if row < COUNT:
        assert first_bad(alone) == row
    else:
        assert alone.is_sound  # nothing in the file can tell; that is what anchors are for


@settings(deadline=None)
@given(row=rows)
def test_a_deletion_with_the_others_moved_up(row: int) -> None:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM entries WHERE number = ?", (row,))
        connection.execute("UPDATE entries SET number = -number WHERE number > ?", (row,))
        connection.execute("UPDATE entries SET number = -number - 1 WHERE number < 0")

    assert first_bad(audits(change)[1]) == row


@settings(deadline=None)
@given(kept=st.integers(0, COUNT - 1))
def test_a_truncation(kept: int) -> None:
    _, anchored = audits(lambda c: c.execute("DELETE FROM entries WHERE number > ?", (kept,)))
    assert first_bad(anchored) == kept + 1


@settings(deadline=None)
@given(pair=st.tuples(rows, rows).filter(lambda p: p[0] < p[1]))
def test_a_swap(pair: tuple[int, int]) -> None:
    def change(connection: sqlite3.Connection) -> None:
        one, other = pair
        connection.execute("UPDATE entries SET number = -1 WHERE number = ?", (one,))
        connection.execute("UPDATE entries SET number = ? WHERE number = ?", (one, other))
        connection.execute("UPDATE entries SET number = ? WHERE number = -1", (other,))

    assert [first_bad(a) for a in audits(change)] == [pair[0], pair[0]]


@settings(deadline=None)
@given(row=rows, whole=st.booleans())
def test_an_entry_written_anew_with_its_hash(row: int, whole: bool) -> None:
    """With the ``whole`` rest hashed anew as well, only an anchor tells, and names the entry all the same."""

    def change(connection: sqlite3.Connection) -> None:
        content = "SELECT content FROM entries WHERE number = ?"
        forged = connection.execute(content, (row,)).fetchone()[0].replace('"seed":7', '"seed":8')
        connection.execute("UPDATE entries SET content = ? WHERE number = ?", (forged, row))
        for number in range(row, COUNT + 1 if whole else row + 1):
            before = connection.execute("SELECT hash FROM entries WHERE number = ?", (number - 1,)).fetchone()
            previous = "0" * 64 if before is None else before[0]
            made = digest(number, previous, connection.execute(content, (number,)).fetchone()[0])
            connection.execute("UPDATE entries SET previous = ?, hash = ? WHERE number = ?", (previous, made, number))

    alone, anchored = audits(change)
    assert first_bad(anchored) == row
    if whole or row == COUNT:
        assert alone.is_sound
    else:
        assert first_bad(alone) == row


@settings(deadline=None)
@given(number=st.sampled_from([-5, 0, COUNT + 2]))
def test_an_entry_put_in(number: int) -> None:
    alone, _ = audits(
        lambda c: c.execute(f"INSERT INTO entries (number, {ALL}) SELECT ?, {ALL} FROM entries LIMIT 1", (number,))
    )
    assert first_bad(alone) == (1 if number < 1 else COUNT + 1)


@settings(deadline=None, max_examples=300)
@given(at=st.integers(0, 1 << 20), byte=st.integers(0, 255))
def test_a_byte_of_the_file(at: int, byte: int) -> None:
    """What the entries say has not changed, or the audit finds it: the file has parts that mean nothing."""
    content, anchor, entries = original()
    raw = bytearray(content)
    assume(raw[at % len(raw)] != byte)
    raw[at % len(raw)] = byte
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger(Path(folder).resolve())
        ledger.file.parent.mkdir()
        ledger.file.write_bytes(raw)
        try:
            sound = ledger.audit(anchor).is_sound
        except LedgerUnavailable:
            return
        if sound:
            assert ledger.entries(Selection()) == entries


def test_later_entries_are_no_trouble_for_an_anchor(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    anchor = ledger.audit().anchor
    ledger.append(record(3))
    assert ledger.audit(anchor).is_sound
    assert ledger.audit(anchor).anchor.count == 3


def test_a_ledger_that_is_gone(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    anchor = ledger.audit().anchor
    ledger.file.unlink()
    assert first_bad(ledger.audit(anchor)) == 1


def test_triggers_that_are_gone(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    connection = sqlite3.connect(ledger.file)
    connection.execute("DROP TRIGGER entries_no_update")
    connection.close()
    audit = ledger.audit()
    assert audit.bad is None
    assert not audit.is_sound
    assert "triggers" in audit.altered[0]
    with pytest.raises(LedgerUnavailable, match="altered"):
        ledger.append(record())


def test_what_is_no_database_any_more(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    ledger.file.write_bytes(b"x" * 5000)
    assert first_bad(ledger.audit()) == 1
    with pytest.raises(LedgerUnavailable, match="not a database"):
        ledger.append(record())

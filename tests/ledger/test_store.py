"""What is written is what is read, in the order it was written."""

import hashlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import BadEntry, Generation, Kind, Selection, likeness
from kernel_forge.ledger import SqliteLedger
from tests.ledger.records import PLATFORM, STARTED, record, subject, tamper, trial, written


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path.resolve())


def test_a_record_comes_back_as_it_went(ledger: SqliteLedger) -> None:
    generation = Generation("brief", "3", "00", "a-model", {"temperature": 0.5}, "11", 0.02)
    given = record(
        1,
        subject=subject(files={"src/k.h": "cd" * 32}),
        sizes={"n": 1000},
        measurement={"seconds": 1.5e-6, "low": 1.4e-6, "high": 1.6e-6},
        generation=generation,
        details={"skipped": {"a": "b"}, "checks": ["x"]},
    )
    entry = ledger.append(given)
    assert entry.record == given
    ledger.close()
    assert SqliteLedger(ledger.project).entry(1) == entry
    assert ledger.entry(2) is None


def test_the_chain_is_what_its_description_says(tmp_path: Path) -> None:
    """SHA-256 over number, previous hash and content, computed here from the raw rows."""
    ledger = written(tmp_path, 3)
    previous = "0" * 64
    rows = sqlite3.connect(ledger.file).execute("SELECT number, content, previous, hash FROM entries").fetchall()
    for at, (number, content, before, made) in enumerate(rows, 1):
        assert (number, before) == (at, previous)
        previous = hashlib.sha256(f"{at}\n{before}\n{content}".encode()).hexdigest()
        assert made == previous
        data = json.loads(content)
        assert content == json.dumps(data, sort_keys=True, separators=(",", ":"))


def test_times_are_utc(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path.resolve(), clock=lambda: datetime(2027, 1, 1, tzinfo=UTC))
    entry = ledger.append(record(started=STARTED.astimezone(timezone(timedelta(hours=5)))))
    (content,) = sqlite3.connect(ledger.file).execute("SELECT content FROM entries").fetchone()
    assert json.loads(content)["started"] == "2026-12-02T23:10:05.123456Z"
    assert json.loads(content)["recorded"] == "2027-01-01T00:00:00.000000Z"
    assert entry.recorded == datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="zone"):
        ledger.append(record(started=datetime(2027, 1, 1)))
    assert ledger.append(record()).number == 2  # the refused one left nothing behind


def test_no_number_that_json_has_not(ledger: SqliteLedger) -> None:
    with pytest.raises(ValueError, match="JSON"):
        ledger.append(record(seconds=float("nan")))
    assert ledger.entries(Selection()) == ()


def test_paths_are_those_of_the_project(ledger: SqliteLedger) -> None:
    inside = subject(str(ledger.project / "src" / "k.cu"), files={str(ledger.project / "a.h"): "00", "/usr/b.h": "11"})
    kept = ledger.append(record(subject=inside)).record.subject
    assert kept is not None
    assert kept.path == "src/k.cu"
    assert kept.files == {"a.h": "00", "/usr/b.h": "11"}
    outside = ledger.append(record(subject=subject("/elsewhere/k.cu"))).record.subject
    assert outside is not None
    assert outside.path == "/elsewhere/k.cu"


def test_a_name_that_is_no_text(ledger: SqliteLedger) -> None:
    name = str(ledger.project / "caf\udce9.cu")  # a Latin-1 byte in a file's name, as Python shows it
    entry = ledger.append(record(subject=subject(name)))
    assert [e.number for e in ledger.entries(Selection(path=name))] == [entry.number]
    assert ledger.audit().is_sound


def test_selections(ledger: SqliteLedger) -> None:
    given = (("a.cu", "k"), ("a.cu", "ns::k"), ("src/a.cu", "k"), ("src2/a.cu", "k_"), ("a.cu", "xk"))
    for path, kernel in given:
        ledger.append(record(subject=subject(path, kernel)))
    ledger.append(record(kind=Kind.TIME, subject=subject("a.cu", "k")))

    def numbers(**selection: object) -> list[int]:
        return [e.number for e in ledger.entries(Selection(**selection))]  # type: ignore[arg-type]

    assert numbers() == [6, 5, 4, 3, 2, 1]
    assert numbers(limit=2) == [6, 5]
    assert numbers(path="a.cu") == [6, 5, 2, 1]
    assert numbers(path=str(ledger.project / "src")) == [3]
    assert numbers(path=str(ledger.project)) == [6, 5, 4, 3, 2, 1]
    assert numbers(path="a.cu", kernel="k") == [6, 2, 1]
    assert numbers(kernel="ns::k") == [2]
    assert numbers(kinds=(Kind.TIME, Kind.TUNE)) == [6]
    assert numbers(kinds=(Kind.VERIFY,), kernel="k_") == [4]


def test_a_search_is_found_again_until_it_has_an_end(ledger: SqliteLedger) -> None:
    first = ledger.append(record(kind=Kind.TUNE))
    for block in (32, 64):
        ledger.append(trial(first.number, block))
    second = ledger.append(record(kind=Kind.TUNE))
    ledger.append(trial(second.number, 128))
    assert first.key is not None
    assert [e.number for e in ledger.unfinished(first.key)] == [second.number, first.number]
    of_first = ledger.entries(Selection(run=first.number, kinds=(Kind.TRIAL,)))
    assert [e.record.configuration["BLOCK"] for e in reversed(of_first)] == [32, 64]
    ledger.append(record(kind=Kind.TUNE_END, subject=None, platform=None, run=second.number))
    assert [e.number for e in ledger.unfinished(first.key)] == [first.number]


def test_the_key_tells_what_can_be_compared() -> None:
    alike = likeness(subject(), PLATFORM)
    assert likeness(subject(), PLATFORM) == alike
    assert likeness(subject(files={"k.h": "00"}), PLATFORM) != alike
    assert likeness(subject(kernel="j"), PLATFORM) != alike


def test_statements_that_change_entries_are_refused(tmp_path: Path) -> None:
    ledger = written(tmp_path, 2)
    connection = sqlite3.connect(ledger.file)
    for statement in ("UPDATE entries SET content = ''", "DELETE FROM entries WHERE number = 2"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            connection.execute(statement)


def test_the_folder_keeps_out_of_version_control(tmp_path: Path) -> None:
    ledger = written(tmp_path, 1)
    ignore = ledger.file.parent / ".gitignore"
    assert ignore.read_text().splitlines()[-1] == "*"
    ignore.write_text("mine\n")
    written(tmp_path, 1)
    assert ignore.read_text() == "mine\n"


def test_a_ledger_that_was_moved_away_is_begun_anew(ledger: SqliteLedger) -> None:
    """Not written on in a file that has no name any more."""
    ledger.append(record())
    ledger.append(record())
    for file in ledger.file.parent.glob("ledger*"):
        file.unlink()
    assert ledger.append(record()).number == 1
    assert len(SqliteLedger(ledger.project).entries(Selection())) == 1


def test_reading_makes_nothing(ledger: SqliteLedger) -> None:
    assert ledger.entries(Selection()) == ()
    assert ledger.entry(1) is None
    assert ledger.unfinished("00") == ()
    assert ledger.audit().is_sound
    assert not ledger.file.parent.exists()


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "[" * 100_000, '{"kind": "verify"}', "null"],
)
def test_content_that_is_none_of_ours(tmp_path: Path, content: str) -> None:
    ledger = written(tmp_path, 1)
    tamper(ledger.file, lambda c: c.execute("UPDATE entries SET content = ?", (content,)))
    with pytest.raises(LedgerUnavailable, match="none of ours"):
        ledger.entries(Selection())
    assert ledger.audit().bad == BadEntry(1, "was changed: its hash does not belong to it")


@pytest.mark.parametrize("field", ["basis", "outcome", "subject", "path", "platform", "flags", "measurement", "seed"])
def test_fields_of_another_type(tmp_path: Path, field: str) -> None:
    ledger = written(tmp_path, 1)
    place = {"path": "$.subject.path", "flags": "$.platform.flags"}.get(field, f"$.{field}")
    tamper(ledger.file, lambda c: c.execute("UPDATE entries SET content = json_set(content, ?, 1.5)", (place,)))
    with pytest.raises(LedgerUnavailable, match="none of ours"):
        ledger.entries(Selection())


def test_a_ledger_that_is_just_being_made_is_empty(tmp_path: Path) -> None:
    """SQLite makes the file before the transaction with the table is in it."""
    ledger = SqliteLedger(tmp_path.resolve())
    ledger.file.parent.mkdir()
    ledger.file.touch()
    assert ledger.entries(Selection()) == ()
    assert ledger.audit().is_sound
    assert ledger.append(record(1)).number == 1

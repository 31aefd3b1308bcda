"""What is written is what is read, in the order it was written."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import BadEntry, Entry, Generation, Kind, Selection, Unreadable, likeness
from kernel_forge.ledger import SqliteLedger
from tests.ledger.records import PLATFORM, STARTED, forge, record, subject, tamper, trial, written


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
    with pytest.raises(LedgerUnavailable, match="zone"):
        ledger.append(record(started=datetime(2027, 1, 1)))
    assert ledger.append(record()).number == 2  # the refused one left nothing behind


def test_no_number_that_json_has_not(ledger: SqliteLedger) -> None:
    with pytest.raises(LedgerUnavailable, match="JSON"):
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


def changed(ledger: SqliteLedger, change: Callable[[dict[str, Any]], object], number: int = 1) -> None:
    """The entry of that number as somebody leaves it who can write JSON that Python reads, NaN for one."""

    def rewrite(connection: sqlite3.Connection) -> None:
        ((content,),) = connection.execute("SELECT content FROM entries WHERE number = ?", (number,))
        data = json.loads(content)
        change(data)
        connection.execute("UPDATE entries SET content = ? WHERE number = ?", (json.dumps(data), number))

    tamper(ledger.file, rewrite)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "[" * 100_000, '{"kind": "verify"}', "null"],
)
def test_content_that_is_none_of_ours(tmp_path: Path, content: str) -> None:
    ledger = written(tmp_path, 2)
    tamper(ledger.file, lambda c: c.execute("UPDATE entries SET content = ? WHERE number = 1", (content,)))
    assert [type(e) for e in ledger.listing(Selection())] == [Entry, Unreadable]
    assert [e.number for e in ledger.entries(Selection())] == [2]
    assert isinstance(ledger.entry(1), Unreadable)
    assert ledger.audit().bad == BadEntry(1, "was changed: its hash does not belong to it")


@pytest.mark.parametrize("field", ["basis", "outcome", "subject", "path", "platform", "flags", "measurement", "seed"])
def test_fields_of_another_type(tmp_path: Path, field: str) -> None:
    ledger = written(tmp_path, 1)
    place = {"path": "$.subject.path", "flags": "$.platform.flags"}.get(field, f"$.{field}")
    tamper(ledger.file, lambda c: c.execute("UPDATE entries SET content = json_set(content, ?, 1.5)", (place,)))
    (found,) = ledger.listing(Selection())
    assert isinstance(found, Unreadable)
    assert place.removeprefix("$.") in found.reason


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


BEYOND = 10**400
"""An integer that no float can be."""


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Kind.TRIAL, {"details": {"seconds": [BEYOND]}}),
        (Kind.TRIAL, {"details": {"seconds": [float("nan")]}}),
        (Kind.TRIAL, {"details": {"seconds": [float("inf")]}}),
        (Kind.TRIAL, {"details": {"seconds": [True]}}),
        (Kind.TRIAL, {"details": {"seconds": [-1.0]}}),
        (Kind.TRIAL, {"details": {"seconds": 1.0}}),
        (Kind.TRIAL, {"configuration": {"BLOCK": [1]}}),
        (Kind.TRIAL, {"outcome": {"type": ["x"]}}),
        (Kind.TRIAL, {"outcome": {"type": "Failed", "message": [1]}}),
        (Kind.TUNE, {"seed": -1}),
        (Kind.TUNE, {"seed": BEYOND}),
        (Kind.TUNE, {"started": "0001-01-01T00:00:00"}),
        (Kind.TUNE, {"details": {"deep": deep(700)}}),
        (Kind.TUNE, {"details": {"cases": [{"n": "x"}]}}),
        (Kind.TUNE_END, {"details": {"cases": [{"n": BEYOND}]}}),
        (Kind.TUNE_END, {"details": {"speedup": {"value": BEYOND}}}),
        (Kind.TUNE_END, {"details": {"parameters": [1]}}),
        (Kind.TUNE_END, {"measurement": {"seconds": BEYOND}}),
        (Kind.TUNE_END, {"measurement": {"seconds": float("inf")}}),
        (Kind.TUNE_END, {"seconds": BEYOND}),
        (Kind.VERIFY, {"outcome": {"type": "Passed", "cases": BEYOND}}),
    ],
)
def test_values_that_we_never_write_are_unreadable(tmp_path: Path, kind: Kind, change: dict[str, Any]) -> None:
    ledger = written(tmp_path, 1)
    ledger.append(record(kind=Kind.TUNE))
    part = {"run": 2, "subject": None, "platform": None} if kind in (Kind.TRIAL, Kind.TUNE_END) else {}
    number = ledger.append(record(kind=kind, **part)).number
    assert isinstance(ledger.entry(number), Entry)
    forge(ledger.file, lambda entries: entries[number - 1].update(change))
    assert ledger.audit().is_sound
    assert isinstance(ledger.entry(number), Unreadable)
    assert [e.number for e in ledger.entries(Selection())] == [2, 1]


def test_a_record_that_could_not_be_read_is_not_written(ledger: SqliteLedger) -> None:
    for value in (BEYOND, float("nan"), float("inf")):
        with pytest.raises(LedgerUnavailable, match="takes no such record"):
            ledger.append(record(details={"value": value}))
    assert ledger.entries(Selection()) == ()
    assert ledger.append(record()).number == 1


@pytest.mark.parametrize("files", [{"a": 1, "b": "x"}, {"a": None}])
def test_digests_of_files_are_text(tmp_path: Path, files: dict[str, object]) -> None:
    ledger = written(tmp_path, 1)
    changed(ledger, lambda data: data["subject"].update(files=files))
    assert isinstance(ledger.entry(1), Unreadable)


def test_a_part_is_not_written_where_its_search_is_not(tmp_path: Path) -> None:
    ledger = written(tmp_path, 1)
    for run in (1, 2, 3):  # a verdict; itself; what is yet to come
        with pytest.raises(LedgerUnavailable, match=f"removed or replaced: run {run}, which began in it, is not there"):
            ledger.append(trial(run, 64))
    assert ledger.audit().anchor.count == 1


def test_a_part_is_not_written_into_a_ledger_that_took_the_place_of_its_own(ledger: SqliteLedger) -> None:
    run = ledger.append(record(kind=Kind.TUNE)).number
    release = ledger.claim(run)
    assert release is not None
    ledger.append(trial(run, 64))
    shutil.rmtree(ledger.file.parent)
    with pytest.raises(LedgerUnavailable, match="was removed or replaced"):
        ledger.append(trial(run, 128))
    assert not ledger.file.exists()
    other = SqliteLedger(ledger.project)
    assert other.append(record(kind=Kind.TUNE, seed=8)).number == run  # the same number, another search
    with pytest.raises(LedgerUnavailable, match="was removed or replaced"):
        ledger.append(trial(run, 128))
    assert len(other.entries(Selection())) == 1
    release()


def test_a_search_that_is_not_there_cannot_be_claimed(ledger: SqliteLedger) -> None:
    ledger.append(record())
    for run in (1, 2):
        with pytest.raises(LedgerUnavailable, match="is not there"):
            ledger.claim(run)
    assert [f.name for f in ledger.file.parent.glob("*.lock")] == []


def test_what_stands_before_a_search_does_not_belong_to_it(tmp_path: Path) -> None:
    """As older versions left it, where the ledger was removed during a search."""
    ledger = written(tmp_path, 1)
    ledger.append(record(kind=Kind.TUNE))
    changed(ledger, lambda data: data.update(kind="tune-end", run=2))
    columns = "UPDATE entries SET kind = 'tune-end', run = 2 WHERE number = 1"
    tamper(ledger.file, lambda c: c.execute(columns))
    (begun,) = ledger.entries(Selection(kinds=(Kind.TUNE,)))
    assert begun.key is not None
    assert ledger.entries(Selection(run=2)) == ()
    assert ledger.unfinished(begun.key) == (begun,)


def test_the_entries_of_a_search_are_checked(tmp_path: Path) -> None:
    """From its beginning to its last, by the hashes: what stands before and after is not looked at."""
    ledger = written(tmp_path, 2)
    run = ledger.append(record(kind=Kind.TUNE)).number
    for block in (32, 64):
        ledger.append(trial(run, block))
    ledger.append(record())
    assert ledger.check(run) is None
    changed(ledger, lambda data: data.update(seed=9), number=1)
    changed(ledger, lambda data: data.update(seed=9), number=6)
    assert ledger.check(run) is None
    changed(ledger, lambda data: data.update(configuration={"BLOCK": 33}), number=4)
    assert ledger.check(run) == BadEntry(4, "was changed: its hash does not belong to it")
    tamper(ledger.file, lambda c: c.execute("DELETE FROM entries WHERE number = 4"))
    assert ledger.check(run) == BadEntry(4, "is missing: entry 5 comes next")


def test_a_ledger_that_is_just_being_made_is_empty(tmp_path: Path) -> None:
    """SQLite makes the file before the transaction with the table is in it."""
    ledger = SqliteLedger(tmp_path.resolve())
    ledger.file.parent.mkdir()
    ledger.file.touch()
    assert ledger.entries(Selection()) == ()
    assert ledger.audit().is_sound
    assert ledger.append(record(1)).number == 1

"""Records to write, and a hand that tampers with what was written."""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_forge.domain.record import Kind, Platform, Record, Subject
from kernel_forge.ledger import SqliteLedger
from kernel_forge.ledger.chain import GENESIS, digest
from kernel_forge.ledger.rows import lookup_of
from kernel_forge.ledger.schema import TRIGGERS

STARTED = datetime(2026, 12, 2, 23, 10, 5, 123456, tzinfo=UTC)
PLATFORM = Platform("emulator", "emulated", "CUDA on the CPU", {"compiler": "g++ 12"}, "g++ 12", None, ("/inc",))


def subject(path: str = "src/k.cu", kernel: str = "k", **more: Any) -> Subject:
    return Subject(path, kernel, "ab" * 32, '// kernel = "k"', **more)


def record(number: int = 0, kind: Kind = Kind.VERIFY, **more: Any) -> Record:
    """A verdict; ``number`` makes it another one."""
    fields: dict[str, Any] = {
        "kind": kind,
        "basis": "emulated",
        "tool": "0.1.0",
        "started": STARTED,
        "outcome": {"type": "Passed", "cases": number},
        "subject": subject(),
        "platform": PLATFORM,
        "configuration": {"BLOCK": 64, "UNROLL": True, "SCALE": 0.1},
        "seed": 7,
        "seconds": 0.25,
    }
    return Record(**{**fields, **more})


def trial(run: int, block: int) -> Record:
    outcome = {"type": "Timed"}
    shared = {"subject": None, "platform": None, "run": run, "configuration": {"BLOCK": block}}
    return record(kind=Kind.TRIAL, outcome=outcome, measurement={"seconds": 1e-6 * block}, **shared)


def written(project: Path, count: int) -> SqliteLedger:
    """A ledger with ``count`` entries, all of them in its one file."""
    ledger = SqliteLedger(project.resolve())
    for number in range(1, count + 1):
        ledger.append(record(number))
    ledger.close()
    return ledger


def forge(file: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """``change`` the contents of all entries, in their order, and make the hashes anew as one who knows how would."""

    def rewrite(connection: sqlite3.Connection) -> None:
        contents = [json.loads(text) for (text,) in connection.execute("SELECT content FROM entries ORDER BY number")]
        change(contents)
        connection.execute("DELETE FROM entries")
        previous = GENESIS
        for number, data in enumerate(contents, 1):
            content = json.dumps(data, sort_keys=True, separators=(",", ":"))
            made = digest(number, previous, content)
            values = (number, content, previous, made, *lookup_of(content))
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            previous = made

    tamper(file, rewrite)


def tamper(file: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    """``change`` the file as somebody would who knows its format: the triggers are off meanwhile."""
    connection = sqlite3.connect(file)
    for name in TRIGGERS:
        connection.execute(f"DROP TRIGGER {name}")
    change(connection)
    for statement in TRIGGERS.values():
        connection.execute(statement)
    connection.commit()
    connection.close()

"""Runs of the editor are recorded like those of the command line."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_forge.domain.record import Entry, Selection
from kernel_forge.ledger import SqliteLedger
from tests.e2e.wire import Wire

WRONG = (Path(__file__).parent / "scale.cu").read_text(encoding="utf-8").replace("a * x[i];", "a + x[i];")


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setenv("KERNEL_FORGE_LEDGER", "on")
    with Wire(tmp_path / "log") as wire:
        wire.initialize()
        yield wire


def verified(wire: Wire, file: Path) -> None:
    """Save ``file`` and wait for its finding."""
    file.write_text(WRONG, encoding="utf-8")
    wire.open(file.as_uri(), WRONG)
    wire.save(file.as_uri())
    until(lambda: "KF301" in json.dumps(wire.received))


def until(test: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def entries(project: Path) -> tuple[Entry, ...]:
    return SqliteLedger(project.resolve()).entries(Selection())


def test_a_save_is_recorded(wire: Wire, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    verified(wire, project / "scale.cu")
    wire.end()
    (entry,) = entries(project)
    assert entry.record.outcome["type"] == "Mismatch"
    assert entry.record.basis == "emulated"
    assert entry.record.subject is not None
    assert entry.record.subject.path == "scale.cu"


def test_a_folder_that_cannot_be_written_is_told_once(wire: Wire, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".kernel-forge").write_text("")
    verified(wire, project / "scale.cu")
    wire.save((project / "scale.cu").as_uri())
    until(lambda: json.dumps(wire.received).count('"kind": "end"') == 2)
    wire.end()
    notes = [text for text in wire.shown() if "not recorded" in text]
    assert len(notes) == 1
    assert "KERNEL_FORGE_LEDGER=off" in notes[0]

"""A disk that does not take it: one error that says where and why, and what was there stays."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Selection
from kernel_forge.ledger import SqliteLedger
from tests.ledger.records import record, written

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
USE = """
import os, resource, sys
from pathlib import Path
from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Selection
from kernel_forge.ledger import SqliteLedger
from tests.ledger.records import record
ledger = SqliteLedger(Path(sys.argv[1]))
record()
{prepare}
print([e.number for e in ledger.entries(Selection())], flush=True)
ledger.settle()
try:
    for _ in range(100_000):
        ledger.append(record(details={"much": "x" * 5000}))
except LedgerUnavailable as error:
    print(error)
"""


def use(project: Path, prepare: str) -> list[str]:
    """What another process reads in the ledger, and the error it gets for writing; it does ``prepare`` before."""
    command = [sys.executable, "-c", USE.replace("{prepare}", prepare), str(project.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can get to, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


def test_a_folder_that_cannot_be_written(open_folder: Path) -> None:
    file = written(open_folder, 2).file
    file.chmod(0o444)
    for folder in (file.parent, open_folder):
        folder.chmod(0o555)
    try:
        seen, error = use(open_folder, f"if os.getuid() == 0: os.setresuid({NOBODY}, {NOBODY}, {NOBODY})")
    finally:
        for folder in (open_folder, file.parent):
            folder.chmod(0o755)
    assert seen == "[2, 1]"
    assert "ledger.sqlite cannot be written: " in error
    assert sorted(f.name for f in file.parent.iterdir()) == [".gitignore", "ledger.sqlite"]


def test_no_folder_can_be_made(tmp_path: Path) -> None:
    (tmp_path / ".kernel-forge").write_text("a file\n")
    ledger = SqliteLedger(tmp_path.resolve())
    with pytest.raises(LedgerUnavailable, match=r"ledger.sqlite cannot be written: "):
        ledger.append(record())
    assert ledger.entries(Selection()) == ()
    with pytest.raises(LedgerUnavailable, match="No such file"):
        SqliteLedger(tmp_path / "gone").append(record())


def test_a_full_disk(tmp_path: Path) -> None:
    """As a limit on the size of files: the system refuses a write in the middle, as a full disk does."""
    ledger = written(tmp_path, 1)
    seen, error = use(tmp_path, f"resource.setrlimit(resource.RLIMIT_FSIZE, ({1 << 20}, {1 << 20}))")
    assert seen == "[1]"
    assert "ledger.sqlite cannot be written: " in error
    audit = ledger.audit()
    assert audit.is_sound
    assert audit.anchor.count > 10
    assert ledger.append(record()).number == audit.anchor.count + 1


def test_after_trouble_the_same_ledger_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".kernel-forge").write_text("a file\n")
    ledger = SqliteLedger(tmp_path.resolve())
    with pytest.raises(LedgerUnavailable):
        ledger.append(record())
    (tmp_path / ".kernel-forge").unlink()
    assert ledger.append(record()).number == 1


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_ledger_that_is_a_pipe_is_refused(tmp_path: Path, end: str) -> None:
    """To open a pipe waits for somebody at its other end; the time limit is that of a hang, not of the machine."""
    ledger = written(tmp_path, 1)
    place = ledger.file.with_name(f"{ledger.file.name}{end}")
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    code = (
        "import sys; from pathlib import Path; from kernel_forge.domain.errors import LedgerUnavailable\n"
        "from kernel_forge.domain.record import Selection; from kernel_forge.ledger import SqliteLedger\n"
        "from tests.ledger.records import record; ledger = SqliteLedger(Path(sys.argv[1]))\n"
        "for use in (lambda: ledger.entries(Selection()), ledger.audit, lambda: ledger.append(record())):\n"
        "    try:\n        use()\n    except LedgerUnavailable as error:\n        print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=False)
    assert done.stdout.splitlines() == [f"{place} is no regular file; move it away"] * 3, done.stderr

"""``kernel-forge history`` and ``kernel-forge audit``, after runs as users make them."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.cli.audit import read_anchor
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.record import Kind
from tests.cli.test_cli import BAD, GOOD, write
from tests.ledger.records import forge as forge_ledger
from tests.ledger.records import record, subject, tamper, trial, written


@pytest.fixture(autouse=True)
def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNEL_FORGE_LEDGER", "on")
    monkeypatch.setenv("KERNEL_FORGE_CONFIG", str(tmp_path / "no-config.toml"))


def forge(cwd: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel_forge", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which two files were verified and one was timed."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_FORGE_LEDGER", "on")
        (root / ".git").mkdir()
        (root / "src").mkdir()
        write(root / "src" / "good.cu", GOOD)
        write(root / "src" / "bad.cu", BAD)
        assert forge(root, "verify", "src").returncode == 1
        done = forge(root, "time", "src/good.cu", "--device", "emulator", "--budget", "0.1", "--seed", "5")
        assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def project(verified: Path, tmp_path: Path) -> Path:
    """The same, to do anything with."""
    return Path(shutil.copytree(verified, tmp_path / "project"))


def test_every_run_is_listed_newest_first(verified: Path) -> None:
    done = forge(verified, "history")
    assert (done.returncode, done.stderr) == (0, "")
    newest, second, third = done.stdout.splitlines()
    assert "time      src/good.cu:k  ✓ " in newest
    assert "(emulated: CPU time of an emulation)" in newest
    assert "verify    src/good.cu:k  ✓ passed" in second
    assert "verify    src/bad.cu:k  ✗ wrong value: y[" in third
    assert all("(emulated" in line for line in (second, third))


def test_of_a_file_a_kernel_and_from_elsewhere(verified: Path, tmp_path: Path) -> None:
    def count(cwd: Path, *arguments: object) -> int:
        return len(json.loads(forge(cwd, "history", "--json", *arguments).stdout)["runs"])

    assert count(verified, "src/bad.cu") == 1
    assert count(verified, "src/good.cu:k") == 2
    assert count(verified, "src/good.cu:other") == 0
    assert count(verified / "src", "good.cu", "--limit", "1") == 1
    assert count(tmp_path, verified / "src") == 3
    assert count(tmp_path, "--project", verified / "src") == 3
    assert count(tmp_path) == 0
    assert f"no runs in {tmp_path}" in forge(tmp_path, "history").stdout
    # By the name of a kernel alone: of all files of the project that has one.
    assert count(verified, "k") == 3
    assert count(verified / "src", "k") == 3
    assert count(verified, "k", "--limit", "1") == 1
    said = forge(verified, "history", "nosuch").stdout
    assert said.startswith("no runs of a file or kernel nosuch (a kernel of one file is FILE:KERNEL) in ")


def test_a_file_that_is_gone_keeps_its_history(project: Path) -> None:
    (project / "src" / "bad.cu").unlink()
    for what in ("src/bad.cu", "src/bad.cu:k"):
        assert "src/bad.cu:k  ✗" in forge(project, "history", what).stdout


def test_one_run_in_full(verified: Path) -> None:
    text = forge(verified, "history", "3").stdout
    for part in ("run 3 of ", "n = 100", "seed       5", "emulator: ", "compiler ", 'kernel = "k"'):
        assert part in text
    assert "__global__" not in text  # the source is not kept
    missing = forge(verified, "history", "9")
    assert missing.returncode == 2
    assert "there is no run 9" in missing.stderr


def test_json_has_what_a_run_can_be_repeated_by(verified: Path) -> None:
    data = json.loads(forge(verified, "history", "1", "--json").stdout)
    assert data["schema"] == 1
    assert data["ledger"] == str(verified / ".kernel-forge" / "ledger.sqlite")
    (run,) = data["runs"]
    assert (run["run"], run["kind"], run["basis"]) == (1, "verify", "emulated")
    assert run["outcome"]["type"] == "Mismatch"
    assert run["configuration"] == {"BLOCK": 64}
    assert isinstance(run["seed"], int)
    assert run["platform"]["compiler"]
    assert BAD not in json.dumps(run)


def test_a_search_with_its_trials(tmp_path: Path) -> None:
    ledger = written(tmp_path, 1)
    run = ledger.append(record(kind=Kind.TUNE, basis="replayed", subject=subject())).number
    for block in (32, 64):
        ledger.append(trial(run, block))
    ledger.close()
    lines = forge(tmp_path, "history").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["2", "1"]  # trials are parts of a run
    shown = forge(tmp_path, "history", run).stdout
    assert "(replayed)" in shown
    assert [line.split()[0] for line in shown.splitlines() if "  trial  " in line] == ["3", "4"]


def test_an_audit_finds_the_entry_that_was_changed(project: Path, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor.json"
    done = forge(project, "audit", "--export-anchor", anchor)
    assert done.returncode == 0, done.stderr
    assert "✓" in done.stdout
    assert forge(project, "audit", "--anchor", anchor).returncode == 0
    file = project / ".kernel-forge" / "ledger.sqlite"
    passed = "replace(content, 'Mismatch', 'Passed')"
    tamper(file, lambda c: c.execute(f"UPDATE entries SET content = {passed} WHERE number = 1"))
    for arguments in ((), ("--anchor", anchor)):
        done = forge(project, "audit", *arguments)
        assert done.returncode == 1
        assert "entry 1 was changed" in done.stdout
    done = forge(project, "audit", "--export-anchor", tmp_path / "other.json")
    assert done.returncode == 1
    assert not (tmp_path / "other.json").exists()
    assert json.loads(forge(project, "audit", "--json").stdout)["bad"]["run"] == 1


def test_an_audit_finds_what_was_cut_off(project: Path, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor.json"
    forge(project, "audit", "--export-anchor", anchor)
    tamper(project / ".kernel-forge" / "ledger.sqlite", lambda c: c.execute("DELETE FROM entries WHERE number = 3"))
    assert forge(project, "audit").returncode == 0
    done = forge(project, "audit", "--anchor", anchor)
    assert done.returncode == 1
    assert "entry 3 is missing: there were 3" in done.stdout
    shutil.rmtree(project / ".kernel-forge")
    done = forge(project, "audit", "--anchor", anchor)
    assert done.returncode == 1
    assert "entry 1 is missing" in done.stdout


def test_an_anchor_replaces_only_an_anchor(project: Path, tmp_path: Path) -> None:
    source, ledger = project / "src" / "good.cu", project / ".kernel-forge" / "ledger.sqlite"
    link = tmp_path / "link.json"
    link.symlink_to(ledger)
    before = source.read_bytes(), ledger.read_bytes()
    for path in (source, ledger, link, project / ".kernel-forge" / "new.json"):
        done = forge(project, "audit", "--export-anchor", path)
        assert done.returncode == 2
        assert f"--export-anchor {path}: " in done.stderr
    assert (source.read_bytes(), ledger.read_bytes()) == before
    assert not (project / ".kernel-forge" / "new.json").exists()
    for _ in range(2):
        assert forge(project, "audit", "--export-anchor", tmp_path / "anchor.json").returncode == 0


def test_wrong_use(project: Path, tmp_path: Path) -> None:
    def refused(*arguments: object, part: str) -> None:
        done = forge(project, *arguments)
        assert done.returncode == 2
        assert part in done.stderr
        assert done.stdout == ""

    refused("audit", "--anchor", "none.json", part="none.json cannot be read: No such file")
    refused("audit", "--anchor", "src/good.cu", part="is no anchor")
    broken = {"kernel-forge anchor": 1, "count": 2, "hash": "0" * 64, "marks": "0" * 8}
    write(tmp_path / "broken.json", json.dumps(broken))
    refused("audit", "--anchor", tmp_path / "broken.json", part="is damaged")
    refused("audit", "--export-anchor", "/no/such/folder/a", part="the folder /no/such/folder does not exist")
    refused("history", "--limit", "-1", part="no integer from 0")
    for many in (2**63, "9" * 5000):  # SQLite counts to 2^63 - 1; Python reads 4300 digits
        assert "good.cu" in forge(project, "history", "--limit", many).stdout
    (tmp_path / "empty").mkdir()
    refused("audit", "--project", tmp_path / "empty", part="there is no ledger yet")
    sqlite3.connect(project / ".kernel-forge" / "ledger.sqlite").execute("PRAGMA user_version = 99").close()
    for command in ("audit", "history"):
        refused(command, part="made by a newer Kernel Forge")


def test_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "good.cu", GOOD)
    monkeypatch.setenv("KERNEL_FORGE_LEDGER", "off")
    assert forge(tmp_path, "verify", "good.cu").returncode == 0
    monkeypatch.delenv("KERNEL_FORGE_LEDGER")
    write(tmp_path / "no-config.toml", "[ledger]\nenabled = false\n")
    assert forge(tmp_path, "verify", "good.cu").returncode == 0
    assert not (tmp_path / ".kernel-forge").exists()


@pytest.mark.parametrize("trouble", ["a file in its place", "a newer version", "a setting"])
def test_a_ledger_in_trouble_gives_one_note_and_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    for name in ("a.cu", "b.cu"):
        write(tmp_path / name, BAD)
    if trouble == "a file in its place":
        write(tmp_path / ".kernel-forge", "")
    elif trouble == "a newer version":
        written(tmp_path, 1).close()
        sqlite3.connect(tmp_path / ".kernel-forge" / "ledger.sqlite").execute("PRAGMA user_version = 99").close()
    else:
        monkeypatch.setenv("KERNEL_FORGE_LEDGER", "maybe")
    done = forge(tmp_path, "verify", "a.cu", "b.cu")
    assert done.returncode == 1
    assert done.stdout.count("✗") == 2
    assert done.stderr.count("runs are not recorded") == 1
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"count": False},
        {"count": True, "marks": "0" * 8},
        {"count": 0.0},
        {"count": -1},
        {"kernel-forge anchor": True},
        {"kernel-forge anchor": 1.0},
        {"hash": "1" * 64},
    ],
)
def test_an_anchor_is_what_was_exported(tmp_path: Path, changed: dict[str, object]) -> None:
    """Booleans are integers to Python; an empty ledger has the hash of 64 zeros."""
    anchor = {"kernel-forge anchor": 1, "count": 0, "hash": "0" * 64, "marks": ""}
    path = tmp_path / "anchor.json"
    path.write_text(json.dumps(anchor))
    assert read_anchor(path).count == 0
    path.write_text(json.dumps({**anchor, **changed}))
    with pytest.raises(UsageError, match=r"is no anchor|is damaged"):
        read_anchor(path)


def test_what_is_unreadable_is_shown_as_that_and_hides_nothing(tmp_path: Path) -> None:
    """Hashes are right, values are none that we write: 10**400 is more than any float, JSON has no NaN."""
    (tmp_path / ".git").mkdir()
    ledger = written(tmp_path, 1)
    for _ in range(2):
        ledger.append(record(kind=Kind.TUNE, outcome={"type": "Begun"}))
    ledger.append(trial(2, 64))
    ledger.append(trial(2, 128))
    ended = {"type": "Tuned", "improved": True}
    ledger.append(record(kind=Kind.TUNE_END, outcome=ended, subject=None, platform=None, run=2))
    ledger.close()

    def write(entries: list[dict[str, Any]]) -> None:
        entries[2]["details"] = {"seconds": float("nan")}
        entries[3]["details"] = {"seconds": [10**400]}
        entries[5]["measurement"] = {"seconds": 10**400}

    forge_ledger(ledger.file, write)
    done = forge(tmp_path, "history")
    assert (done.returncode, done.stderr) == (0, "")
    third, second, first = done.stdout.splitlines()
    assert third == "   3  ? unreadable: NaN is no number of ours"
    assert "? ended, but entry 6, which says how, is unreadable (emulated)" in second
    assert "✓ passed" in first
    one = forge(tmp_path, "history", "2").stdout.splitlines()
    assert "? ended, but entry 6" in one[1]
    parts = [line for line in one if (line.startswith("   ") and "trial" in line) or "unreadable: " in line]
    assert [line.split()[0] for line in parts] == ["4", "5", "6"]
    assert "unreadable: 10000000000000000000 is no number of ours" in parts[0]
    assert forge(tmp_path, "history", "3").stdout.splitlines()[1] == "  ? unreadable: NaN is no number of ours"
    for arguments, runs in (((), [3, 2, 1]), (("2",), [2, 4, 5, 6]), (("3",), [3])):
        listed = json.loads(forge(tmp_path, "history", "--json", *arguments).stdout)["runs"]
        assert [each["run"] for each in listed] == runs
        assert [each["run"] for each in listed if "unreadable" in each] == [r for r in runs if r in (3, 4, 6)]
    assert forge(tmp_path, "audit").returncode == 0

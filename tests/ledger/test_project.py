"""Where a ledger lies, and whether runs are recorded at all."""

from pathlib import Path

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.ledger import is_recording, project_folder


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "compile_commands.json"])
def test_the_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    root = tmp_path.resolve()
    inner = root / "inner" / "src"
    inner.mkdir(parents=True)
    assert project_folder(inner / "k.cu") == inner  # none is marked: the file's own
    (root / ".git").mkdir(exist_ok=True)
    assert project_folder(inner / "k.cu") == root
    (root / "inner" / mark).mkdir()
    assert project_folder(inner / "k.cu") == root / "inner"
    assert project_folder(inner) == root / "inner"


def test_a_ledger_above_marks_no_project(tmp_path: Path) -> None:
    (tmp_path / ".kernel-forge").mkdir()
    (tmp_path / "inner").mkdir()
    assert project_folder(tmp_path / "inner" / "k.cu") == (tmp_path / "inner").resolve()


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "k.cu").touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "k.cu").symlink_to(tmp_path / "real" / "k.cu")
    assert project_folder(tmp_path / "linked" / "k.cu") == (tmp_path / "real").resolve()


@pytest.mark.parametrize(
    ("word", "file", "expected"),
    [
        (None, None, True),
        (None, "[ledger]\nenabled = false\n", False),
        (None, "[ledger]\nenabled = true\n", True),
        (None, "[devices.a]\ngpu = 1\n", True),
        ("off", None, False),
        ("OFF", "[ledger]\nenabled = true\n", False),
        ("on", "[ledger]\nenabled = false\n", True),
        ("0", None, False),
        ("off", "no TOML", False),
    ],
)
def test_turning_it_off(tmp_path: Path, word: str | None, file: str | None, expected: bool) -> None:
    config = tmp_path / "config.toml"
    if file is not None:
        config.write_text(file)
    environment = {} if word is None else {"KERNEL_FORGE_LEDGER": word}
    assert is_recording(environment, config) is expected


@pytest.mark.parametrize(
    ("word", "file", "part"),
    [
        ("maybe", "", "KERNEL_FORGE_LEDGER=maybe: write on or off"),
        (None, "[ledger]\nenabled = 1\n", "enabled is true or false"),
        (None, "[ledger]\non = true\n", "has one key"),
        (None, "ledger = 3\n", "has one key"),
        (None, "[", "config.toml"),
    ],
)
def test_what_cannot_be_understood(tmp_path: Path, word: str | None, file: str, part: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(file)
    with pytest.raises(UsageError, match=part):
        is_recording({} if word is None else {"KERNEL_FORGE_LEDGER": word}, config)

"""The key comes from the environment or the keyring."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernel_forge.llm.key import find_key


def test_the_environment_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda service, user: "of the ring"))
    assert find_key({"ANTHROPIC_API_KEY": " of the environment "}) == "of the environment"
    assert find_key({}) == find_key({"ANTHROPIC_API_KEY": " "}) == "of the ring"


def test_without_a_keyring_or_with_a_locked_one_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find_key({}) is None

    def locked(service: str, user: str) -> str:
        raise RuntimeError("locked")

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
    assert find_key({}) is None


def test_a_file_of_the_workspace_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=stolen")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find_key({}) is None

"""What a CUDA compiler said of an artifact, on disk: never believed when damaged."""

from pathlib import Path

import pytest

from kernel_forge.devices.emulator.opinions import recall, remember
from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location, Position, Range

MESSAGES = (
    CompilerMessage("warning", "é", Location("a b.cu", Range(Position(1, 2), Position(3, 4))), "NVRTC 13"),
    CompilerMessage("note", "two", None, "emulator"),
)


def test_an_opinion_is_remembered_for_its_judge_alone(tmp_path: Path) -> None:
    assert recall(tmp_path, "one") is None
    remember(tmp_path, "one", MESSAGES)
    remember(tmp_path, "two", ())
    assert recall(tmp_path, "one") == MESSAGES
    assert recall(tmp_path, "two") == ()
    assert recall(tmp_path, "three") is None


@pytest.mark.parametrize("content", [b"", b"[", b"{}x", b"[[1]]", b'[["error", "m", "o", ["a"]]]', b"\xff", b"7"])
def test_a_damaged_opinion_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "opinion-one.json").write_bytes(content)
    assert recall(tmp_path, "one") is None


def test_an_opinion_on_what_was_evicted_is_dropped(tmp_path: Path) -> None:
    remember(tmp_path / "gone", "one", MESSAGES)
    assert not (tmp_path / "gone").exists()

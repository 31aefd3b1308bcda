"""What nobody foresaw ends with exit code 70 (sysexits.h: EX_SOFTWARE) and one short message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.cli import Adapters, run


def broken(*_: object) -> Any:
    raise ZeroDivisionError("a fault\nof ours")


def adapters(**more: Callable[..., Any]) -> Adapters:
    return Adapters(**{**dict.fromkeys(Adapters._fields, broken), **more})


@pytest.mark.parametrize("arguments", [["history"], ["history", "1"], ["audit"], ["simulate", "space.json"]])
def test_a_fault_is_one_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments, adapters()) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("kernel-forge: ZeroDivisionError: a fault (test_faults.py, line ")
    assert "This is a fault of Kernel Forge" in said.err
    assert "Traceback" not in said.err and "of ours" not in said.err


def test_wrong_use_stays_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(tmp_path), "--sampler", "none"], adapters()) == 2
    assert "none" in capsys.readouterr().err

"""The code of the pages is right: in whole kernels (``pattern_code.cu``) it passes verification on the emulator."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_forge.knowledge import patterns

FRAME = Path(__file__).with_name("pattern_code.cu")
PLACE = re.compile(r"^// page: ([\w-]+)$", re.MULTILINE)


def code_of(page: str) -> str:
    """The first code of a page, without what stands at the top of a file."""
    found = re.search(r"```cuda\n(.*?)```", patterns()[page].text, re.DOTALL)
    assert found is not None, page
    lines = found[1].rstrip().split("\n")
    return "\n".join(line for line in lines if not line.startswith(("#include", "using namespace")))


@pytest.mark.slow
def test_the_code_of_pages_verifies(tmp_path: Path) -> None:
    text = FRAME.read_text(encoding="utf-8")
    path = tmp_path / "pattern_code.cu"
    path.write_text(PLACE.sub(lambda place: code_of(place[1]), text), encoding="utf-8")
    command = [sys.executable, "-m", "kernel_forge", "verify", str(path), "--device", "emulator", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    report = json.loads(done.stdout)
    (file,) = report["files"]
    assert file["problems"] == []
    assert [v["kernel"] for v in file["verdicts"] if not v["passed"]] == [], done.stdout
    assert len(file["verdicts"]) == text.count("// /// kernel-forge")

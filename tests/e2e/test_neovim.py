"""A real editor: headless Neovim saves a bug, gets the diagnostic, applies a code action."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed (apt-get install neovim)")
@pytest.mark.slow
def test_neovim_session(tmp_path: Path) -> None:
    copy = tmp_path / "scale.cu"
    shutil.copy(HERE / "scale.cu", copy)
    environment = os.environ | {
        "KF_COMMAND": json.dumps([sys.executable, "-m", "kernel_forge", "serve"]),
        "KF_FILE": str(copy),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", str(HERE / "neovim.lua")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert done.returncode == 0 and not failed, done.stdout + done.stderr
    assert "ok clean stop" in done.stdout

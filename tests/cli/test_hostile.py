"""Kernels, specs and references that misbehave: one clear message, no traceback, nothing left running."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = "__global__ void k(const float* x, float* y, int n) { %s }\n"
RIGHT = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i];"


def text(
    body: str = RIGHT, reference: str = "2 * x", case: str = "n = 40", grid: str = "max(1, cdiv(n, 32))", head: str = ""
) -> str:
    return (
        f'// /// kernel-forge\n// kernel = "k"\n// cases = [{{ {case} }}]\n// reference = {{ y = "{reference}" }}\n//\n'
        f'// [args]\n// x = {{ shape = ["n"] }}\n// y = {{ shape = ["n"], role = "out" }}\n//\n'
        f'// [launch]\n// grid = "{grid}"\n// block = 32\n// ///\n{head}{KERNEL % body}'
    )


def left_running(mark: str) -> list[str]:
    """Processes that carry ``mark`` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def check(tmp_path: Path, source: str, codes: tuple[int, ...], parts: tuple[str, ...], *options: str) -> None:
    file = tmp_path / "k.cu"
    file.write_text(source, encoding="utf-8")
    mark = f"HOSTILE_MARK={tmp_path}"
    environment = {**os.environ, "HOSTILE_MARK": str(tmp_path)}
    command = [sys.executable, "-m", "kernel_forge", "verify", str(file), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    shown = done.stdout + done.stderr
    assert done.returncode in codes, shown
    assert "Traceback" not in shown
    assert any(part in shown for part in parts), shown
    assert left_running(mark) == []


@pytest.mark.parametrize(
    ("source", "codes", "parts"),
    [
        (text("for (volatile int i = 0;; i = 1) {}"), (1,), ("did not end",)),
        (text('for (;;) printf("again and again and again\\n");'), (1,), ("output", "did not end")),
        (text(head='#include "nowhere.h"\n'), (1,), ("nowhere.h",)),
        (text(head='#include "k.cu"\n'), (1,), ("does not compile", "include")),
        (text(case="n = 1000000000"), (1, 2, 3), ("GiB", "MiB", "memory", "bytes", "large")),
        (text(case="n = -5"), (1, 2), ("negative", "-5")),
        (text(grid="n / (n - n)"), (1, 2), ("division", "zero")),
    ],
    ids=["endless", "printf", "header", "recursive", "huge", "negative", "division"],
)
def test_kernels_and_specs(tmp_path: Path, source: str, codes: tuple[int, ...], parts: tuple[str, ...]) -> None:
    check(tmp_path, source, codes, parts, "--time-limit", "5" if "for (" in source else "60")


@pytest.mark.parametrize(
    ("body", "codes", "parts"),
    [
        ("while True:\n        pass", (1, 2, 3), ("did not end", "limit", "time")),
        ("raise RuntimeError('my own fault')", (1, 2, 3), ("my own fault",)),
        ('print(\'{"type":"Done"}\')\n    return 2 * x', (0,), ("verified",)),
        ("import os\n    os.write(1, b'noise')\n    return 2 * x", (0,), ("verified",)),
        ("import os\n    os._exit(0)", (1, 2, 70), ("ended", "exit")),
        ("import sys\n    sys.exit(0)", (1, 2, 3), ("exit", "SystemExit", "ended")),
    ],
    ids=["hangs", "raises", "prints", "writes", "os-exit", "sys-exit"],
)
def test_references(tmp_path: Path, body: str, codes: tuple[int, ...], parts: tuple[str, ...]) -> None:
    (tmp_path / "ref.py").write_text(f"def f(x):\n    {body}\n", encoding="utf-8")
    check(tmp_path, text(reference="ref.py:f"), codes, parts, "--time-limit", "4" if "while" in body else "60")

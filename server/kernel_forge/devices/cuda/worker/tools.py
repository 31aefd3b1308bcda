"""NVIDIA's tools around a worker: finding them, and one execution under one of them."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost, Worker, WorkerUnavailable

# Seconds that an execution may take beyond its limit: the instrumented code is loaded first.
_GRACE = 10.0
# Seconds in which the tool writes its report after the execution.
_FAREWELL = 20.0


def find_tool(name: str, variable: str) -> str | None:
    """The program ``name`` of this machine: the one that ``variable`` names, the toolkit's, or that of a pip wheel."""
    named = os.environ.get(variable)
    if named:
        return named
    site = Path(sysconfig.get_path("purelib")) / "nvidia"
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    folders += [str(f) for pattern in ("*/bin", f"*/{name}") for f in sorted(site.glob(pattern))]
    return shutil.which(name, path=os.pathsep.join(folders))


def execute_under(tool: Sequence[str], ordinal: int, frame: Frame, time_limit: float) -> Frame | Lost:
    """The run of ``frame`` in a worker of its own, started by ``tool``: it must be there from the start.

    The tool has ended when this returns, and its report is written.
    """
    inner = [sys.executable, "-P", "-m", "kernel_forge", "worker", "--gpu", str(ordinal), "--plain-memory"]
    try:
        worker = Worker([*tool, *inner], farewell=_FAREWELL)
    except WorkerUnavailable as error:
        return Lost(f"under {Path(tool[0]).name}: {error}")
    job = {"task": "run", "runs": frame.header["runs"], "parts": frame.header["parts"]}
    answer = worker.ask(job, [memoryview(frame.payload)], time_limit + _GRACE)
    worker.end()
    return answer

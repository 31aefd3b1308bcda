"""One execution under ncu, for its hardware counters. The clocks are left alone."""

import tempfile
from pathlib import Path

from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.tools import execute_under, find_tool


def find_profiler() -> str | None:
    """The ncu of this machine."""
    return find_tool("ncu", "KERNEL_FORGE_NCU")


def profile(ordinal: int, frame: Frame, time_limit: float) -> Result:
    """Execute the run of ``frame`` and read the counters that its header names; ``status`` is one of:

    ``profiled``: ``report`` is what ncu wrote, CSV among lines of its own; ``unfinished``: ``reason`` says why;
    ``missing``: there is no ncu here.
    """
    executable = find_profiler()
    if executable is None:
        return Result({"status": "missing"})
    with tempfile.TemporaryDirectory(prefix="kernel-forge-profile-") as folder:
        report = Path(folder) / "report.csv"
        tool = [executable, "--csv", "--print-units", "base", "--clock-control", "none", "--target-processes", "all"]
        tool += ["--log-file", str(report), "--metrics", ",".join(str(m) for m in frame.header["metrics"])]
        answer = execute_under(tool, ordinal, frame, time_limit)
        if isinstance(answer, Lost):
            return Result({"status": "unfinished", "reason": answer.reason})
        text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    if answer.header["status"] != "ran":
        reason = f"the kernel did not end well under ncu: {answer.header.get('name', answer.header['status'])}"
        return Result({"status": "unfinished", "reason": reason})
    return Result({"status": "profiled", "report": text})

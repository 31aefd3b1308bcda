"""One execution under compute-sanitizer."""

import tempfile
from pathlib import Path

from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.tools import execute_under, find_tool

_PRINT_LIMIT = 100
_REPORT_LIMIT = 8 << 20


def find_sanitizer() -> str | None:
    """The compute-sanitizer of this machine."""
    return find_tool("compute-sanitizer", "KERNEL_FORGE_COMPUTE_SANITIZER")


def sanitize(ordinal: int, frame: Frame, time_limit: float) -> Result:
    """Execute the run of ``frame`` under the tool that its header names; ``status`` is one of:

    ``sanitized``: ``report`` is the tool's XML, ``addresses`` the buffers' in that execution, ``run`` how it ended
    and ``why`` it failed;
    ``unfinished``: the tool or the execution did not end in time, ``reason`` says more;
    ``missing``: there is no tool here.
    """
    executable = find_sanitizer()
    if executable is None:
        return Result({"status": "missing"})
    with tempfile.TemporaryDirectory(prefix="kernel-forge-sanitizer-") as folder:
        report, log = Path(folder) / "report.xml", Path(folder) / "log"
        tool = [executable, "--tool", str(frame.header["tool"]), "--xml", "--save", str(report)]
        tool += ["--log-file", str(log), "--strip-paths", "no", "--print-limit", str(_PRINT_LIMIT)]
        answer = execute_under(tool, ordinal, frame, time_limit)
        if isinstance(answer, Lost):
            return Result({"status": "unfinished", "reason": answer.reason})
        try:
            text = report.read_text(encoding="utf-8", errors="replace")[:_REPORT_LIMIT]
        except OSError:
            said = log.read_text(errors="replace").strip()[-500:] if log.exists() else "it said nothing"
            return Result({"status": "unfinished", "reason": f"compute-sanitizer wrote no report: {said}"})
    header = answer.header
    why = header.get("trace", "").strip().splitlines()[-1:] or [f"{header.get('call')}: {header.get('name')}"]
    facts = {"report": text, "addresses": header.get("addresses", {}), "run": header["status"], "why": why[0]}
    return Result({"status": "sanitized", **facts})

"""One execution under compute-sanitizer: in a worker of its own, since the tool must be there from the start."""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost, Worker, WorkerUnavailable
from kernel_forge.devices.cuda.worker.result import Result

_PRINT_LIMIT = 100
# Seconds that an execution may take beyond its limit: the instrumented code is loaded first.
_GRACE = 10.0
# Seconds in which the tool writes its report after the execution.
_FAREWELL = 20.0
_REPORT_LIMIT = 8 << 20


def find_sanitizer() -> str | None:
    """The compute-sanitizer of this machine: the named one, the toolkit's, or that of the pip wheel."""
    named = os.environ.get("KERNEL_FORGE_COMPUTE_SANITIZER")
    if named:
        return named
    site = Path(sysconfig.get_path("purelib")) / "nvidia"
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin", *(str(f) for f in sorted(site.glob("*/bin")))]
    folders += [str(f) for f in sorted(site.glob("*/compute-sanitizer"))]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


def sanitize(ordinal: int, frame: Frame, time_limit: float) -> Result:
    """Execute the run of ``frame`` under the tool that its header names; ``status`` is one of:

    ``sanitized``: ``report`` is the tool's XML, ``addresses`` the buffers' in that execution, ``run`` how it ended;
    ``unfinished``: the tool or the execution did not end in time, ``reason`` says more;
    ``missing``: there is no tool here.
    """
    executable = find_sanitizer()
    if executable is None:
        return Result({"status": "missing"})
    with tempfile.TemporaryDirectory(prefix="kernel-forge-sanitizer-") as folder:
        report = Path(folder) / "report.xml"
        tool = [executable, "--tool", str(frame.header["tool"]), "--xml", "--save", str(report)]
        tool += ["--log-file", str(Path(folder) / "log"), "--strip-paths", "no", "--print-limit", str(_PRINT_LIMIT)]
        inner = [sys.executable, "-m", "kernel_forge", "worker", "--gpu", str(ordinal), "--plain-memory"]
        try:
            worker = Worker([*tool, *inner], farewell=_FAREWELL)
        except WorkerUnavailable as error:
            return Result({"status": "unfinished", "reason": f"under {Path(executable).name}: {error}"})
        answer = worker.ask(
            {"task": "run", "runs": frame.header["runs"]}, [memoryview(frame.payload)], time_limit + _FAREWELL
        )
        worker.end()
        if isinstance(answer, Lost):
            return Result({"status": "unfinished", "reason": answer.reason})
        try:
            text = report.read_text(encoding="utf-8", errors="replace")[:_REPORT_LIMIT]
        except OSError:
            log = Path(folder) / "log"
            said = log.read_text(errors="replace").strip()[-500:] if log.exists() else "it said nothing"
            return Result({"status": "unfinished", "reason": f"compute-sanitizer wrote no report: {said}"})
        header = answer.header
        return Result(
            {"status": "sanitized", "report": text, "addresses": header.get("addresses", {}), "run": header["status"]}
        )

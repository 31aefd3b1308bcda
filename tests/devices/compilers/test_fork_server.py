"""What is compiled is judged in test_gpu; here are the ends that the process and its forks can come to."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.devices.compilers.gpu.fork_server import ForkServer, ForkServerGone
from kernel_forge.devices.compilers.nvrtc_library import find_nvrtc
from kernel_forge.processes import descendants

NVRTC = find_nvrtc()
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks of NVRTC are for Linux"),
    pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed"),
]
WAIT = 20.0
# It takes the compiler minutes.
LINES = "".join(f"x[{i}] = powf(sinf(x[{i}]), x[{i + 1}]);" for i in range(4000))
ENDLESS = f"__global__ void k(float* x) {{{LINES}}}"


def server() -> ForkServer:
    assert NVRTC is not None
    return ForkServer(NVRTC.library, NVRTC.includes)


def job(text: str = "__global__ void k(float* x) { x[N] = 1; }", **more: Any) -> dict[str, Any]:
    assert NVRTC is not None
    fields = {"text": text, "name": "k.cu", "expressions": ["k"], "image": os.devnull, "architecture": "sm_90"}
    fields |= {"headers": {}, "dropped": [], "flags": [], "defines": {"N": "1"}}
    return {**fields, "includes": [str(folder) for folder in NVRTC.includes], **more}


def is_accepted(answer: tuple[bytes, bytes]) -> bool:
    return json.loads(answer[0])["accepted"] is True


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def started_server() -> tuple[ForkServer, int]:
    """One that has answered, and whose fork has ended; and its number."""
    before = set(descendants(os.getpid()))
    made = server()
    assert is_accepted(made.ask(job(), 60.0))
    until(lambda: len(set(descendants(os.getpid())) - before) == 1)
    (pid,) = set(descendants(os.getpid())) - before
    return made, pid


def test_many_at_a_time_have_their_own_answers() -> None:
    made = server()
    jobs = [
        job("#if N % 2\n__global__ void k() {}\n#else\n#error even\n#endif", defines={"N": str(n)}) for n in range(12)
    ]
    with ThreadPoolExecutor(6) as pool:
        accepted = [is_accepted(answer) for answer in pool.map(lambda each: made.ask(each, 60.0), jobs)]
    assert accepted == [n % 2 == 1 for n in range(12)]


def test_a_killed_server_is_started_again() -> None:
    made, pid = started_server()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not running(pid))
    assert is_accepted(made.ask(job(), 60.0))


def test_what_takes_too_long_is_killed_and_the_next_goes_on() -> None:
    made, _ = started_server()
    before = set(descendants(os.getpid()))
    begin = time.monotonic()
    assert made.ask(job(ENDLESS), 1.0)[0] == b""
    assert 1.0 <= time.monotonic() - begin < WAIT
    until(lambda: set(descendants(os.getpid())) <= before)
    assert is_accepted(made.ask(job(), 60.0))


def test_nothing_is_left_of_a_server_that_nobody_has() -> None:
    made, pid = started_server()
    del made
    until(lambda: not running(pid))


def test_a_library_that_cannot_be_loaded_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "libnvrtc.so"
    broken.write_bytes(b"no library")
    answer, errors = ForkServer(broken, ()).ask(job(), 60.0)
    assert answer == b""
    assert b"libnvrtc.so" in errors


def test_a_server_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kernel_forge.devices.compilers.gpu.fork_server._COMMAND", (sys.executable, "-c", "raise SystemExit(3)")
    )
    with pytest.raises(ForkServerGone, match="ends at once"):
        server().ask(job(), 60.0)


def test_all_end_with_the_process_that_asks() -> None:
    """It is killed while a fork compiles."""
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.devices.compilers.test_fork_server import ENDLESS, job, server\n"
        "made = server(); made.ask(job(), 60.0); print(flush=True); made.ask(job(ENDLESS), 60.0)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()
    until(lambda: len(descendants(parent.pid)) == 2)
    below = descendants(parent.pid)
    parent.kill()
    parent.communicate()
    until(lambda: not any(map(running, below)))

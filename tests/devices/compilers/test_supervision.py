"""No pass of a compiler outlives its caller."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_forge.devices.compilers.supervision import Supervised

SPAWN = 'sleep 600 & echo $! > "$0.child"; echo $$ > "$0.parent"; '


def driver(mark: Path, then: str) -> list[str]:
    """A command that starts another process, as a compiler driver does, tells both ids in files, and does ``then``."""
    return ["sh", "-c", SPAWN + then, str(mark)]


def pids(mark: Path) -> list[int]:
    files = [mark.with_name(mark.name + end) for end in (".child", ".parent")]
    deadline = time.monotonic() + 20
    while not all(f.exists() and f.read_text().strip() for f in files):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [int(f.read_text()) for f in files]


def all_gone(processes: list[int]) -> bool:
    """Whether they end within a few seconds; a zombie that waits for init does not count."""
    deadline = time.monotonic() + 5
    while any(_alive(pid) for pid in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_commands_run_until_one_fails(tmp_path: Path) -> None:
    commands = [["sh", "-c", "echo one >&2; pwd > here"], ["sh", "-c", "echo $WORD >&2; exit 3"], ["touch", "never"]]
    environment = {"PATH": os.environ["PATH"], "WORD": "two"}
    with Supervised(commands, time_limit=30, folder=tmp_path, environment=environment) as running:
        ended = running.wait()
    assert (ended.status, ended.errors) == (3, "one\ntwo\n")
    assert (tmp_path / "here").read_text().strip() == str(tmp_path.resolve())
    assert not (tmp_path / "never").exists()


def test_signals_and_missing_commands_are_told() -> None:
    with Supervised([["sh", "-c", "kill -SEGV $$"]], time_limit=30) as running:
        assert running.wait().status == -signal.SIGSEGV
    with Supervised([["no-such-compiler"]], time_limit=30) as running:
        ended = running.wait()
    assert (ended.status, ended.errors) == (127, "no-such-compiler: No such file or directory\n")


def test_a_long_output_is_read_whole() -> None:
    with Supervised([["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2"]], time_limit=30) as running:
        assert len(running.wait().errors) == 1_000_000


def test_the_time_limit_ends_every_process(tmp_path: Path) -> None:
    start = time.monotonic()
    with Supervised([driver(tmp_path / "m", "sleep 600")], time_limit=1) as running:
        processes = pids(tmp_path / "m")
        assert running.wait().status is None
    assert time.monotonic() - start < 20
    assert all_gone(processes)


def test_leaving_the_block_ends_every_process(tmp_path: Path) -> None:
    with Supervised([driver(tmp_path / "m", "sleep 600")], time_limit=600):
        processes = pids(tmp_path / "m")
    assert all_gone(processes)


def test_a_process_that_its_driver_left_behind_ends_with_it(tmp_path: Path) -> None:
    with Supervised([driver(tmp_path / "m", "exit 0")], time_limit=600) as running:
        processes = pids(tmp_path / "m")
        assert running.wait().status == 0
        assert all_gone(processes)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_every_process_dies_with_the_caller(tmp_path: Path, how: signal.Signals) -> None:
    code = (
        # A shell that runs the tests in the background has the interrupt ignored, and children inherit that.
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from kernel_forge.devices.compilers.supervision import Supervised\n"
        "Supervised([sys.argv[1:]], time_limit=600).wait()"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", code, *driver(tmp_path / "m", "sleep 600")], stderr=subprocess.DEVNULL
    )
    try:
        processes = pids(tmp_path / "m")
        caller.send_signal(how)
        caller.wait(20)
        assert all_gone(processes)
    finally:
        caller.kill()
        caller.wait()

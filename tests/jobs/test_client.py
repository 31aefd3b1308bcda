"""The owner of workers, against workers of every kind of bad behaviour."""

import asyncio
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kernel_forge.domain.event import Progress
from kernel_forge.jobs.client import JobClient, JobEnd, JobFailed
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.jobs.wire import VERSION

REQUEST = VerifyRequest("/a.cu", "text")
HELLO = f'print(\'{{"type":"Hello","version":{VERSION}}}\', flush=True)\n'
TAKE = """
import json, sys
number = json.loads(sys.stdin.readline())["number"]
print(json.dumps({"type": "Prepared", "number": number}), flush=True)
"""
DONE = """
import json, os, sys
for line in sys.stdin:
    number = json.loads(line)["number"]
    print(json.dumps({"type": "Prepared", "number": number}))
    step = {"type": "Progress", "message": "step", "done": 1, "total": 2, "search": None}
    print(json.dumps({"type": "Stepped", "number": number, "progress": step}))
    report = {"type": "FileReport", "problems": [], "verdicts": [], "ran_python": "python" in line}
    print(json.dumps({"type": "Done", "number": number, "report": report}), flush=True)
"""


def worker(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A worker command that notes the ids of its processes in ``pids``."""
    note = f"import os, sys\nopen({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    script = tmp_path / "worker.py"
    script.write_text(note + textwrap.dedent(body), encoding="utf-8")
    return (sys.executable, "-S", str(script))


def pids(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "pids").read_text(encoding="utf-8").split()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def run(client: JobClient, limit: float = 10.0, steps: list[Progress] | None = None) -> JobEnd:
    try:
        return await asyncio.wait_for(client.run(REQUEST, (steps if steps is not None else []).append, limit), 20)
    finally:
        await client.close()


async def test_progress_and_report(tmp_path: Path) -> None:
    steps: list[Progress] = []
    assert await run(JobClient(worker(tmp_path, HELLO + DONE)), steps=steps) == FileReport((), ())
    assert steps == [Progress("step", 1, 2)]


async def test_a_worker_that_ran_the_users_python_is_not_used_again(tmp_path: Path) -> None:
    """It keeps imported modules, threads, its folder and whatever was done to NumPy."""
    client = JobClient(worker(tmp_path, HELLO + DONE))
    for _ in range(3):
        end = await client.run(VerifyRequest("/a.cu", "python"), lambda _: None, 10)
        assert end == FileReport((), (), ran_python=True)
    await client.close()
    assert len(set(pids(tmp_path))) >= 3
    assert not any(is_alive(pid) for pid in pids(tmp_path))


async def test_a_good_worker_is_used_again_and_close_leaves_none(tmp_path: Path) -> None:
    client = JobClient(worker(tmp_path, HELLO + DONE))
    for _ in range(3):
        assert isinstance(await client.run(REQUEST, lambda _: None, 10), FileReport)
    assert len(pids(tmp_path)) == 1
    await client.close()
    assert not any(is_alive(pid) for pid in pids(tmp_path))
    end = await client.run(REQUEST, lambda _: None, 10)
    assert isinstance(end, JobFailed)
    assert "closed" in end.message


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("sys.exit(3)", "does not start"),
        ("print('hello', flush=True)", "not a message"),
        ('print(\'{"type":"Hello","version":0}\', flush=True)', "another version"),
        (HELLO + "sys.stdin.readline(); os.kill(os.getpid(), 11)", "the worker ended"),
        (HELLO + "sys.stdin.readline(); print('no JSON', flush=True); sys.stdin.read()", "not a message"),
        (HELLO + "sys.stdin.readline(); " + HELLO, "unexpected Hello"),
    ],
)
async def test_a_worker_that_misbehaves_is_a_crash(tmp_path: Path, body: str, part: str) -> None:
    end = await run(JobClient(worker(tmp_path, body)))
    assert isinstance(end, JobFailed)
    assert end.kind == "crashed"
    assert part in end.message
    assert not any(is_alive(pid) for pid in pids(tmp_path))


async def test_the_log_of_a_crash_is_kept(tmp_path: Path) -> None:
    end = await run(JobClient(worker(tmp_path, HELLO + "sys.stdin.readline(); sys.stderr.write('why'); sys.exit(1)")))
    assert isinstance(end, JobFailed)
    assert end.log == "why"


async def test_a_missing_program_is_a_failed_job() -> None:
    end = await run(JobClient(("/no/such/program",)))
    assert isinstance(end, JobFailed)
    assert "/no/such/program" in end.message


async def test_close_after_a_missing_program() -> None:
    client = JobClient(("/no/such/program",))
    client.warm_up()
    await asyncio.sleep(0.05)
    await client.close()


async def test_the_time_limit_kills_the_worker_and_its_children(tmp_path: Path) -> None:
    body = (
        HELLO
        + TAKE
        + (
            "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\n"
            f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{child.pid}}\\n')\nchild.wait()\n"
        )
    )
    client = JobClient(worker(tmp_path, body))
    client.warm_up()
    await asyncio.sleep(0.3)
    end = await run(client, limit=0.5)
    assert isinstance(end, JobFailed)
    assert end.kind == "time-limit"
    time.sleep(0.05)
    assert len(pids(tmp_path)) >= 2
    assert not any(is_alive(pid) for pid in pids(tmp_path))


async def test_close_while_a_job_starts_ends_it(tmp_path: Path) -> None:
    client = JobClient(worker(tmp_path, "import time; time.sleep(60)"))
    task = asyncio.create_task(client.run(REQUEST, lambda _: None, 60))
    while not (tmp_path / "pids").exists():
        await asyncio.sleep(0.01)
    await client.close()
    assert isinstance(await asyncio.wait_for(task, 5), JobFailed)
    assert not any(is_alive(pid) for pid in pids(tmp_path))


async def test_cancelling_kills_before_it_returns(tmp_path: Path) -> None:
    client = JobClient(worker(tmp_path, HELLO + "import time; time.sleep(60)"))
    task = asyncio.create_task(client.run(REQUEST, lambda _: None, 60))
    await asyncio.sleep(0.5)
    first = pids(tmp_path)[0]
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not is_alive(first)
    await client.close()
    assert not any(is_alive(pid) for pid in pids(tmp_path))


def test_the_worker_starts_under_a_lower_hard_limit() -> None:
    limit = 6 << 30

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = [sys.executable, "-m", "kernel_forge", "job-worker"]
    done = subprocess.run(command, input=b"", capture_output=True, preexec_fn=lower, timeout=30)
    assert done.returncode == 0, done.stderr
    assert b'"Hello"' in done.stdout


async def test_what_a_device_makes_once_takes_no_time_of_the_job(tmp_path: Path) -> None:
    slow = HELLO + DONE.replace(
        '    print(json.dumps({"type": "Prepared"',
        ('    import time; time.sleep(1.5)\n    print(json.dumps({"type": "Prepared"'),
    )
    assert await run(JobClient(worker(tmp_path, slow)), limit=1.0) == FileReport((), ())


async def test_a_device_that_is_never_ready_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_forge.jobs.client.PREPARE_LIMIT", 0.5)
    end = await run(JobClient(worker(tmp_path, HELLO + "sys.stdin.readline(); sys.stdin.read()")))
    assert isinstance(end, JobFailed)
    assert "not ready within 0.5 s" in end.message
    assert not any(is_alive(pid) for pid in pids(tmp_path))

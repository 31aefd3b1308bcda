"""Workers that start, answer, die, fall silent: played by small scripts, so no GPU is needed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_forge.devices.cuda import local_worker, supervisor
from kernel_forge.devices.cuda.supervisor import Lost, Worker, WorkerPool, WorkerUnavailable

HEAD = """
import os, sys, time
from kernel_forge.devices.cuda.protocol import VERSION, read_frame, write_frame
out, inp = sys.stdout.buffer, sys.stdin.buffer
FACTS = {"name": "Toy GPU", "capability": "9.0", "multiprocessors": 1}
def hello(): write_frame(out, {"type": "hello", "version": VERSION, "facts": FACTS})
def job():
    while True:
        frame = read_frame(inp)
        if frame is None: sys.exit(0)
        if frame.kind == "job": return frame
def answer(frame, **more):
    write_frame(out, {"type": "result", "number": frame.header["number"], **more}, [bytes(frame.payload)])
"""
ECHO = "hello()\nwhile True: answer(job())\n"


def command(tmp_path: Path, body: str) -> tuple[str, ...]:
    script = tmp_path / "worker.py"
    script.write_text(HEAD + body)
    return (sys.executable, str(script))


def test_jobs_and_answers(tmp_path: Path) -> None:
    worker = Worker(command(tmp_path, ECHO))
    try:
        assert worker.facts == {"name": "Toy GPU", "capability": "9.0", "multiprocessors": 1}
        for text in (b"one", b"two"):
            frame = worker.ask({"task": "run"}, [text], 20)
            assert not isinstance(frame, Lost) and bytes(frame.payload) == text
    finally:
        worker.kill()
    assert not worker.is_alive


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('no frames here')", "did not start"),
        ("sys.exit('no driver')", "no driver"),
        ('write_frame(out, {"type": "hello", "version": 99})', "another version"),
        ('write_frame(out, {"type": "hello", "version": VERSION, "error": "no GPU"})', "no GPU"),
        ('write_frame(out, {"type": "hello", "version": VERSION})', "does not tell what its GPU is: None"),
        (
            'write_frame(out, {"type": "hello", "version": VERSION, "facts": {"name": "x"}})',
            "does not tell what its GPU",
        ),
    ],
)
def test_what_does_not_start(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(WorkerUnavailable, match=words):
        Worker(command(tmp_path, body))
    with pytest.raises(WorkerUnavailable, match="cannot be started"):
        Worker(("/nonexistent/kernel-forge",))


@pytest.mark.parametrize(
    ("body", "words", "timed_out"),
    [
        ("hello(); job(); os._exit(3)", "status 3", False),
        ("hello(); job(); os.kill(os.getpid(), 9)", "signal 9", False),
        ("hello(); job(); out.write(b'garbage in between!'); out.flush(); time.sleep(60)", "the worker ended", False),
        ("hello(); job(); time.sleep(60)", "no answer within 1 s", True),
    ],
)
def test_a_loss_is_told_and_leaves_no_process(tmp_path: Path, body: str, words: str, timed_out: bool) -> None:
    worker = Worker(command(tmp_path, body))
    lost = worker.ask({}, [], 1 if timed_out else 30)
    assert isinstance(lost, Lost)
    assert words in lost.reason and lost.timed_out is timed_out
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


def test_the_pool_goes_on_with_a_fresh_worker(tmp_path: Path) -> None:
    pool = WorkerPool(command(tmp_path, "hello()\nf = job()\nanswer(f, spent=True)\ntime.sleep(60)\n"))
    try:
        for _ in range(3):
            frame = pool.ask({}, [b"x"], 20)
            assert not isinstance(frame, Lost) and bytes(frame.payload) == b"x"
    finally:
        pool.close()


def test_a_worker_killed_between_jobs_costs_nothing(tmp_path: Path) -> None:
    pool = WorkerPool(command(tmp_path, ECHO))
    try:
        assert not isinstance(pool.ask({}, [], 20), Lost)
        assert pool._worker is not None
        os.kill(pool._worker.pid, signal.SIGKILL)
        time.sleep(0.3)
        assert not isinstance(pool.ask({}, [], 20), Lost)
    finally:
        pool.close()


def test_a_worker_that_neither_reads_nor_speaks_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "SILENCE_LIMIT", 1.0)
    worker = Worker(command(tmp_path, "hello()\ntime.sleep(600)\n"))
    began = time.monotonic()
    lost = worker.ask({"task": "run"}, [bytes(4 << 20)], 60)  # more than a pipe takes
    assert isinstance(lost, Lost) and "silent" in lost.reason and not lost.timed_out
    assert time.monotonic() - began < 20


def test_a_worker_that_beats_but_does_not_read_is_given_up_at_the_limit(tmp_path: Path) -> None:
    beats = "hello()\nwhile True: write_frame(out, {'type': 'alive'}); time.sleep(0.1)\n"
    worker = Worker(command(tmp_path, beats))
    lost = worker.ask({"task": "run"}, [bytes(4 << 20)], 1.0)
    assert isinstance(lost, Lost) and "did not take the job" in lost.reason and lost.timed_out
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


def test_a_slow_answer_is_no_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty parts of one frame, a quarter of a second apart, at a limit of two seconds."""
    monkeypatch.setattr(supervisor, "SILENCE_LIMIT", 2.0)
    slow = """
import json, struct
hello()
head = json.dumps({"type": "result", "number": job().header["number"], "status": "ran"}).encode()
out.write(struct.pack(">2sIQ", b"KF", len(head), 20) + head)
for _ in range(20):
    out.write(b"x"); out.flush(); time.sleep(0.25)
time.sleep(60)
"""
    worker = Worker(command(tmp_path, slow))
    try:
        answer = worker.ask({}, [], 30)
        assert not isinstance(answer, Lost) and bytes(answer.payload) == b"x" * 20
    finally:
        worker.kill()


def test_a_reason_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(WorkerUnavailable) as caught:
        Worker(command(tmp_path, "sys.exit('no driver here')"))
    assert str(caught.value).count("no driver here") == 1


def test_no_code_of_the_current_folder_runs_in_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "argparse.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    subprocess.run(local_worker(0), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert not (tmp_path / "ran").exists()

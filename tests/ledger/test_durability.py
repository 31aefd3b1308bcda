"""Entries that were acknowledged outlive ``kill -9``; writers in several processes do not get in each other's way."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernel_forge.domain.record import Selection
from kernel_forge.ledger import SqliteLedger
from kernel_forge.ledger.files import claim_file
from tests.ledger.records import record

WRITER = """
import sys
from pathlib import Path
from kernel_forge.ledger import SqliteLedger
from tests.ledger.records import record
ledger = SqliteLedger(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    print(ledger.append(record(number, seed=int(sys.argv[3]))).number, flush=True)
"""


def writer(project: Path, count: int, seed: int = 0) -> "subprocess.Popen[str]":
    """A process that is about to write ``count`` entries, and prints the number of each once it is written."""
    command = [sys.executable, "-c", WRITER, str(project.resolve()), str(count), str(seed)]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_kill_9_in_the_middle(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(3):
        process = writer(tmp_path, 100_000)
        go(process)
        assert process.stdout is not None
        for _ in range(50):
            acknowledged = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()  # what it could still say before it died
        acknowledged = int(rest[-1]) if rest else acknowledged
        process.communicate()
        ledger = SqliteLedger(tmp_path.resolve())
        numbers = [e.number for e in ledger.entries(Selection())]
        assert numbers[0] >= acknowledged  # one may be written and not yet told
        assert numbers == list(range(numbers[0], 0, -1))
        assert ledger.audit().is_sound
    assert acknowledged >= 150


def test_processes_that_begin_a_ledger_at_once(tmp_path: Path) -> None:
    processes = [writer(tmp_path, 25, seed) for seed in range(4)]
    for process in processes:
        go(process)
    numbers = []
    try:
        for process in processes:
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            numbers += [int(line) for line in out.split()]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(numbers) == list(range(1, 101))
    ledger = SqliteLedger(tmp_path.resolve())
    assert ledger.audit().is_sound
    seeds = [e.record.seed for e in ledger.entries(Selection())]
    assert all(seeds.count(seed) == 25 for seed in range(4))


def test_threads_of_one_process(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path.resolve())

    def write() -> None:
        for number in range(25):
            ledger.append(record(number))
            ledger.entries(Selection(limit=1))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.audit().anchor.count == 100
    assert ledger.audit().is_sound


def test_many_begin_a_ledger_at_once(tmp_path: Path) -> None:
    """The folder, the file, its mode and its tables are each made by one of them, whichever comes first."""
    for number in range(20):
        project = (tmp_path / str(number)).resolve()
        project.mkdir()
        together = threading.Barrier(4)

        def begin(project: Path = project, together: threading.Barrier = together) -> int:
            ledger = SqliteLedger(project)  # each has its own connection, as another process would
            together.wait()
            made = ledger.append(record()).number
            ledger.close()
            return made

        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(begin) for _ in range(4)]
            assert sorted(m.result() for m in made) == [1, 2, 3, 4]
        assert SqliteLedger(project).audit().is_sound


def test_a_claim_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "run-1.lock"
    for _ in range(2):
        release = claim_file(file)
        assert release is not None
        assert file.exists()
        assert claim_file(file) is None
        release()
        assert not file.exists()
    file.touch()  # of a process that was killed
    release = claim_file(file)
    assert release is not None
    release()
    assert not file.exists()


def test_a_claim_of_a_file_that_was_removed_removes_no_other(tmp_path: Path) -> None:
    file = tmp_path / "run-1.lock"
    first = claim_file(file)
    file.unlink()
    second = claim_file(file)
    assert first is not None and second is not None
    first()
    assert file.exists()
    assert claim_file(file) is None
    second()


def test_one_at_a_time_holds_a_claim_whose_file_comes_and_goes(tmp_path: Path) -> None:
    """A lock on a file that another has just removed is no claim: else two would hold it."""
    file, inside, most = tmp_path / "run-1.lock", [0], [0]

    def hold() -> int:
        held = 0
        for _ in range(400):
            release = claim_file(file)
            if release is not None:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1
                held += 1
                release()
        return held

    with ThreadPoolExecutor(4) as pool:
        held = sum(each.result() for each in [pool.submit(hold) for _ in range(4)])
    assert held > 0
    assert most == [1]
    assert not file.exists()

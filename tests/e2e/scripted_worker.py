"""A worker that runs nothing and finds what the text tells it to, at the pace that the text asks for.

Verifying passes. Tuning finds ``BLOCK = 256`` to be faster by 1.5; the words ``script:`` and one of *slow* (a trial
takes 0.1 s), *default-best*, *wrong-default*, *late-wrong-default* (wrong at the full verification only), *rejected*,
*crash*, *silent* (nothing is tried) in the text change that.
"""

import os
import queue
import re
import sys
import threading
from collections.abc import Iterator

from kernel_forge.domain.event import Progress
from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import LaunchFailed, Mismatch, MismatchKind, Passed, Verdict
from kernel_forge.domain.tuning import (
    Contender,
    KernelTuning,
    Ratio,
    SearchProgress,
    SpaceFacts,
    TunedTrial,
    convergence,
)
from kernel_forge.jobs.messages import HELLO, Done, Failed, Finish, Job, Message, Prepared, Stepped, from_line, to_line
from kernel_forge.jobs.requests import FileReport, TuneReport, TuneRequest, VerifyRequest

BASELINE, BEST = 3e-6, 2e-6
inbox: "queue.Queue[Message | None]" = queue.Queue()


def read() -> None:
    for line in sys.stdin.buffer:
        inbox.put(from_line(line))
    inbox.put(None)
    os._exit(0)


def send(message: Message) -> None:
    sys.stdout.buffer.write(to_line(message))
    sys.stdout.buffer.flush()


def verdict(path: str, kernel: str, block: int, outcome: object = Passed(1, 1)) -> Verdict:
    return Verdict(kernel, path, outcome, {"BLOCK": block}, 1, "emulator", "emulated")  # type: ignore[arg-type]


def contender(block: int, seconds: float) -> Contender:
    ratio = BASELINE / seconds
    time = Measurement(seconds, 0.99 * seconds, 1.01 * seconds, 15, 1, "events", None, "emulated")
    return Contender({"BLOCK": block}, (time,), Ratio(ratio, 0.98 * ratio, 1.02 * ratio))


def trials(request: TuneRequest) -> Iterator[TunedTrial]:
    """The default, a failed one, and then ever better ones."""
    yield TunedTrial({"BLOCK": 128}, (BASELINE,))
    yield TunedTrial({"BLOCK": 64}, None, "does not compile")
    for number in range(2, request.budget.trials or 0):
        yield TunedTrial({"BLOCK": 256}, (BEST * (1 + 1 / number),))


def tune(job: Job, request: TuneRequest, script: str) -> None:
    kernel = request.kernel or "scale"
    send(Stepped(job.number, Progress("preparing emulator")))
    told: list[TunedTrial] = []
    ended = "trials"
    pace = 0.1 if script == "slow" else 0.001
    for trial in () if script == "silent" else trials(request):
        told.append(trial)
        best = min((t for t in told if t.value is not None), key=lambda t: t.value or 0.0)
        search = SearchProgress(
            len(told),
            sum(t.seconds is None for t in told),
            request.budget.trials,
            BASELINE,
            best.value,
            best.configuration,
            convergence(told),
            1.0,
        )
        send(Stepped(job.number, Progress(f"{kernel}: searching", len(told), request.budget.trials or 0, search)))
        try:
            asked = inbox.get(timeout=pace)
        except queue.Empty:
            continue
        if isinstance(asked, Finish):
            ended = "stopped"
            break
    if script == "silent":
        threading.Event().wait()
    if script == "crash":
        os._exit(3)
    if script == "wrong-default":
        refused = verdict(request.path, kernel, 128, LaunchFailed("trap", "the kernel trapped"))
        send(Done(job.number, TuneReport((), (refused,))))
        return
    base, best_one = contender(128, BASELINE), contender(256, BEST)
    text = "y[3] is 1, should be 2"
    wrong = Mismatch(MismatchKind.WRONG_VALUE, "y", 1, 9, (3,), 2.0, 1.0, 1e-6, 1.0, message=text)
    found = KernelTuning(
        kernel=kernel,
        path=request.path,
        device="emulator",
        basis="emulated",
        cases=({"n": 1000},),
        space=SpaceFacts(3, 3, {"BLOCK": (64, 128, 256)}),
        sampler=request.sampler,
        seed=1,
        budget=request.budget,
        ended=ended,
        trials=tuple(told),
        baseline=None if script == "late-wrong-default" else base,
        winner=base if script == "default-best" else best_one,
        verdict=verdict(request.path, kernel, 256, Passed(7, 70)),
        default_verdict=verdict(request.path, kernel, 128, wrong if script == "late-wrong-default" else Passed(5, 50)),
        finalists=(best_one, base),
        rejected=(verdict(request.path, kernel, 64, wrong),) if script == "rejected" else (),
        seconds=2.0,
    )
    send(Done(job.number, TuneReport((), (found,))))


def main() -> None:
    send(HELLO)
    threading.Thread(target=read, daemon=True).start()
    while (job := inbox.get()) is not None:
        if not isinstance(job, Job):
            continue
        send(Prepared(job.number))
        request = job.request
        script = re.search(r"script: ([\w-]+)", request.text)
        if isinstance(request, TuneRequest):
            tune(job, request, script.group(1) if script else "")
        elif isinstance(request, VerifyRequest):
            send(Done(job.number, FileReport((), (verdict(request.path, request.kernel or "scale", 128),))))
        else:
            send(Failed(job.number, "internal", "not scripted"))


main()

"""A kernel that passed on a GPU, looked at by the emulator too.

Hardware hides what is undefined: a shuffle whose mask lacks its own lane, or a race that one side always wins, gives
the right result today. The emulator looks for it in every run.
"""

from collections.abc import Callable
from dataclasses import replace

from kernel_forge.domain.outcome import Passed, TimedOut, Unavailable, Verdict
from kernel_forge.ports import Device

FOUND_NOTHING = "the emulator, which sees wrong masks, races and uninitialised shared memory, found nothing (emulated)"
LEAST_SECONDS = 5.0


def with_second_opinion(
    verdict: Verdict, emulator: Device, verify_on: Callable[[Device, float], Verdict], time_limit: float
) -> Verdict:
    """``verdict`` where the emulator agrees or cannot tell (then ``skipped`` says why), else the emulator's.

    ``verify_on`` verifies the same kernel on a device within so many seconds; it gets what is left of ``time_limit``.
    """
    if not isinstance(verdict.outcome, Passed):
        return verdict
    left = time_limit - verdict.seconds
    if left < LEAST_SECONDS:
        return _skipped(verdict, "the time limit of the verification was reached before it")
    emulated = verify_on(emulator, left)
    match emulated.outcome:
        case Passed():
            return replace(verdict, checks=(*verdict.checks, FOUND_NOTHING))
        case Unavailable() as unavailable:
            return _skipped(verdict, unavailable.reason)
        case TimedOut() as late:
            return _skipped(verdict, late.message)  # a CPU is no measure of what ends on a GPU
        case _:
            note = (
                f"it passed on {verdict.device} ({verdict.basis}), sanitizers included; this is what the emulator sees"
            )
            return replace(emulated, notes=(note, *emulated.notes), warnings=verdict.warnings)


def _skipped(verdict: Verdict, reason: str) -> Verdict:
    return replace(verdict, skipped={**verdict.skipped, "emulator": reason})

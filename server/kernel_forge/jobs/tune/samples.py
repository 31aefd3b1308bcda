"""What a sample of the outputs must be at the tuned cases: found in the main thread, while trials are on their way."""

import time
from concurrent.futures import CancelledError, Future
from functools import partial

from kernel_forge.domain.measurement import Contents
from kernel_forge.domain.outcome import Outcome
from kernel_forge.jobs.tune.workbench import COMPARED_BYTES, REFERENCE_LIMIT, Workbench
from kernel_forge.spec import BoundCase
from kernel_forge.verify.expectation import Expected
from kernel_forge.verify.gate import Key, Rough

ENOUGH_SECONDS = 5.0
"""Of evaluating references; what is not known by then (inputs or shapes that depend on tunables) is not compared."""
SAMPLE = 1 << 16
"""Elements of each output that are looked at, at most."""
PLAINLY = 0.25
"""The share of a sample that must be off by more than a rough tolerance: a right kernel is where results jump (ties of
a rounding, say), which only the exact tolerance knows. The finals compare exactly."""
Answer = Rough | None


class ExpectedSamples:
    """Samples of up to ``most`` elements of each output, by the inputs and shapes that a configuration has.

    :meth:`ask` and :meth:`make` in the main thread: references are Python of the user's. :meth:`wrong` in any.
    """

    def __init__(self, bench: Workbench, most: int) -> None:
        self._bench = bench
        self._most = most
        self._answers: dict[Key, Future[Answer]] = {}
        self._asked: list[tuple[BoundCase, Future[Answer]]] = []
        self._seconds = 0.0

    def ask(self, bound: BoundCase) -> None:
        """Have what this case must give made, at the next :meth:`make`."""
        key = self._bench.gate.key(bound)
        if key not in self._answers:
            future = self._answers[key] = Future()
            self._asked.append((bound, future))

    def make(self) -> None:
        """Evaluate what was asked for; takes seconds where the cases are large."""
        while self._asked:
            bound, future = self._asked.pop(0)
            try:
                future.set_result(self._made(bound))
            finally:
                future.cancel()  # where making it has failed: nobody waits for it in vain

    def _made(self, bound: BoundCase) -> Answer:
        if self._seconds > ENOUGH_SECONDS or self._bench.compared_bytes(bound) > COMPARED_BYTES:
            return None
        began = time.monotonic()
        found = self._bench.gate.glance(bound, self._most, partial(self._bench.compile, bound), REFERENCE_LIMIT)
        self._seconds += time.monotonic() - began
        return found if isinstance(found.expected, Expected) else None

    def wrong(self, bound: BoundCase, contents: Contents) -> Outcome | None:
        """What is plainly wrong with the sample ``contents``; None where nothing is, or where that cannot be told.

        Waits for what :meth:`make` has yet to find.
        """
        try:
            answer = self._answers[self._bench.gate.key(bound)].result()
        except (CancelledError, KeyError):
            return None
        if answer is None or not isinstance(answer.expected, Expected):
            return None
        allowed = PLAINLY if answer.is_rough else 0.0
        return self._bench.gate.wrong_in_sample(bound, answer.expected, contents, self._most, allowed=allowed)

    def close(self) -> None:
        """Nothing is made any more: let go of whoever waits for it."""
        for future in self._answers.values():
            future.cancel()

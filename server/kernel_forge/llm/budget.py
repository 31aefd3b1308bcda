"""Keeps a job within its budget: each call is reserved at its worst case, and settled at what it was."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock

from kernel_forge.domain.model import FailureKind, ModelBudget, ModelFailure, ModelSpending


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """What is held back for one call until it is settled. ``dollars`` is None where the price is unknown."""

    dollars: Decimal | None
    tokens: int


class Meter:
    """The budget of one job. Safe to use from several threads and for several calls at a time."""

    def __init__(
        self,
        budget: ModelBudget = ModelBudget(),  # noqa: B008 (frozen)
        spent: ModelSpending = ModelSpending(),  # noqa: B008 (frozen)
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``spent`` is what an interrupted job had spent before; ``clock`` gives seconds."""
        self._budget = budget
        self._spent = spent
        self._clock = clock
        self._start = clock()
        self._open: set[Reservation] = set()
        self._lock = Lock()

    @property
    def spent(self) -> ModelSpending:
        """What was settled so far."""
        with self._lock:
            return self._spent

    def seconds_left(self) -> float | None:
        """Until the budget's time is over (0 when it is); None without a limit."""
        if self._budget.seconds is None:
            return None
        return max(0.0, self._budget.seconds - (self._clock() - self._start))

    def reserve(self, dollars: Decimal | None, tokens: int) -> Reservation | ModelFailure:
        """Hold back the worst case of a call, or say which limit it could break.

        What other calls under way may still cost counts as spent, so that no settling can break a limit.
        """
        wanted = Reservation(dollars, tokens)
        with self._lock:
            failure = self._broken(wanted)
            if failure is None:
                self._open.add(wanted)
        return wanted if failure is None else failure

    def settle(self, reservation: Reservation, dollars: Decimal | None, tokens: int, calls: int = 1) -> None:
        """The call is over and cost this much. ``calls`` is 0 for one that was never sent."""
        with self._lock:
            self._open.remove(reservation)
            now = self._spent
            self._spent = ModelSpending(now.dollars + (dollars or 0), now.tokens + tokens, now.calls + calls)

    def _broken(self, wanted: Reservation) -> ModelFailure | None:
        budget, spent = self._budget, self._spent
        if budget.seconds is not None and self.seconds_left() == 0:
            return _over(f"the {budget.seconds:g} s for the model are over")
        if budget.calls is not None and spent.calls + len(self._open) >= budget.calls:
            return _over(f"all {budget.calls} calls are used")
        tokens = spent.tokens + sum(r.tokens for r in self._open)
        if budget.tokens is not None and tokens + wanted.tokens > budget.tokens:
            return _over(f"a call may take {wanted.tokens} tokens, and {budget.tokens - tokens} are left")
        if budget.dollars is None:
            return None
        if wanted.dollars is None:
            reason = "the price of this model is not known, so a limit in money cannot be kept; limit tokens instead"
            return ModelFailure(FailureKind.NO_PRICE, reason)
        left = budget.dollars - spent.dollars - sum((r.dollars or Decimal(0) for r in self._open), Decimal(0))
        if wanted.dollars > left:
            return _over(f"a call may cost up to ${wanted.dollars:.4f}, and ${left:.4f} of ${budget.dollars} are left")
        return None


def _over(reason: str) -> ModelFailure:
    return ModelFailure(FailureKind.BUDGET, reason)

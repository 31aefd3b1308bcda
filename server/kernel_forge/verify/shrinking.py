"""The smallest case that still fails in the same way."""

import time
from collections.abc import Iterator, Set
from dataclasses import replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import BarrierDivergence, LaunchFailed, MemoryFault, Mismatch, TimedOut
from kernel_forge.domain.spec import Sizes
from kernel_forge.spec import bind, is_legal
from kernel_forge.verify.check_case import CaseChecker
from kernel_forge.verify.failure import CaseFailure
from kernel_forge.verify.planning import PlannedCase

MAX_ATTEMPTS = 24
SECONDS = 10.0


def shrink(checker: CaseChecker, case: PlannedCase, failure: CaseFailure, deadline: float) -> CaseFailure:
    """Smaller legal sizes one after the other, as long as the failure keeps its kind.

    Bounded by attempts and seconds. A time-out is not shrunk: every attempt would cost the whole limit.
    """
    if isinstance(failure.outcome, TimedOut):
        return failure
    end = min(deadline, time.monotonic() + SECONDS)
    best = failure
    attempts = 0
    progress = True
    tried: set[tuple[int, ...]] = set()
    while progress:
        progress = False
        for sizes in _smaller(best.bound.sizes, tried):
            if attempts >= MAX_ATTEMPTS or time.monotonic() > end:
                return best
            tried.add(tuple(sizes.values()))
            if not is_legal(checker.spec, sizes, best.bound.configuration):
                continue
            bound = bind(checker.spec, sizes, best.bound.configuration)
            if isinstance(bound, Finding):
                continue
            attempts += 1
            smaller = replace(case, bound=bound, kinds=(best.kind,), is_own=True)
            result = checker.check(smaller, best.options.time_limit, end)
            if isinstance(result, CaseFailure) and _same_kind(result, failure):
                best = replace(result, case=replace(result.case, origin=f"shrunk from {case.origin}"))
                progress = True
                break
    return best


def _smaller(sizes: Sizes, tried: Set[tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """Candidates below ``sizes`` that were not tried, bold ones first; halfway from what was tried before the last."""
    for place, (name, value) in enumerate(sizes.items()):
        low = max((t[place] for t in tried if t[place] < value and _at(sizes, t, place)), default=0)
        for candidate in dict.fromkeys((1, value // 8, value // 2, (low + value) // 2, value - 1)):
            made = {**sizes, name: candidate}
            if 0 < candidate < value and tuple(made.values()) not in tried:
                yield made


def _at(sizes: Sizes, tried: tuple[int, ...], place: int) -> bool:
    """Whether ``tried`` differs from ``sizes`` at ``place`` only."""
    return all(i == place or value == tried[i] for i, value in enumerate(sizes.values()))


def _same_kind(a: CaseFailure, b: CaseFailure) -> bool:
    if type(a.outcome) is not type(b.outcome):
        return False
    if isinstance(a.outcome, Mismatch) and isinstance(b.outcome, Mismatch):
        return a.outcome.kind is b.outcome.kind and a.outcome.output == b.outcome.output
    failures = (LaunchFailed, MemoryFault, BarrierDivergence)
    if isinstance(a.outcome, failures) and isinstance(b.outcome, failures):
        return a.outcome.kind == b.outcome.kind
    return True

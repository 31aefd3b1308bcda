"""The table of what was timed at the end of a tuning, and why its first row is not the winner where it is not."""

from collections.abc import Iterator

from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.tuning import SAME, Contender, KernelTuning, Ratio
from kernel_forge.views.timing import TOO_FEW, duration
from kernel_forge.views.words import pairs, problem

SHOWN_FASTER = 3


def finalist_rows(tuning: KernelTuning) -> list[str]:
    """What was timed at the end, where that is more than the winner and the default, or energy was measured."""
    found = tuning.finalists
    if len(found) <= 2 and not any(c.joules for c in found):
        return []
    rows = []
    for contender in found:
        ratio = contender.speedup
        spread = "" if ratio is None else f"{ratio.value:.3g}x ({ends_text(ratio)})"
        rows.append([duration(contender.seconds), spread, _energy(contender), pairs(contender.configuration)])
    kept = [i for i in range(4) if any(row[i] for row in rows)]
    widths = {i: max(len(row[i]) for row in rows) for i in kept}
    return ["  ".join(row[i].ljust(widths[i]) for i in kept).rstrip() for row in rows]


def passed_over(tuning: KernelTuning) -> str | None:
    """Why those that took less time at the end than the winner did not win, in one line; None where none did."""
    winner = next((k for k, c in enumerate(tuning.finalists) if _is(c, tuning.winner)), 0)
    reasons: dict[str, list[str]] = {}
    for contender in tuning.finalists[:winner]:
        reasons.setdefault(_why_not(tuning, contender), []).append(pairs(contender.configuration))
    return "; ".join(_shown(names, why) for why, names in reasons.items()) or None


def ends_text(ratio: Ratio) -> str:
    """``1.31 to 1.39``."""
    return f"{ratio.low:.3g} to {ratio.high:.3g}" if ratio.has_interval else TOO_FEW


def joules_text(joules: float) -> str:
    """``1.23 mJ``."""
    scale, unit = next(((s, u) for s, u in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")) if joules >= s), (1e-9, "nJ"))
    return f"{joules / scale:.3g} {unit}"


def _energy(contender: Contender) -> str:
    return "" if not contender.joules else ", ".join(joules_text(j) for j in contender.joules)


def _shown(names: list[str], why: str) -> str:
    if len(names) > SHOWN_FASTER:
        return f"{len(names)} finalists took less time, but {why}"
    return f"{' and '.join(names)} took less time, but {why}"


def _why_not(tuning: KernelTuning, contender: Contender) -> str:
    rejected = next((v for v in _failed(tuning) if dict(v.configuration) == dict(contender.configuration)), None)
    if rejected is not None:
        is_open = isinstance(rejected.outcome, Unavailable)
        return "could not be verified" if is_open else f"the full verification found: {problem(rejected.outcome)}"
    ratio = contender.speedup
    if ratio is None or ratio.is_faster:
        return "did not win"
    if not ratio.has_interval:
        return "not for sure: too few samples for an interval"
    return f"not for sure: the interval of the ratio does not lie above {1 + SAME:.2f}"


def _failed(tuning: KernelTuning) -> Iterator[Verdict]:
    """What was verified and does not hold, the default too."""
    yield from tuning.rejected
    if tuning.default_verdict is not None and not isinstance(tuning.default_verdict.outcome, Passed):
        yield tuning.default_verdict


def _is(one: Contender, other: Contender) -> bool:
    return dict(one.configuration) == dict(other.configuration)

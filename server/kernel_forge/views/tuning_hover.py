"""A tuning run in the editor: the words of its lens, hover and hint. The basis goes with every number."""

from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.tuning import Contender, KernelTuning, SearchProgress
from kernel_forge.views.finalists import joules_text, passed_over
from kernel_forge.views.sparkline import sparkline
from kernel_forge.views.timing import TOO_FEW, duration, occupancy_text, time_text
from kernel_forge.views.tuning import NO_DEFAULT, progress_lines, search_text, space_text, speedup_text
from kernel_forge.views.tuning_failures import wrong_groups, wrong_text
from kernel_forge.views.words import caveat, pairs, problem, sentence

SHOWN_REJECTED = 3
WIDTH = 200
NOTHING_FASTER = "nothing is faster for sure"


def running_title(message: str, search: SearchProgress | None) -> str:
    """``tuning 37/100, best 1.32x``: a run in progress in a few words; ``message`` where it does not search."""
    if search is None:
        return f"tuning: {message}"
    count = str(search.trials) if search.limit is None else f"{search.trials}/{search.limit}"
    if search.baseline is None or search.best is None:
        return f"tuning {count}"
    return f"tuning {count}, best {search.baseline / search.best:.2f}x"


def running_text(message: str, search: SearchProgress | None) -> str:
    """A run in progress, as Markdown."""
    return f"_Tuning: {message}…_" if search is None else f"_Tuning:_ {search_line(search)}"


def search_line(search: SearchProgress) -> str:
    """How far a search is, its best so far and the convergence that led there, in one line."""
    return " · ".join(progress_lines(search, WIDTH))


def tuned_title(result: KernelTuning | Verdict, *, stale: bool, applied: bool) -> str:
    """``tuned: 1.42x (measured on NVIDIA H200)``: what came of it in a few words."""
    prefix = "changed since: " if stale else ""
    if isinstance(result, Verdict):
        return f"{prefix}not tuned: {_why_not(result)}"
    basis = "emulated, CPU times" if result.basis == "emulated" else result.basis
    if not result.is_improved:
        return f"{prefix}default stays, {NOTHING_FASTER} ({basis})"
    ratio = result.winner.speedup
    gain = pairs(result.winner.configuration) if ratio is None else f"{ratio.value:.2f}x{_few(result.winner)}"
    return f"{prefix}tuned: {gain}{', applied' if applied else ''} ({basis})"


def hint_label(tuning: KernelTuning, *, applied: bool) -> str:
    """``2.1 us → 1.5 us ± 0.5 %, 1.42x (measured)``: what the best takes beside the default."""
    best = f"{duration(tuning.winner.seconds)}{_spread(tuning.winner)}"
    basis = tuning.basis.partition(" on ")[0]
    if not tuning.is_improved:
        return f"{best}{_few(tuning.winner)}, {NOTHING_FASTER} ({basis})"
    ratio = tuning.winner.speedup
    gain = "" if ratio is None else f", {ratio.value:.2f}x"
    before = "" if tuning.baseline is None or applied else f"{duration(tuning.baseline.seconds)} → "
    return f"{before}{best}{gain}{_few(tuning.winner)} ({basis})"


def tuning_text(result: KernelTuning | Verdict, *, stale: bool = False, applied: bool = False) -> str:
    """The result in full, as Markdown: one paragraph of lines."""
    lines = ["_The file has changed since; this speaks of an older text._"] if stale else []
    if isinstance(result, Verdict):
        lines.append(f"? **not tuned** ({result.basis}): {problem(result.outcome)}: {sentence(result.outcome)}")
        return "  \n".join(lines)
    lines.append(_headline(result, applied=applied))
    warning = caveat(result.basis)
    if warning is not None:
        lines.append(f"{warning[:1].upper()}{warning[1:]}.")
    lines.extend(_times(result))
    if result.attained is not None and result.attained.share is not None:
        lines.append(f"Roofline: {100 * result.attained.share:.0f} % of the {result.attained.bound} roof.")
    if result.occupancy is not None:
        lines.append(f"Occupancy: {occupancy_text(result.occupancy)}.")
    if result.winner.joules:
        lines.append(f"Energy: {', '.join(map(joules_text, result.winner.joules))} per execution.")
    curve = sparkline(result.convergence)
    if curve:
        lines.append(f"Convergence: `{curve}` (how far from the best after each trial).")
    lines.extend(_wrong(result))
    lines.append(f"Search: {search_text(result)}. Space: {space_text(result)}.")
    lines.extend(_rejected(result))
    lines.extend(f"Not first: {why}." for why in (passed_over(result),) if why is not None)
    for choice in result.choices:
        gain = "" if choice.speedup is None else f", {speedup_text(choice.speedup)}"
        lines.append(f"Best at {pairs(choice.sizes)}: {pairs(choice.configuration)}, {duration(choice.seconds)}{gain}.")
    lines.extend(f"Note: {note}." for note in result.notes if note != warning)
    return "  \n".join(lines)


def _headline(tuning: KernelTuning, *, applied: bool) -> str:
    checked = "verified" if isinstance(tuning.verdict.outcome, Passed) else problem(tuning.verdict.outcome)
    found = pairs(tuning.winner.configuration)
    if not tuning.is_improved:
        return f"Tuned, **{tuning.basis}**: **the default stays**, {found} ({checked}); {NOTHING_FASTER}."
    ratio = tuning.winner.speedup
    gain = NO_DEFAULT if ratio is None else f"**{speedup_text(ratio)}**"
    state = ", now the default" if applied else ""
    return f"Tuned, **{tuning.basis}**: best is **{found}**{state} ({checked}), {gain}."


def _times(tuning: KernelTuning) -> list[str]:
    lines = []
    for number, sizes in enumerate(tuning.cases):
        base = tuning.baseline
        beside = "" if base is None or not tuning.is_improved else f", default {time_text(base.times[number])}"
        at = pairs(sizes) or "the only case"
        lines.append(f"Time at {at}: {time_text(tuning.winner.times[number])}{beside}.")
    return lines


def _rejected(tuning: KernelTuning) -> list[str]:
    """What was faster in the search and is not right, the most telling of it."""
    lines = [_why_rejected(verdict) for verdict in tuning.rejected[:SHOWN_REJECTED]]
    more = len(tuning.rejected) - SHOWN_REJECTED
    return [*lines, f"{more} more were rejected."] if more > 0 else lines


def _wrong(tuning: KernelTuning) -> list[str]:
    """That there are configurations with which the kernel is wrong, with one of each cause."""
    groups = wrong_groups(tuning.trials)
    shown = [f"{pairs(g[0].configuration)}: {wrong_text(g)}" for g in groups[:SHOWN_REJECTED]]
    count = sum(map(len, groups))
    return [f"✗ **{count} of the configurations tried {'is' if count == 1 else 'are'} wrong**: {'; '.join(shown)}"] * (
        count > 0
    )


def _why_rejected(verdict: Verdict) -> str:
    outcome = verdict.outcome
    mark = "?" if isinstance(outcome, Unavailable) else "✗"
    found = f"{pairs(verdict.configuration)}: **{problem(outcome)}**: {sentence(outcome)}"
    return f"{mark} Faster in the search, but rejected: {found}"


def _why_not(verdict: Verdict) -> str:
    outcome = verdict.outcome
    return outcome.reason if isinstance(outcome, Unavailable) else f"{problem(outcome)} ({verdict.basis})"


def _few(contender: Contender) -> str:
    """Said where a time, or the ratio to the default's, has no interval."""
    few = any(t.samples < FEWEST_FOR_INTERVAL for t in contender.times)
    return f", {TOO_FEW}" if few or (contender.speedup is not None and not contender.speedup.has_interval) else ""


def _spread(contender: Contender) -> str:
    """The widest interval of its cases; nothing where one has none."""
    if any(t.samples < FEWEST_FOR_INTERVAL or not t.seconds for t in contender.times):
        return ""
    percent = max(50 * (t.high - t.low) / t.seconds for t in contender.times)
    return f" ± {percent:.2g} %" if percent < 100 else f" ± {percent:.0f} %"

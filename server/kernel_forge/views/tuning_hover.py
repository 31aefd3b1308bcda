"""A tuning run in the editor: the words of its lens, hover, hint and progress. The basis goes with every number."""

from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL, Measurement
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import Contender, KernelTuning, Ratio, SearchProgress
from kernel_forge.views.sparkline import sparkline
from kernel_forge.views.timing import duration, occupancy_text
from kernel_forge.views.words import caveat, problem, seconds_text, sentence

SHOWN_REJECTED = 3
_ENDED = {
    "trials": "the trials of the budget were used up",
    "seconds": "the time of the budget was used up",
    "patience": "nothing better came any more",
    "exhausted": "every valid configuration was tried",
    "stopped": "it was asked to end",
}


def progress_line(search: SearchProgress) -> str:
    """``best 1.23 us (1.32x the default), about 40 s left ▇▅▃▁``: what a search has so far."""
    parts = [] if search.best is None else [f"best {duration(search.best)}{_over_default(search)}"]
    if search.failed:
        parts.append(f"{search.failed} of {search.trials} failed")
    if search.remaining is not None:
        parts.append(f"about {seconds_text(search.remaining)} left")
    line = ", ".join(parts) or "no time yet"
    curve = sparkline(search.convergence)
    return f"{line} {curve}" if curve else line


def running_text(message: str, search: SearchProgress | None) -> str:
    """A run in progress, as Markdown."""
    if search is None:
        return f"_Tuning: {message}…_"
    best = f"  \nBest so far: {_words(search.configuration)}." if search.configuration else ""
    return f"_{running_title(message, search)}…_ {progress_line(search)}{best}"


def running_title(message: str, search: SearchProgress | None) -> str:
    """``tuning 37/100, best 1.32x``: a run in progress in a few words; ``message`` where it does not search."""
    if search is None:
        return f"tuning: {message}"
    count = str(search.trials) if search.limit is None else f"{search.trials}/{search.limit}"
    speedup = _speedup_so_far(search)
    return f"tuning {count}" + ("" if speedup is None else f", best {speedup:.2f}x")


def tuned_title(result: KernelTuning | Verdict, *, stale: bool, applied: bool) -> str:
    """``tuned: 1.42x (measured on NVIDIA H200)``: what came of it in a few words."""
    prefix = "changed since: " if stale else ""
    if isinstance(result, Verdict):
        return f"{prefix}not tuned: {_why_not(result)}"
    basis = _basis(result)
    if not result.is_improved:
        return f"{prefix}default is best ({basis})"
    ratio = result.winner.speedup
    gain = _words(result.winner.configuration) if ratio is None else f"{ratio.value:.2f}x"
    return f"{prefix}tuned: {gain}{', applied' if applied else ''} ({basis})"


def hint_label(tuning: KernelTuning, *, applied: bool) -> str:
    """``2.1 us → 1.5 us ± 0.5 %, 1.42x (measured)``: what the best takes beside the default."""
    best = f"{duration(tuning.winner.seconds)}{_spread(tuning.winner)}"
    basis = tuning.basis.partition(" on ")[0]
    if not tuning.is_improved:
        return f"{best}, default is best ({basis})"
    ratio = tuning.winner.speedup
    gain = "" if ratio is None else f", {ratio.value:.2f}x"
    before = "" if tuning.baseline is None or applied else f"{duration(tuning.baseline.seconds)} → "
    return f"{before}{best}{gain} ({basis})"


def tuning_text(result: KernelTuning | Verdict, *, stale: bool = False, applied: bool = False) -> str:
    """The result in full, as Markdown: one paragraph of lines."""
    lines = ["_The file has changed since; this speaks of an older text._"] if stale else []
    if isinstance(result, Verdict):
        lines.append(f"? **not tuned** ({result.basis}): {problem(result.outcome)}: {sentence(result.outcome)}")
        return "  \n".join(lines)
    lines.append(_headline(result, applied=applied))
    lines.extend(_times(result))
    if result.attained is not None and result.attained.share is not None:
        lines.append(f"Roofline: {100 * result.attained.share:.0f} % of the {result.attained.bound} roof.")
    if result.occupancy is not None:
        lines.append(f"Occupancy: {occupancy_text(result.occupancy)}.")
    if result.winner.joules:
        lines.append("Energy: " + ", ".join(f"{j:.3g} J" for j in result.winner.joules) + " an execution.")
    lines.append(_search(result))
    curve = sparkline(result.convergence)
    if curve:
        lines.append(f"Convergence: `{curve}` to {duration(result.convergence[-1])}.")
    for verdict in result.rejected[:SHOWN_REJECTED]:
        lines.append(
            f"✗ Faster but rejected: {_words(verdict.configuration)}: **{problem(verdict.outcome)}**: "
            f"{sentence(verdict.outcome)}"
        )
    if len(result.rejected) > SHOWN_REJECTED:
        lines.append(f"{len(result.rejected) - SHOWN_REJECTED} more were rejected.")
    for choice in result.choices:
        gain = "" if choice.speedup is None else f", {_ratio(choice.speedup)}"
        lines.append(f"At {_words(choice.sizes)}: {_words(choice.configuration)}, {duration(choice.seconds)}{gain}")
    warning = caveat(result.basis)
    if warning is not None:
        lines.append(f"{warning}.")
    lines.extend(f"Note: {note}." for note in result.notes)
    return "  \n".join(lines)


def _headline(tuning: KernelTuning, *, applied: bool) -> str:
    checked = "verified" if isinstance(tuning.verdict.outcome, Passed) else problem(tuning.verdict.outcome)
    found = _words(tuning.winner.configuration)
    if not tuning.is_improved:
        return f"**The default is best**, **{tuning.basis}**: {found} ({checked}); nothing was faster for sure."
    ratio = tuning.winner.speedup
    gain = "the default does not run here" if ratio is None else f"**{_ratio(ratio)}** over the default"
    state = ", now the default" if applied else ""
    return f"Tuned, **{tuning.basis}**: best is **{found}**{state} ({checked}), {gain}."


def _times(tuning: KernelTuning) -> list[str]:
    lines = []
    for number, sizes in enumerate(tuning.cases):
        best = f"{_time(tuning.winner.times[number])}"
        base = tuning.baseline
        beside = "" if base is None or not tuning.is_improved else f", default {_time(base.times[number])}"
        at = _words(sizes) or "the only case"
        lines.append(f"Time at {at}: {best}{beside}.")
    return lines


def _search(tuning: KernelTuning) -> str:
    resumed = f", {tuning.resumed} taken over" if tuning.resumed else ""
    failed = f", {tuning.failed} failed" if tuning.failed else ""
    count, valid = len(tuning.trials), tuning.space.valid
    ended = _ENDED.get(tuning.ended, tuning.ended)
    return (
        f"Search: {count} trial{'s' if count != 1 else ''}{failed}{resumed} of {valid} valid configurations "
        f"({tuning.sampler}) in {seconds_text(tuning.seconds)}; {ended}."
    )


def _basis(tuning: KernelTuning) -> str:
    return "emulated, CPU times" if tuning.basis == "emulated" else tuning.basis


def _why_not(verdict: Verdict) -> str:
    outcome = verdict.outcome
    return outcome.reason if isinstance(outcome, Unavailable) else f"{problem(outcome)} ({verdict.basis})"


def _speedup_so_far(search: SearchProgress) -> float | None:
    return None if search.baseline is None or search.best is None else search.baseline / search.best


def _over_default(search: SearchProgress) -> str:
    speedup = _speedup_so_far(search)
    return "" if speedup is None else f" ({speedup:.2f}x the default)"


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"


def _time(made: Measurement) -> str:
    few = made.samples < FEWEST_FOR_INTERVAL
    return duration(made.seconds) + ("" if few else f" ± {_percent(made):.2g} %")


def _spread(contender: Contender) -> str:
    """The widest interval of its cases; nothing where one has none."""
    few = any(t.samples < FEWEST_FOR_INTERVAL for t in contender.times)
    return "" if few else f" ± {max(map(_percent, contender.times)):.2g} %"


def _percent(made: Measurement) -> float:
    return 50 * (made.high - made.low) / made.seconds if made.seconds else 0.0


def _words(values: Configuration) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())

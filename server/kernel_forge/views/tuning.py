"""What came of tuning a kernel, for people. The basis stands in the first line, with a caveat where there is one."""

from itertools import zip_longest

from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.tuning import Budget, CaseChoice, Contender, KernelTuning, Ratio, SearchProgress
from kernel_forge.views.finalists import ends_text, finalist_rows, passed_over
from kernel_forge.views.sparkline import sparkline
from kernel_forge.views.timing import duration, occupancy_text, time_text
from kernel_forge.views.tuning_failures import failure_texts, wrong_lines
from kernel_forge.views.words import case_text, caveat, pairs, problem, seconds_text, sentence

STAYS = "no configuration is faster for sure; the default stays"
NO_DEFAULT = "there is no default to compare with"
"""It does not run here, or fails the verification: the notes say which."""


def tuning_lines(tuning: KernelTuning, *, ascii_only: bool = False) -> list[str]:
    """The headline, what is known of the winner, how the search went, and what a reader must know."""
    warning = caveat(tuning.basis)
    spark = sparkline(tuning.convergence, ascii_only=ascii_only)
    lines = [_headline(tuning), *([f"  note: {warning}"] if warning is not None else [])]
    lines.extend(_row("faster", _faster(tuning)))
    if len(tuning.cases) == 1:
        lines.extend(_row("case", [pairs(tuning.cases[0]) or "the only one"]))
    else:
        lines.extend(_cases(tuning))
    lines.extend(_row("best for", [_choice(choice, tuning.baseline) for choice in tuning.choices]))
    lines.extend(_row("found", _found(tuning)))
    lines.extend(_row("verified", [_verified(tuning)]))
    lines.extend(_row("roofline", _roofline(tuning)))
    lines.extend(_row("occupancy", [occupancy_text(tuning.occupancy)] if tuning.occupancy is not None else []))
    lines.extend(_row("finalists", finalist_rows(tuning)))
    lines.extend(_row("not first", [why for why in (passed_over(tuning),) if why is not None]))
    lines.extend(_row("rejected", [f"{pairs(v.configuration)}: {_why(v)}" for v in tuning.rejected]))
    lines.extend(_row("space", [space_text(tuning)]))
    lines.extend(_row("search", [search_text(tuning)]))
    lines.extend(_row("failed", failure_texts(t for t in tuning.trials if not t.is_wrong)))
    lines.extend(_row("converged", [f"{spark}  (how far from the best after each trial, log scale)"] if spark else []))
    lines.extend(f"  note: {note}" for note in tuning.notes if note != warning)
    lines.extend(wrong_lines(tuning))
    return lines


def speedup_text(ratio: Ratio) -> str:
    """``1.35 times as fast as the default (95 % interval 1.31 to 1.39)``."""
    spread = f"{'95 % interval ' if ratio.has_interval else ''}{ends_text(ratio)}"
    return f"{ratio.value:.3g} times as fast as the default ({spread})"


def space_text(tuning: KernelTuning) -> str:
    """``1,234 valid configurations of 5,000 combinations``."""
    space = tuning.space
    return f"{space.valid:,} valid configuration{_s(space.valid)} of {space.combinations:,} combination" + _s(
        space.combinations
    )


def search_text(tuning: KernelTuning) -> str:
    """How many trials, of which kinds, why it ended, how long it took, and what repeats it."""
    early = sum(t.early for t in tuning.trials)
    parts = [f"{len(tuning.trials):,} trial{_s(len(tuning.trials))}"]
    parts += [f"{tuning.resumed:,} of them from an earlier run"] if tuning.resumed else []
    parts += [f"{tuning.failed:,} failed"] if tuning.failed else []
    parts += [f"{early:,} given up early"] if early else []
    how = f"--sampler {tuning.sampler} --seed {tuning.seed}"
    if tuning.basis.startswith("measured"):  # results are told as they come, see ARCHITECTURE.md
        how += ", which on a GPU repeats inputs and first choices only"
    run = "" if tuning.run is None else f"; run {tuning.run} in the history"
    return f"{', '.join(parts)}; {ended_text(tuning.ended, tuning.budget)}; {_took(tuning)} ({how}{run})"


def _took(tuning: KernelTuning) -> str:
    whole = seconds_text(tuning.seconds)
    if tuning.search_seconds is None:
        return f"{whole} with final timing and verification"
    return f"searched for {seconds_text(tuning.search_seconds)}, {whole} with final timing and verification"


def ended_text(ended: str, budget: Budget) -> str:
    """Why a search ended, in words."""
    match ended:
        case "trials":
            return "the trials of the budget are used up"
        case "seconds":
            return "the time of the budget is used up"
        case "patience":
            return f"no new best in {budget.patience} trials"
        case "exhausted":
            return "every valid configuration was tried"
        case "stopped":
            return "stopped on request"
        case _:
            return ended


def progress_lines(
    search: SearchProgress, width: int = 120, *, message: str = "", ascii_only: bool = False
) -> list[str]:
    """A search that runs, in lines of at most ``width`` characters (but at least 20).

    How far it is, after the ``message``; then, once there is a time, its best.
    """
    (count, *rest), best = _progress(search, ascii_only=ascii_only)
    lines = [[f"{message}: {count}" if message else count, *rest], *([best] if best else [])]
    return [_fitted(parts, width, ascii_only=ascii_only) for parts in lines]


def _progress(search: SearchProgress, *, ascii_only: bool) -> tuple[list[str], list[str]]:
    """How far it is, and its best with the convergence that led there."""
    limit = "" if search.limit is None else f"/{search.limit:,}"
    parts = [f"{search.trials:,}{limit} tried" + (f", {search.failed:,} failed" if search.failed else "")]
    if search.best is None:
        return [*parts, "no time yet"], []
    parts += [left_text(search.remaining)] if search.remaining is not None else []
    ratio = "" if search.baseline is None else f", {search.baseline / search.best:.3g}x the default"
    found = [f"best {duration(search.best)}{ratio}", sparkline(search.convergence, ascii_only=ascii_only)]
    return parts, [*found, *([pairs(search.configuration)] if search.configuration else [])]


def _fitted(parts: list[str], width: int, *, ascii_only: bool) -> str:
    line = (" - " if ascii_only else " · ").join(parts)
    more = "..." if ascii_only else "…"
    width = max(width, 20)
    return line if len(line) <= width else line[: width - len(more)] + more


def left_text(seconds: float) -> str:
    """``about 3 min left``."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    return f"about {round(seconds / 60)} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


def _headline(tuning: KernelTuning) -> str:
    winner = tuning.winner
    mark = "✓" if isinstance(tuning.verdict.outcome, Passed) else "✗"
    time = time_text(winner.times[0]) if len(winner.times) == 1 else _mean(winner)
    with_what = f" with {pairs(winner.configuration)}" if winner.configuration else ""
    if not tuning.is_improved:
        return f"{mark} {tuning.kernel}: {STAYS}: {time}{with_what} ({tuning.basis})"
    return f"{mark} {tuning.kernel}: {time}{with_what} ({tuning.basis})"


def _mean(contender: Contender) -> str:
    return f"{duration(contender.seconds)} (geometric mean of {len(contender.times)} cases)"


def _faster(tuning: KernelTuning) -> list[str]:
    base, ratio = tuning.baseline, tuning.winner.speedup
    if base is None:
        return [f"than nothing: {NO_DEFAULT}"]
    if not tuning.is_improved:
        return []
    time = time_text(base.times[0]) if len(base.times) == 1 else _mean(base)
    first = f"{speedup_text(ratio)}; " if ratio is not None else ""
    return [f"{first}the default takes {time} with {pairs(base.configuration)}"]


def _found(tuning: KernelTuning) -> list[str]:
    """In which trial the winner was found, and why it was tried, where that was not the sampler's choice."""
    configuration = dict(tuning.winner.configuration)
    at = next((i for i, t in enumerate(tuning.trials, 1) if dict(t.configuration) == configuration), None)
    if at is None or not tuning.is_improved:
        return []
    reason = tuning.trials[at - 1].reason
    return [f"in trial {at:,}" + ("" if reason is None else f", tried early: {reason}")]


def _row(name: str, texts: list[str]) -> list[str]:
    """``texts`` below each other, the first behind the name."""
    return [f"  {name if i == 0 else '':<10} {text}" for i, text in enumerate(texts)]


def _cases(tuning: KernelTuning) -> list[str]:
    base = tuning.baseline.times if tuning.baseline is not None and tuning.is_improved else ()
    head = ["case", "winner" if base else "default", *(["default", "ratio"] if base else [])]
    rows = [head]
    for sizes, own, other in zip_longest(tuning.cases, tuning.winner.times, base):
        rows.append([pairs(sizes), time_text(own), *_beside(own, other)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "   ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _beside(own: Measurement, other: Measurement | None) -> list[str]:
    return [] if other is None else [time_text(other), f"{other.seconds / own.seconds:.3g}"]


def _choice(choice: CaseChoice, baseline: Contender | None) -> str:
    stays = baseline is not None and dict(baseline.configuration) == dict(choice.configuration)
    faster = "" if choice.speedup is None else f", {speedup_text(choice.speedup)}"
    rest = ", the default" if stays else faster
    return f"{pairs(choice.sizes)}: {pairs(choice.configuration)}, {duration(choice.seconds)}{rest}"


def _verified(tuning: KernelTuning) -> str:
    outcome = tuning.verdict.outcome
    return sentence(outcome) if isinstance(outcome, Passed) else f"not: {problem(outcome)}: {sentence(outcome)}"


def _why(verdict: Verdict) -> str:
    if isinstance(verdict.outcome, Unavailable):
        return f"not verified: {sentence(verdict.outcome)}"
    case = "" if verdict.case is None else f" ({case_text(verdict.case)})"
    return f"faster in the search, but {problem(verdict.outcome)}{case}"


def _roofline(tuning: KernelTuning) -> list[str]:
    found = tuning.attained
    if found is None:
        return []
    if found.share is not None:
        return [f"{100 * found.share:.0f} % of the {found.bound} roof"]
    return [f"{100 * found.bandwidth_share:.0f} % of the copy bandwidth (operations are not known)"]


def _s(count: int) -> str:
    return "" if count == 1 else "s"

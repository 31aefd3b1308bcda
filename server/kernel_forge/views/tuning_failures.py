"""The failed trials of a tuning, for people: those that only do not fit, and those whose kernel is wrong."""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence

from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import KernelTuning, TunedTrial
from kernel_forge.views.words import pairs, set_options

SHOWN_FAILURES = 5
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_UNKNOWN = "without a reason"


def failure_texts(trials: Iterable[TunedTrial]) -> list[str]:
    """Failed trials by kind, the most frequent first, each with its first reason.

    Reasons that differ in their numbers alone are one.
    """
    ordered = _grouped(trials, lambda trial: _reason(trial).partition(":")[0])
    texts = []
    for group in ordered:
        others = len({_NUMBER.sub("#", _reason(t)) for t in group}) > 1
        texts.append(f"{len(group)} × {_reason(group[0])}{' (and other reasons)' if others else ''}")
    rest = sum(map(len, ordered[SHOWN_FAILURES:]))
    return texts[:SHOWN_FAILURES] + ([f"{rest} more of other kinds"] if rest else [])


def wrong_lines(tuning: KernelTuning) -> list[str]:
    """A warning of the configurations that are wrong, by cause: an example of each, and what shows it again."""
    groups = wrong_groups(tuning.trials)
    if not groups:
        return []
    count = sum(map(len, groups))
    are, them = (
        ("configuration that was tried is", "it") if count == 1 else ("configurations that were tried are", "them")
    )
    lines = [f"  warning: {count} {are} wrong: with {them} the kernel does not compute what its spec says"]
    for group in groups[:SHOWN_FAILURES]:
        lines.append(f"    {len(group)} × {wrong_text(group)}")
        lines.append(f"      {'e.g. ' if len(group) > 1 else ''}{_repeat(tuning, group[0].configuration)}")
    rest = sum(map(len, groups[SHOWN_FAILURES:]))
    return [*lines, f"    {rest} more of other causes"] if rest else lines


def wrong_groups(trials: Iterable[TunedTrial]) -> list[list[TunedTrial]]:
    """The trials whose kernel is wrong, by kind and place, the most frequent first."""
    return _grouped(
        (t for t in trials if t.is_wrong),
        lambda t: (_reason(t).partition(":")[0], _place(t) or _NUMBER.sub("#", _reason(t))),
    )


def wrong_text(group: Sequence[TunedTrial]) -> str:
    """``wrong: y[3] wrong value at scale.cu:12 (n = 77)``: the first of a group."""
    first = group[0]
    place = _place(first)
    at = "" if place is None else f" at {place}"
    return f"{_reason(first)}{at}{'' if not first.case else f' ({pairs(first.case)})'}"


def _grouped(trials: Iterable[TunedTrial], key: Callable[[TunedTrial], object]) -> list[list[TunedTrial]]:
    kinds: dict[object, list[TunedTrial]] = {}
    for trial in trials:
        if trial.seconds is None:
            kinds.setdefault(key(trial), []).append(trial)
    return sorted(kinds.values(), key=len, reverse=True)


def _reason(trial: TunedTrial) -> str:
    return trial.failure or _UNKNOWN


def _place(trial: TunedTrial) -> str | None:
    place = trial.place
    return None if place is None else f"{place.path}:{place.range.start.line + 1}"


def _repeat(tuning: KernelTuning, configuration: Configuration) -> str:
    device = "" if tuning.basis == "emulated" else f" --device {shlex.quote(tuning.device)}"
    what = shlex.quote(f"{tuning.path}:{tuning.kernel}")
    return f"kernel-forge verify {what}{device}{set_options(configuration)}"

"""Values of the command line's options."""

import argparse
import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.spec import Tunable
from kernel_forge.domain.tuning import Budget

MAX_SECONDS = 86400.0
MAX_COUNT = 1_000_000
BUDGET_FORMS = "write 200 (trials), 90s, 5m or 1h (time), or patience=30 (trials without a new best)"
_BUDGET = re.compile(
    r"(?P<trials>\d+)|(?P<seconds>\d+(?:\.\d+)?|\.\d+)(?P<unit>[smh])|patience=(?P<patience>\d+)", re.ASCII
)


def seed(text: str) -> int:
    """A seed: an integer from 0."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 0")
    return value


def count(text: str) -> int:
    """How many of something: an integer from 1 to a million."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 1 to {MAX_COUNT}")
    return value


def evaluations(text: str) -> int:
    """The budget of a replayed search: an integer from 1 to a million."""
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        if _BUDGET.fullmatch(text) is None or text.isdecimal():
            raise error
        why = "a replayed search has a number of evaluations; nothing runs, so no time passes"
        raise argparse.ArgumentTypeError(f"{text!r}: {why}") from None


def seconds(text: str) -> float:
    """A time limit: more than 0 seconds, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0 and up to {MAX_SECONDS:g}")
    return value


def limit(text: str) -> int | None:
    """How many at most: an integer from 1, or 0 for all (None)."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 0")
    if len(text) > 4300:  # int() refuses more digits
        return None
    found = int(text)
    return found if 0 < found < 2**63 else None  # more than a ledger can have is all


def folder(text: str) -> str:
    """A folder that exists, as an absolute path."""
    if not os.path.isdir(text):  # noqa: PTH112 (False for a name too long, where Path raises)
        raise argparse.ArgumentTypeError(f"there is no folder {text[:300]}")
    return str(Path(text).resolve())


def settings(texts: Sequence[str], tunables: Iterable[Tunable] | None) -> dict[str, Number]:
    """``NAME=VALUE`` texts as a configuration; ``tunables`` None where the specs do not tell which there are.

    Raises:
        UsageError: malformed, or no tunable of that name.
    """
    found = dict(_setting(text) for text in texts)
    if tunables is None:
        return found
    known = {t.name: t for t in tunables}
    for name, value in found.items():
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--set {name}: no spec has a tunable {name} (tunables: {names}){hint}")
        if isinstance(value, float) and not any(isinstance(v, float) for v in known[name].values):
            raise UsageError(f"--set {name}={value:g}: {name} takes integers")
    return found


def _setting(text: str, option: str = "--set", example: str = "BLOCK=128") -> tuple[str, Number]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"{option} {text}: write NAME=VALUE, for example {option} {example}")
    if value in ("true", "false"):
        return name, value == "true"
    try:
        number = Expression.parse(value).evaluate({})
    except ExpressionError:
        raise UsageError(f"{option} {text}: the value must be a number, true or false") from None
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError(f"{option} {text}: the value must be finite")
    return name, number


def sizes(texts: Sequence[str], option: str = "--size", example: str = "n=1048576") -> dict[str, int]:
    """``NAME=VALUE`` texts as sizes.

    Raises:
        UsageError: malformed, or no integer from 0.
    """
    found = {}
    for text in texts:
        name, value = _setting(text, option, example)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(f"{option} {text}: a size is an integer from 0")
        found[name] = value
    return found


def cases(texts: Sequence[str], common: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """``n=1024,m=64`` texts as sizes to tune for, each with the ``common`` ones; those alone where there are no texts.

    Raises:
        UsageError: malformed, a size twice in one case, or the same case twice.
    """
    found: list[dict[str, int]] = []
    for text in texts:
        parts = [part.strip() for part in text.split(",")]
        own = sizes(parts, "--case", "n=1024,m=64")
        if len(own) != len(parts):
            raise UsageError(f"--case {text}: a size is named twice")
        case = {**common, **own}
        if case in found:
            raise UsageError(f"--case {text}: that case is named twice")
        found.append(case)
    return tuple(found) if found else ((dict(common),) if common else ())


def budget(texts: Sequence[str]) -> Budget:
    """When a search ends. Without a text the default, :class:`Budget`; else the limits named, and no others.

    Raises:
        UsageError: malformed, out of range, or one kind of limit twice.
    """
    if not texts:
        return Budget()
    limits: dict[str, float] = {}
    for text in texts:
        match = _BUDGET.fullmatch(text)
        if match is None:
            raise UsageError(f"--budget {text}: {BUDGET_FORMS}")
        kind = next(k for k in ("patience", "seconds", "trials") if match[k])
        value = float(match[kind]) * {"m": 60, "h": 3600}.get(match["unit"], 1)
        most = MAX_SECONDS if kind == "seconds" else MAX_COUNT
        if not 0 < value <= most:
            raise UsageError(f"--budget {text}: above 0 and up to {most:.15g} {kind}")
        if kind in limits:
            raise UsageError(f"--budget {text}: a second limit of {kind}; {BUDGET_FORMS}")
        limits[kind] = value
    trials, patience = (None if (v := limits.get(k)) is None else int(v) for k in ("trials", "patience"))
    return Budget(trials, limits.get("seconds"), patience)


def known_sampler(name: str) -> str:
    """``name``, where it is one of the search.

    Raises:
        UsageError: there is none of that name.
    """
    from kernel_forge.search import SAMPLERS  # Optuna takes a second to import

    if name not in SAMPLERS:
        near = difflib.get_close_matches(name, SAMPLERS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"there is no sampler {name} (samplers: {', '.join(SAMPLERS)}){hint}")
    return name


def defines(texts: Sequence[str]) -> dict[str, str]:
    """``NAME[=VALUE]`` texts as macros.

    Raises:
        UsageError: malformed.
    """
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise UsageError(f"-D {text}: write NAME or NAME=VALUE")
        if len(value.splitlines()) > 1 or value.endswith(("\n", "\r")):
            raise UsageError(f"-D {name}: the value has a line break; a macro is one line")
        found[name] = value if equals else "1"
    return found

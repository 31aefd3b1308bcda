"""Values of the command line's options."""

import argparse
import difflib
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.spec import Tunable

MAX_SECONDS = 86400.0


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
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 1 to 1000000")
    return value


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
    return int(text) or None


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


def sizes(texts: Sequence[str]) -> dict[str, int]:
    """``NAME=VALUE`` texts as sizes.

    Raises:
        UsageError: malformed, or no integer from 0.
    """
    found = {}
    for text in texts:
        name, value = _setting(text, "--size", "n=1048576")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(f"--size {text}: a size is an integer from 0")
        found[name] = value
    return found


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

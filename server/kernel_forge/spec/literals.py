"""Numbers as C++ writes them: what a text means, and another value in the same style."""

import math
import re

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression, Number

_LITERAL = re.compile(
    r"(?P<open>[(\s]*)(?P<sign>[-+]?)\s*"
    r"(?:(?P<word>true|false)"
    r"|(?P<hex>0[xX][0-9a-fA-F']+)(?P<hex_suffix>[uUlL]*)"
    r"|(?P<real>(?:\d[\d']*\.[\d']*|\.\d[\d']*)(?:[eE][-+]?\d+)?|\d[\d']*[eE][-+]?\d+)(?P<real_suffix>[fFlL]?)"
    r"|(?P<binary>0[bB][01']+)(?P<binary_suffix>[uUlL]*)"
    r"|(?P<whole>\d[\d']*)(?P<suffix>[uUlL]*))"
    r"(?P<close>[)\s]*)"
)
_LARGEST = 2**63


def value_of(text: str) -> Number | None:
    """The number that ``text`` stands for: a literal of any kind, or arithmetic over plain ones; None for all else."""
    match = _match(text)
    if match is not None:
        return _of_literal(match)
    try:
        value = Expression.parse(text.strip().rstrip("uUlL")).evaluate({})
    except ExpressionError:
        return None
    return value


def spelled(value: Number, like: str) -> str | None:
    """``value`` as a literal in the style of the text ``like``: its brackets, suffix and base; None without a literal.

    ``128u`` becomes ``256u``, ``(0.5f)`` becomes ``(0.25f)``, ``true`` becomes ``false``.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, float) and abs(value) >= _LARGEST:
        return None
    match = _match(like)
    if match is None:
        return _plain(value)
    return match["open"] + _in_style(value, match) + match["close"]


def _match(text: str) -> re.Match[str] | None:
    match = _LITERAL.fullmatch(text)
    if match is None or match["open"].count("(") != match["close"].count(")") or (match["word"] and match["sign"]):
        return None
    if match["whole"] and _is_octal(match["whole"]) and re.search("[89]", match["whole"]):
        return None
    return match


def _is_octal(digits: str) -> bool:
    return len(digits) > 1 and digits.startswith("0")


def _of_literal(match: re.Match[str]) -> Number:
    if match["word"]:
        return match["word"] == "true"
    sign = -1 if match["sign"] == "-" else 1
    if match["real"]:
        return sign * float(match["real"].replace("'", ""))
    if match["hex"]:
        return sign * int(match["hex"].replace("'", ""), 16)
    if match["binary"]:
        return sign * int(match["binary"].replace("'", ""), 2)
    digits = match["whole"].replace("'", "")
    return sign * int(digits, 8 if _is_octal(digits) else 10)


def _in_style(value: Number, match: re.Match[str]) -> str:
    if match["word"]:
        return _plain(bool(value)) if value in (0, 1) else _plain(value)
    if match["real"]:
        return repr(float(value)) + match["real_suffix"]
    if isinstance(value, float):
        return repr(value)
    value = int(value)
    suffix = match["hex_suffix"] or match["binary_suffix"] or match["suffix"] or ""
    if value < 0:  # -1u would be a large number
        suffix = suffix.translate(str.maketrans("", "", "uU"))
    return (f"{value:#x}" if match["hex"] else str(value)) + suffix


def _plain(value: Number) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)

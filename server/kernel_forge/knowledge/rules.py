"""The rules of ``kb/rules/tunables.toml``: which values of a tunable are promising, by its name and its role."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.hardware import GpuFacts, HardwareLimits
from kernel_forge.resources import kb_folder

VERSION = 1
ROLES = ("threads", "work", "code")
_KEYS = {"id", "names", "scores", "reason"}
_OPTIONAL = {"role", "switch", "where"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; the file says what the fields mean.

    ``scores`` are (value, score) pairs, values rising, scores in (0, 1].
    """

    id: str
    names: re.Pattern[str]
    role: str | None
    switch: bool
    where: Expression | None
    scores: tuple[tuple[float, float], ...]
    reason: str

    def applies(self, name: str, role: str, values: Sequence[object], gpu: GpuFacts | None) -> bool:
        """Whether it says something of a tunable with that name, role and list of values, on that GPU.

        A rule with a condition says nothing where the GPU, or a fact that it names, is not known.
        """
        if not self.names.fullmatch(name) or self.role not in (None, role):
            return False
        if not all(isinstance(v, int | float) for v in values) or (self.switch and not set(values) <= {0, 1}):
            return False
        if self.where is None:
            return True
        facts = {} if gpu is None else facts_of(gpu)
        return self.where.names <= facts.keys() and bool(self.where.evaluate(facts))

    def score(self, value: float) -> float:
        """Between 0 and 1, 1 the best: on straight lines between the pairs, flat outside."""
        return float(np.interp(value, [v for v, _ in self.scores], [s for _, s in self.scores]))


def facts_of(gpu: GpuFacts) -> dict[str, Number]:
    """What conditions may name; a fact that is not known is missing."""
    major, minor = gpu.limits.capability
    facts: dict[str, Number] = {
        "capability": 10 * major + minor,
        "multiprocessors": gpu.multiprocessors,
        "shared_kib": gpu.limits.shared_bytes / 1024,
    }
    if gpu.l2_bytes is not None:
        facts["l2_mib"] = gpu.l2_bytes / 2**20
    if gpu.bytes_per_second is not None:
        facts["gb_per_second"] = gpu.bytes_per_second / 1e9
        facts["per_multiprocessor_gb_per_second"] = gpu.bytes_per_second / 1e9 / gpu.multiprocessors
    return facts


_EXAMPLE = facts_of(
    GpuFacts(HardwareLimits((9, 0), 2048, 32, 65536, 233472, 1024, 65536, 232448, 8), 132, 4.8e12, 60 << 20)
)
"""An H200: what a condition must be able to say of a GPU of which everything is known."""


@cache
def tunable_rules() -> tuple[Rule, ...]:
    """The rules that ship with the package.

    Raises:
        UsageError: as :func:`read_rules`.
    """
    return read_rules(kb_folder() / "rules" / "tunables.toml")


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in a file.

    Raises:
        UsageError: it cannot be read, has another version, or a rule is not as it must be; the message names the rule.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if data.get("version") != VERSION:
        raise UsageError(f"{path} has version {data.get('version')!r}, not {VERSION}")
    listed = data.get("rule", [])
    is_tables = isinstance(listed, list) and all(isinstance(table, dict) for table in listed)
    if not is_tables or data.keys() - {"version", "rule"}:
        raise UsageError(f"{path}: it has a version and [[rule]] tables, nothing else")
    rules = []
    for number, table in enumerate(listed, 1):
        name = table.get("id", f"number {number}")
        try:
            rules.append(_rule(table))
        except (ValueError, TypeError, ExpressionError, re.error) as error:
            raise UsageError(f"{path}, rule {name}: {error}") from None
    ids = [rule.id for rule in rules]
    twice = next((i for i in ids if ids.count(i) > 1), None)
    if twice is not None:
        raise UsageError(f"{path}, rule {twice}: the id is there twice")
    return tuple(rules)


def _rule(table: Mapping[str, Any]) -> Rule:
    missing, unknown = sorted(_KEYS - table.keys()), sorted(table.keys() - _KEYS - _OPTIONAL)
    if missing or unknown:
        raise ValueError(f"it lacks {missing[0]}" if missing else f"{unknown[0]} is no key of a rule")
    name, names, reason = (table[key] for key in ("id", "names", "reason"))
    role, switch, where = table.get("role"), table.get("switch", False), table.get("where")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError("the id is a word of small letters, digits and hyphens")
    if not isinstance(names, str):
        raise ValueError("names is a regular expression")
    if role is not None and role not in ROLES:
        raise ValueError(f"role is {role!r}, none of {', '.join(ROLES)}")
    if not isinstance(switch, bool):
        raise ValueError("switch is true or false")
    if not isinstance(reason, str) or not reason.strip() or "\n" in reason:
        raise ValueError("the reason is one line of text")
    condition = None if where is None else _condition(where)
    return Rule(
        name, re.compile(names, re.IGNORECASE), role, switch, condition, _scores(table["scores"]), reason.strip()
    )


def _condition(text: object) -> Expression:
    if not isinstance(text, str):
        raise ValueError("where is an expression")
    condition = Expression.parse(text)
    unknown = sorted(condition.names - _EXAMPLE.keys())
    if unknown:
        raise ValueError(f"where names {unknown[0]}, which is none of {', '.join(_EXAMPLE)}")
    condition.evaluate(_EXAMPLE)
    return condition


def _scores(listed: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(listed, list) or not listed or not all(isinstance(p, list) and len(p) == 2 for p in listed):
        raise ValueError("scores are [value, score] pairs")
    if not all(isinstance(n, int | float) for pair in listed for n in pair):
        raise ValueError("scores are pairs of numbers")
    pairs = tuple((float(value), float(score)) for value, score in listed)
    values = [value for value, _ in pairs]
    if values != sorted(set(values)):
        raise ValueError("the values of scores must rise")
    outside = next((score for _, score in pairs if not 0 < score <= 1), None)
    if outside is not None:
        raise ValueError(f"a score is {outside:g}, not above 0 and up to 1")
    return pairs

"""All valid configurations: parameters joined one by one, constraints applied as soon as they can be.

Parameters that no constraint connects are enumerated apart: their combinations are all valid, so they can be counted,
and picked from, without being made.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.search.constraints import Constraint, Ranks, parts_of
from kernel_forge.search.parameters import Parameter

MOST_ROWS = 30_000_000
"""Rows of one table; beyond that the parameters must be constrained more, or have fewer values."""


MOST_NAMED = 8
"""Parameters in a message."""


class EmptySpace(UsageError):
    """No configuration is valid; the message names the constraint that rules out the last of them."""


@dataclass(frozen=True, slots=True)
class Component:
    """Parameters that constraints connect: ``columns`` of the space, and every valid combination of theirs.

    ``table`` has shape ``(combinations, len(columns))``.
    """

    columns: tuple[int, ...]
    table: Ranks


@dataclass(frozen=True, slots=True)
class WithoutValue:
    """A constraint that some combinations have no value for: they count as ruled out."""

    constraint: str
    combinations: int
    reason: str


def enumerate_components(
    parameters: Sequence[Parameter], constraints: Sequence[Expression], sizes: Mapping[str, Number]
) -> tuple[list[Component], list[WithoutValue]]:
    """The components, in the order of their first parameter, and the constraints without a value somewhere.

    Raises:
        EmptySpace: nothing is left.
        UsageError: a constraint names something that is neither parameter nor size, or a component is too large.
    """
    parts = parts_of(constraints)
    names = [p.name for p in parameters]
    for part in parts:
        for name in sorted(part.expression.names - set(names) - set(sizes)):
            raise UsageError(f"{name} in the constraint {part.written} is neither a parameter nor a size")
    groups = _groups(names, parts)
    for group in groups:
        refuse_too_many(parameters, group)
    notes: list[WithoutValue] = []
    found = []
    for group in groups:
        own = {names[k] for k in group}
        found.append(_join(parameters, group, [p for p in parts if p.expression.names & own], sizes, notes))
    for part in parts:  # of sizes alone: all configurations or none
        if not part.expression.names & set(names):
            checked = part.check((), np.zeros((1, 0), np.int16), sizes)
            if not checked.holds[0]:
                raise EmptySpace(f"no configuration is valid: {part.written} does not hold{_because(checked.reason)}")
    return found, notes


def refuse_too_many(parameters: Sequence[Parameter], group: Sequence[int]) -> None:
    """Refuse a group whose combinations, valid or not, have no numbers of 64 bits: rows are found by such numbers.

    Raises:
        UsageError: it is refused.
    """
    if math.prod(len(parameters[k].values) for k in group) >= 2**62:
        named = [parameters[k].name for k in group]
        some = ", ".join(
            named if len(named) <= MOST_NAMED else [*named[:MOST_NAMED], f"and {len(named) - MOST_NAMED} more"]
        )
        raise UsageError(f"too many combinations of {some}; give fewer values")


def _groups(names: Sequence[str], parts: Sequence[Constraint]) -> list[list[int]]:
    group_of = {name: {name} for name in names}
    for part in parts:
        used = [n for n in names if n in part.expression.names]
        if used:
            union = set().union(*(group_of[n] for n in used))
            group_of.update(dict.fromkeys(union, union))
    distinct = {id(g): g for g in group_of.values()}.values()
    return sorted([k for k, name in enumerate(names) if name in group] for group in distinct)


def _join(
    parameters: Sequence[Parameter],
    group: Sequence[int],
    parts: Sequence[Constraint],
    sizes: Mapping[str, Number],
    notes: list[WithoutValue],
) -> Component:
    table = np.zeros((1, 0), np.int16)
    columns: list[int] = []
    open_parts, applied = list(parts), list[str]()
    for column in _order(parameters, group, parts):
        count = len(parameters[column].values)
        if len(table) * count > MOST_ROWS:
            named = ", ".join(parameters[k].name for k in group)
            raise UsageError(f"more than {MOST_ROWS:,} combinations of {named}; constrain them or give fewer values")
        new = np.tile(np.arange(count, dtype=np.int16), len(table))
        table = np.column_stack([np.repeat(table, count, axis=0), new])
        columns.append(column)
        here = [parameters[k] for k in columns]
        bound = {p.name for p in here} | set(sizes)
        for part in [p for p in open_parts if p.expression.names <= bound]:
            open_parts.remove(part)
            checked = part.check(here, table, sizes)
            if checked.without_value:
                notes.append(WithoutValue(part.written, checked.without_value, checked.reason))
            left = table[checked.holds]
            if not len(left):
                raise EmptySpace(_verdict(part, len(table), applied, checked.without_value, checked.reason))
            table = left
            if part.written not in applied:
                applied.append(part.written)
    order = np.argsort(columns)
    table = np.ascontiguousarray(table[:, order])
    if columns != sorted(columns):
        lengths = [len(parameters[k].values) for k in sorted(columns)]
        table = table[np.argsort(np.ravel_multi_index(list(table.T), lengths))]
    return Component(tuple(sorted(columns)), table)


def _order(parameters: Sequence[Parameter], group: Sequence[int], parts: Sequence[Constraint]) -> list[int]:
    """Parameters in the order in which the next one lets most constraints be applied, few values first."""
    left, order = list(group), list[int]()
    while left:
        bound = {parameters[k].name for k in order}

        def gain(column: int, bound: set[str] = bound) -> tuple[int, int, int]:
            name = parameters[column].name
            mine = [p for p in parts if name in p.expression.names]
            own = {q.name for q in parameters}
            closed = sum(p.expression.names & own <= bound | {name} for p in mine)
            return -closed, len(parameters[column].values), column

        best = min(left, key=gain)
        order.append(best)
        left.remove(best)
    return order


def _verdict(part: Constraint, rows: int, applied: Sequence[str], without_value: int, reason: str) -> str:
    others = [text for text in applied if text != part.written]
    left = f" of the {rows:,} combinations that satisfy {' and '.join(others)}" if others else ""
    why = _because(reason) if without_value else ""
    return f"no configuration is valid: none{left} satisfies {part.written}{why}"


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""

"""Numbers of a launch that are the values of its template arguments: they hold for that instance alone."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.source import LaunchSite, SourceFile
from kernel_forge.spec.cpp_expressions import host_constant

_NUMBER = r"(?<![\w.]){}(?![\w.])"
_DIVISOR = r"(?:/ *|\bcdiv\([^,]*, *){}(?![\w.])"
_MOST_FACTORS = 3


@dataclass(frozen=True, slots=True)
class InTerms:
    """Extents with names in place of their values.

    Attributes:
        texts: the extents so written; as they were where ``is_sure`` is false.
        names: the parameters whose values are numbers in the extents.
        is_sure: whether each number is the value of one parameter only.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]
    is_sure: bool


def values_at(source: SourceFile, site: LaunchSite, params: Iterable[str | None]) -> Mapping[str, int]:
    """The numbers that a launch gives for its template arguments, by the names in ``params``, in their order.

    An argument whose name is None is left out, as is one that is no number.
    """
    found = {}
    for text, name in zip(site.template_args, params, strict=False):
        value = None if name is None else host_constant(text, site, source)
        if name is not None and value is not None:
            found[name] = value
    return found


def in_terms_of(values: Mapping[str, int], extents: Sequence[Expression]) -> InTerms:
    """``extents`` with the names of ``values`` where they have their values; 0 and 1 stand for nothing.

    What is divided by may be the product of some: ``(n + 511) / 512`` is of blocks of 128 threads with 4 items each.
    """
    texts = [_plain(each) for each in extents]
    named: dict[int, list[tuple[str, ...]]] = {}
    several = {name: value for name, value in values.items() if value > 1}
    for count in range(1, min(len(several), _MOST_FACTORS) + 1):
        for group in combinations(several, count):
            value = prod(several[name] for name in group)
            pattern = (_NUMBER if count == 1 else _DIVISOR).format(value)
            if any(re.search(pattern, text) for text in texts):
                named.setdefault(value, []).append(group)
    names = tuple(dict.fromkeys(name for same in named.values() for group in same for name in group))
    if any(len(same) > 1 for same in named.values()):
        return InTerms(tuple(texts), names, is_sure=False)
    for value, (group,) in named.items():
        # (n + 255) / 256 rounds up: its 255 is the same value.
        name = " * ".join(group)
        whole = name if len(group) == 1 else f"({name})"
        texts = [
            re.sub(_NUMBER.format(value), whole, re.sub(rf"\+ *{value - 1}(?![\w.])", f"+ {name} - 1", text))
            if re.search(_NUMBER.format(value), text)
            else text
            for text in texts
        ]
    return InTerms(tuple(texts), names, is_sure=True)


def _plain(extent: Expression) -> str:
    if extent.names:
        return extent.text
    try:
        return str(extent.evaluate_int({}))
    except ExpressionError:
        return extent.text

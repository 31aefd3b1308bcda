"""Numbers of a launch that are the values of its template arguments: they hold for that instance alone."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.source import LaunchSite, SourceFile
from kernel_forge.spec.cpp_expressions import host_constant

_NUMBER = r"(?<![\w.]){}(?![\w.])"


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
    """``extents`` with the names of ``values`` where they have their values; 0 and 1 stand for nothing."""
    texts = [_plain(each) for each in extents]
    named: dict[int, list[str]] = {}
    for name, value in values.items():
        if value > 1 and any(re.search(_NUMBER.format(value), text) for text in texts):
            named.setdefault(value, []).append(name)
    names = tuple(name for same in named.values() for name in same)
    if any(len(same) > 1 for same in named.values()):
        return InTerms(tuple(texts), names, is_sure=False)
    for value, (name,) in named.items():
        # (n + 255) / 256 rounds up: its 255 is the same value.
        texts = [
            re.sub(_NUMBER.format(value), name, re.sub(rf"\+ *{value - 1}(?![\w.])", f"+ {name} - 1", text))
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

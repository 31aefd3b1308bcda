"""Findings of a finished job, kept in step with what is typed afterwards.

A job sees the text as it was when it started. Its findings move with edits above them and vanish when
their own lines change: a squiggle on a line that has been rewritten would be a lie.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.text import Position, Range


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a document: ``range`` of the old text became ``new_text``.

    ``line_end`` tells whether ``range`` starts at the end of its line, so that inserting a line break
    there leaves that line as it was.
    """

    range: Range
    new_text: str
    line_end: bool = False

    @property
    def changed_lines(self) -> tuple[int, int]:
        """First and one past the last line of the old text whose content is no longer the same."""
        first, last = self.range.start.line, self.range.end.line
        starts_line = self.range.start.column == 0
        if starts_line and self.range.end.column == 0 and (not self.new_text or _ends_line(self.new_text)):
            return first, last
        if self.line_end and self.new_text.startswith(("\n", "\r")):
            first += 1
        return first, last + 1

    @property
    def line_delta(self) -> int:
        """How many lines everything below moves down."""
        return _line_breaks(self.new_text) - (self.range.end.line - self.range.start.line)


def shift(findings: Iterable[Finding], edit: Edit) -> tuple[Finding, ...]:
    """``findings`` after ``edit``: moved with the text, without those whose own lines were changed.

    Related places in the same file move too; those on changed lines are left out.
    """
    kept = []
    for finding in findings:
        moved = shift_range(finding.range, edit)
        if moved is None:
            continue
        related = []
        for place in finding.related:
            if place.location.path != finding.path:
                related.append(place)
                continue
            where = shift_range(place.location.range, edit)
            if where is not None:
                related.append(replace(place, location=replace(place.location, range=where)))
        # Fixes carry ranges of the old text: after an edit they would overwrite something else.
        kept.append(replace(finding, range=moved, related=tuple(related), fixes=()))
    return tuple(kept)


def shift_range(old: Range, edit: Edit) -> Range | None:
    """``old`` after ``edit``, or None where one of its lines was changed."""
    first, stop = edit.changed_lines
    last = old.end.line - 1 if old.end.column == 0 and old.end.line > old.start.line else old.end.line
    if first < stop and old.start.line < stop and first <= last:
        return None
    if last < first:
        return old
    delta = edit.line_delta
    return Range(
        Position(old.start.line + delta, old.start.column),
        Position(old.end.line + delta, old.end.column),
    )


def _line_breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _ends_line(text: str) -> bool:
    return text.endswith(("\n", "\r"))

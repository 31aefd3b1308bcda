"""The chain of hashes: each entry's covers its number, its content and the hash of the entry before.

    hash = SHA-256( number LF previous LF content )     number in decimal, previous 64 hexadecimal digits, all ASCII

Pure: rows in, findings out.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernel_forge.domain.record import Anchor, Audit, BadEntry
from kernel_forge.ledger.rows import Lookup, lookup_of

GENESIS = "0" * 64
"""What the first entry has in place of a hash before it."""
MARK_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, as read: of any type, should somebody have had a hand in it."""

    number: object
    content: object
    previous: object
    hash: object
    lookup: Lookup


def digest(number: int, previous: str, content: str) -> str:
    """The hash of an entry, in hexadecimal."""
    # Text outside of ASCII cannot be ours, but shall be found out and not end the audit.
    return hashlib.sha256(f"{number}\n{previous}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()


def check(rows: Iterator[Row] | Iterable[Row], anchor: Anchor | None) -> Audit:
    """Check the ``rows``, in the order of their numbers, against each other and against ``anchor``."""
    hashes: list[str] = []
    for row in rows:
        bad = _problem(row, len(hashes) + 1, hashes[-1] if hashes else GENESIS, anchor)
        if bad is not None:
            return Audit(_anchor(hashes[: bad.number - 1]), bad)
        hashes.append(str(row.hash))
    bad = None
    if anchor is not None and len(hashes) < anchor.count:
        bad = BadEntry(len(hashes) + 1, f"is missing: there were {anchor.count} when the anchor was taken")
    return Audit(_anchor(hashes), bad)


def check_part(rows: Iterable[Row], first: int, before: str) -> BadEntry | None:
    """Check ``rows``, the entries from number ``first`` on, which follow one with the hash ``before``."""
    for expected, row in enumerate(rows, first):
        bad = _problem(row, expected, before, None)
        if bad is not None:
            return bad
        before = str(row.hash)
    return None


def _problem(row: Row, expected: int, before: str, anchor: Anchor | None) -> BadEntry | None:
    """What is wrong with ``row``, which follows ``expected - 1`` entries, the last with the hash ``before``."""
    number, content, previous = row.number, row.content, row.previous
    if not isinstance(number, int) or number < expected:
        return BadEntry(expected, f"has number {number!r}")
    if number > expected:
        return BadEntry(expected, f"is missing: entry {number} comes next")
    if not isinstance(content, str) or not isinstance(previous, str):
        return BadEntry(expected, "is not text as it was written")
    if row.hash != digest(number, previous, content):
        return BadEntry(expected, "was changed: its hash does not belong to it")
    if previous != before:
        if expected == 1:
            return BadEntry(1, "is not the first: another stood before it")
        return BadEntry(expected - 1, f"was written anew: entry {expected} was written after another")
    if row.lookup != lookup_of(content):
        return BadEntry(expected, "has columns that do not say what its content says")
    if anchor is not None and expected <= anchor.count:
        of_anchor = anchor.hash if expected == anchor.count else anchor.marks[expected - 1]
        if not str(row.hash).startswith(of_anchor):
            return BadEntry(expected, "was written anew: it was another when the anchor was taken")
    return None


def _anchor(hashes: list[str]) -> Anchor:
    return Anchor(len(hashes), hashes[-1] if hashes else GENESIS, tuple(h[:MARK_DIGITS] for h in hashes))

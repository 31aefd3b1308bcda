"""A record as the content of a row, and back.

Fields may be added within a version of the schema as long as they have defaults: an older row is read with those. What
an older Kernel Forge could not read asks for a new version (:mod:`kernel_forge.ledger.schema`).
"""

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kernel_forge.domain.record import (
    Entry,
    Generation,
    Kind,
    Platform,
    Record,
    Subject,
    Unreadable,
    canonical,
    likeness,
)
from kernel_forge.ledger.shapes import check_shape


class Lookup(NamedTuple):
    """What rows are found by: columns that repeat a part of the content."""

    kind: str | None
    path: str | None
    kernel: str | None
    run: int | None
    key: str | None


def content_of(record: Record, recorded: datetime) -> str:
    """The canonical JSON of ``record``.

    Raises:
        ValueError: a float that is not finite, or a time without its zone.
    """
    data = asdict(record)
    subject, platform = record.subject, record.platform
    key = None if subject is None or platform is None else likeness(subject, platform)
    data |= {"kind": record.kind.value, "started": _stamp(record.started), "recorded": _stamp(recorded), "key": key}
    return canonical(data)


def lookup_of(content: str) -> Lookup:
    """The columns of a row with that ``content``; empty where it is no content of ours."""
    try:
        data = json.loads(content)
        subject = data.get("subject") or {}
        return Lookup(data.get("kind"), column(subject.get("path")), subject.get("kernel"), data["run"], data["key"])
    except (ValueError, AttributeError, KeyError, RecursionError):
        return Lookup(None, None, None, None, None)


def column(text: str | None) -> str | None:
    """``text`` as a column can hold it: a file's name may hold bytes that are no character."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What content that is none of ours raises when it is read."""


def checked_entry(number: int, content: str, previous: str, digest: str) -> Entry | Unreadable:
    """The entry of a row that somebody else may have written."""
    try:
        check_shape(_parsed(content))
        return entry_of(number, content, previous, digest)
    except UNREADABLE as error:
        return Unreadable(number, str(error).split("\n", 1)[0][:200] or type(error).__name__)


def entry_of(number: int, content: str, previous: str, digest: str) -> Entry:
    """The entry of a row that was written from a record."""
    data = _parsed(content)
    recorded, key = _moment(data.pop("recorded")), data.pop("key")
    data["kind"] = Kind(data["kind"])
    data["started"] = _moment(data["started"])
    if data["subject"] is not None:
        data["subject"] = Subject(**data["subject"])
    if data["platform"] is not None:
        lists = {name: tuple(data["platform"].get(name, ())) for name in ("include_dirs", "flags")}
        data["platform"] = Platform(**{**data["platform"], **lists})
    if data["generation"] is not None:
        data["generation"] = Generation(**data["generation"])
    return Entry(number, recorded, Record(**data), key, previous, digest)


def _parsed(content: str) -> dict[str, Any]:
    """The JSON object in ``content``; ValueError for numbers that no float can be, NaN and infinities among them."""
    found: dict[str, Any] = json.loads(content, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    return found


def _integer(text: str) -> int:
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number of ours")
    return number


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time has no zone")
    return moment


def _stamp(moment: datetime) -> str:
    """``2026-12-02T23:10:05.123456Z``."""
    if moment.tzinfo is None:
        raise ValueError("a time of the ledger needs its zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

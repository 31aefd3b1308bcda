"""A record as the content of a row, and back.

Fields may be added within a version of the schema as long as they have defaults: an older row is read with those. What
an older Kernel Forge could not read asks for a new version (:mod:`kernel_forge.ledger.schema`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from types import NoneType
from typing import Any, NamedTuple

from kernel_forge.domain.record import Entry, Generation, Kind, Platform, Record, Subject, canonical, likeness


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


_TEXT, _TABLE, _LIST, _MAYBE_TEXT = str, dict, list, (str, NoneType)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("basis", "tool", "started"), _TEXT),
    **dict.fromkeys(("outcome", "configuration", "sizes", "details"), _TABLE),
    **dict.fromkeys(("subject", "platform", "measurement", "generation"), (dict, NoneType)),
    **dict.fromkeys(("seed", "run"), (int, NoneType)),
    "seconds": (int, float, NoneType),
}
_SUBJECT_TYPES = {**dict.fromkeys(("path", "kernel", "source", "spec"), _TEXT), "files": _TABLE}
_PLATFORM_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("device", "basis", "description"), _TEXT),
    **dict.fromkeys(("facts", "defines"), _TABLE),
    **dict.fromkeys(("compiler", "driver"), _MAYBE_TEXT),
    **dict.fromkeys(("include_dirs", "flags"), _LIST),
}


def _check(data: Mapping[str, object], types: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raise TypeError where a field is of another type: whoever can write the file can write anything into it."""
    for name, kind in types.items():
        if name in data and not isinstance(data[name], kind):
            raise TypeError(f"{name} is no {kind}")


def entry_of(number: int, content: str, previous: str, digest: str) -> Entry:
    """The entry of a row.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, RecursionError: the content is none of ours.
    """
    data: dict[str, Any] = json.loads(content)
    recorded, key = datetime.fromisoformat(data.pop("recorded")), data.pop("key")
    _check(data, _TYPES)
    data["kind"] = Kind(data["kind"])
    data["started"] = datetime.fromisoformat(data["started"])
    if data["subject"] is not None:
        _check(data["subject"], _SUBJECT_TYPES)
        data["subject"] = Subject(**data["subject"])
    if data["platform"] is not None:
        _check(data["platform"], _PLATFORM_TYPES)
        lists = {name: tuple(data["platform"][name]) for name in ("include_dirs", "flags")}
        data["platform"] = Platform(**{**data["platform"], **lists})
    if data["generation"] is not None:
        data["generation"] = Generation(**data["generation"])
    return Entry(number, recorded, Record(**data), key, previous, digest)


def _stamp(moment: datetime) -> str:
    """``2026-12-02T23:10:05.123456Z``."""
    if moment.tzinfo is None:
        raise ValueError("a time of the ledger needs its zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

"""``kernel-forge history``."""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kernel_forge import __version__
from kernel_forge.cli.output import may_be_closed
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.record import Entry, Kind, Selection, Unreadable
from kernel_forge.ports import Ledger
from kernel_forge.views.history import End, entry_json, entry_line, entry_lines

LedgerOf = Callable[[str], Ledger]
"""The ledger of the project that a file or folder belongs to."""
RUNS = (Kind.VERIFY, Kind.TIME, Kind.TUNE)


def history_command(options: argparse.Namespace, ledger_of: LedgerOf) -> int:
    """List the runs of a project, a file or a kernel, the newest first; or show one run in full. 0 whatever they say.

    Raises:
        UsageError: there is no such run, or the ledger cannot be read.
    """
    what: str | None = options.what
    if what is not None and what.isdecimal() and len(what) < 19 and not os.path.exists(what):  # noqa: PTH110
        return _show_one(int(what), ledger_of(options.project), as_json=options.json)
    path, kernel = _file_and_kernel(what) if what is not None else (None, None)
    ledger = ledger_of(options.project if path is None else str(path))
    selection = Selection(path=None if path is None else str(path), kernel=kernel, kinds=RUNS, limit=options.limit)
    entries = ledger.listing(selection)
    if not entries and path is not None and kernel is None and what is not None and not path.exists():
        ledger = ledger_of(options.project)  # no file of that name: it may be a kernel's
        entries = ledger.listing(replace(selection, path=None, kernel=what))
    with may_be_closed():
        if options.json:
            _print_json(ledger, entries)
        elif entries:
            print("\n".join(entry_line(entry, end=_end_of(entry, ledger)) for entry in entries))
        else:
            print(f"no runs{'' if what is None else _of(what, path)} in {ledger.place}")
    return 0


def _of(what: str, path: Path | None) -> str:
    is_there = path is None or path.exists()
    return f" of {what}" if is_there else f" of a file or kernel {what} (a kernel of one file is FILE:KERNEL)"


def _show_one(number: int, ledger: Ledger, *, as_json: bool) -> int:
    """A run with everything that belongs to it (the trials of a search, in their order)."""
    entry = ledger.entry(number)
    if entry is None:
        raise UsageError(f"there is no run {number} in {ledger.place}")
    parts = tuple(reversed(ledger.listing(Selection(run=number))))
    with may_be_closed():
        if as_json:
            _print_json(ledger, (entry, *parts))
        else:
            lines = entry_lines(entry, ledger.place, _end_of(entry, ledger))
            of_run = entry if isinstance(entry, Entry) else None
            print("\n".join((*lines, *(entry_line(part, of_run) for part in parts))))
    return 0


def _end_of(entry: Entry | Unreadable, ledger: Ledger) -> End:
    """How a search ended; None for all else, and for one that has not."""
    if isinstance(entry, Unreadable) or entry.record.kind is not Kind.TUNE:
        return None
    found = ledger.listing(Selection(run=entry.number, kinds=(Kind.TUNE_END,), limit=1))
    return found[0] if found else None


def _print_json(ledger: Ledger, entries: tuple[Entry | Unreadable, ...]) -> None:
    tool = {"name": "kernel-forge", "version": __version__}
    rows = [entry_json(entry) for entry in entries]
    print(json.dumps({"schema": 1, "tool": tool, "ledger": ledger.place, "runs": rows}, indent=2, allow_nan=False))


def _file_and_kernel(text: str) -> tuple[Path, str | None]:
    """A file or folder and a kernel of it. The file may be gone: then the last colon that is no ``::`` parts them."""
    if os.path.exists(text):  # noqa: PTH110 (False for a name too long, where Path raises)
        return Path(text).resolve(), None
    plain = text.replace("::", "\0\0")
    colons = [i for i, c in enumerate(plain) if c == ":" and i > 1]
    at = next((i for i in colons if os.path.exists(text[:i])), colons[-1] if colons else None)  # noqa: PTH110
    if at is None:
        return Path(text).resolve(), None
    return Path(text[:at]).resolve(), text[at + 1 :] or None

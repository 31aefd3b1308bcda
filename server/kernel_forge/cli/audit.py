"""``kernel-forge audit``, and the file of an anchor."""

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any, TypeGuard

from kernel_forge import __version__
from kernel_forge.cli.history import LedgerOf
from kernel_forge.cli.output import may_be_closed
from kernel_forge.cli.replacement import check_output, write_whole
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.record import Anchor, Audit
from kernel_forge.views.history import audit_lines

FORMAT = 1
LEDGER_FOLDER = ".kernel-forge"
EMPTY = "0" * 64
"""The hash in the anchor of a ledger without entries."""
_START = re.compile(r'\s*\{\s*"kernel-forge anchor"\s*:')
_MARKS = re.compile(r"(?:[0-9a-f]{8})*")
_HASH = re.compile(r"[0-9a-f]{64}")


def audit_command(options: argparse.Namespace, ledger_of: LedgerOf) -> int:
    """Check the ledger of a project; 0 where every entry is as it was written, 1 where one is not.

    Raises:
        UsageError: there is no ledger, it cannot be read, or an anchor cannot be read or written.
    """
    ledger = ledger_of(options.project)
    if options.export_anchor is not None:
        check_export(Path(options.export_anchor))
    anchor = None if options.anchor is None else read_anchor(Path(options.anchor))
    if anchor is None and not os.path.exists(ledger.place):  # noqa: PTH110
        raise UsageError(f"there is no ledger yet: {ledger.place}")
    audit = ledger.audit(anchor)
    exported = options.export_anchor if audit.is_sound else None
    if exported is not None:
        ledger.settle()  # an anchor must not promise more than a power failure leaves
        write_anchor(Path(exported), audit.anchor)
    with may_be_closed():
        if options.json:
            print(json.dumps(_json(audit, ledger.place, exported), indent=2))
        else:
            print("\n".join(audit_lines(audit, ledger.place, anchored=anchor is not None)))
            if options.export_anchor is not None:
                print(f"  anchor written to {exported}" if exported else "  no anchor was written")
    return 0 if audit.is_sound else 1


def read_anchor(path: Path) -> Anchor:
    """The anchor of a file.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        data = None
    # By type: True is 1 to Python, and 1.0 too, but they are nothing that was exported.
    if not isinstance(data, dict) or not _is_count(data.get("kernel-forge anchor"), FORMAT):
        raise UsageError(f"{path} is no anchor of this version of Kernel Forge")
    count, last, marks = data.get("count"), data.get("hash"), data.get("marks")
    if not (
        _is_count(count)
        and isinstance(last, str)
        and isinstance(marks, str)
        and _HASH.fullmatch(last)
        and _MARKS.fullmatch(marks)
        and len(marks) == 8 * count
        and (last.startswith(marks[-8:]) if count else last == EMPTY)
    ):
        raise UsageError(f"{path} is damaged: its parts do not belong together")
    return Anchor(count, last, tuple(marks[i : i + 8] for i in range(0, len(marks), 8)))


def _is_count(value: object, expected: int | None = None) -> TypeGuard[int]:
    return type(value) is int and value >= 0 and (expected is None or value == expected)


def check_export(path: Path) -> None:
    """Refuse to write an anchor over anything but an anchor, or where the ledger is.

    Raises:
        UsageError: it is refused, or cannot be written.
    """
    real = Path(os.path.realpath(path))
    if LEDGER_FOLDER in real.parent.parts:
        raise UsageError(f"--export-anchor {path}: {LEDGER_FOLDER} holds the ledger; keep the anchor elsewhere")
    check_output(path, "--export-anchor", "anchor of Kernel Forge", lambda text: _START.match(text) is not None)


def write_anchor(path: Path, anchor: Anchor) -> None:
    """Write ``anchor`` to ``path``, whole or not at all.

    Raises:
        UsageError: it cannot be written.
    """
    data = {
        "kernel-forge anchor": FORMAT,
        "count": anchor.count,
        "hash": anchor.hash,
        "marks": "".join(anchor.marks),
    }
    try:
        write_whole(Path(os.path.realpath(path)), json.dumps(data, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def _json(audit: Audit, place: str, exported: str | None) -> dict[str, Any]:
    bad = None if audit.bad is None else {"run": audit.bad.number, "reason": audit.bad.reason}
    return {
        "schema": 1,
        "tool": {"name": "kernel-forge", "version": __version__},
        "ledger": place,
        "sound": audit.is_sound,
        "count": audit.anchor.count,
        "hash": audit.anchor.hash,
        "bad": bad,
        "altered": list(audit.altered),
        "exported": exported,
    }

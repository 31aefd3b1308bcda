"""Selections as SQL."""

from kernel_forge.domain.record import Selection
from kernel_forge.ledger.rows import column

FIELDS = "number, content, previous, hash"


def statement(selection: Selection) -> tuple[str, tuple[object, ...]]:
    """The query of ``selection`` (its path relative to the project, ``.`` for all of it) and its values."""
    conditions: list[str] = []
    values: list[object] = []

    def where(condition: str, *given: object) -> None:
        conditions.append(condition)
        values.extend(given)

    path, kernel = column(selection.path), selection.kernel
    if path is not None and path != ".":
        below = f"{path}/"
        where("(path = ? OR substr(path, 1, ?) = ?)", path, len(below), below)
    if kernel is not None:
        inner = f"::{kernel}"
        where("(kernel = ? OR substr(kernel, ?) = ?)", kernel, -len(inner), inner)
    if selection.kinds is not None:
        where(f"kind IN ({', '.join('?' * len(selection.kinds))})", *(kind.value for kind in selection.kinds))
    if selection.run is not None:
        where("run = ? AND number > run", selection.run)  # what stands before it is of a ledger that is gone
    if selection.key is not None:
        where("key = ?", selection.key)
    query = f"SELECT {FIELDS} FROM entries"
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    query += " ORDER BY number DESC"
    if selection.limit is not None:
        query += " LIMIT ?"
        values.append(selection.limit)
    return query, tuple(values)

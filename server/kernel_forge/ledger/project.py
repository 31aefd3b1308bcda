"""Which folder is the project of a file: there its ledger lies."""

from pathlib import Path

FOLDER = ".kernel-forge"
MARKS = (".git", "pyproject.toml", "compile_commands.json")


def project_folder(path: Path) -> Path:
    """The nearest folder, from that of ``path`` upwards, that holds one of :data:`MARKS`; without any, its own.

    ``path`` is a file or a folder, which need not exist; links in it are followed. A ledger that is there marks
    nothing: one in a folder that many have files below (``/tmp``) would take in all of theirs.
    """
    whole = path.resolve()
    own = whole if whole.is_dir() else whole.parent
    return next((f for f in (own, *own.parents) if any((f / mark).exists() for mark in MARKS)), own)

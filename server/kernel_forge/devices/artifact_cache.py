"""Compiled kernels on disk, found by the digest of everything that went into them."""

import contextlib
import os
import shutil
import tempfile
import threading
import uuid
from pathlib import Path

SIZE_LIMIT = 2 << 30
ENTRY_FILE = "kernel"
META_FILE = "sources.json"
BUILD_PREFIX = ".build-"


class ArtifactCache:
    """Folders by key under ``root``; the least recently used go when all exceed ``size_limit`` bytes.

    Processes may share it: an entry appears whole, by rename, and is never changed.
    """

    def __init__(self, root: Path, size_limit: int = SIZE_LIMIT) -> None:
        self.root = root
        self.size_limit = size_limit
        self._lock = threading.Lock()
        self._room = 0  # bytes that may be added before all entries are counted again

    def find(self, key: str) -> Path | None:
        """The entry's folder, marked as just used. What is damaged (by a full disk, say) is removed instead."""
        folder = self.root / key
        try:
            os.utime(folder)
        except OSError:
            return None  # nothing to remove: another process may be about to adopt it
        try:
            whole = all((folder / name).stat().st_size > 0 for name in (ENTRY_FILE, META_FILE))
        except OSError:
            whole = False
        if not whole:
            self.discard(folder)
            return None
        return folder

    def discard(self, folder: Path) -> None:
        """Remove an entry, if it is there: first its name, so that no other process finds half of it."""
        gone = self.root / f"{BUILD_PREFIX}{os.getpid()}-{threading.get_ident()}-{folder.name}"
        with contextlib.suppress(OSError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def build_folder(self) -> Path:
        """A private folder to build an entry in."""
        self.root.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{BUILD_PREFIX}{os.getpid()}-", dir=self.root))

    def adopt(self, key: str, built: Path) -> Path:
        """Make ``built`` the entry of ``key`` (or drop it where another process was faster)."""
        folder = self.root / key
        try:
            built.rename(folder)
        except OSError:
            shutil.rmtree(built, ignore_errors=True)
        self._evict(keep=folder)
        return folder

    def _evict(self, keep: Path) -> None:
        with contextlib.suppress(OSError), self._lock:
            self._room -= sum(f.stat().st_size for f in keep.iterdir())
            if self._room > 0:
                return
        entries = []
        for folder in self.root.iterdir():
            try:
                size = sum(f.stat().st_size for f in folder.iterdir())
                entries.append((folder.stat().st_mtime, size, folder))
            except OSError:
                continue
        total = sum(size for _, size, _ in entries)
        self._room = (self.size_limit - total) // 2  # half of it: other processes add to the same cache
        for _, size, folder in sorted(entries):
            if total <= self.size_limit:
                return
            if folder != keep and not folder.name.startswith("."):
                self.discard(folder)
                total -= size


def unrepeatable(key: str) -> str:
    """``key`` for this one time, where it does not cover everything that the result depends on."""
    return f"{key}-{uuid.uuid4().hex}"


def sweep(root: Path, prefix: str) -> None:
    """Remove folders ``prefix`` + process id + ``-...`` in ``root`` whose process is gone: it was killed."""
    for folder in root.glob(f"{prefix}*"):
        pid = folder.name[len(prefix) :].partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)

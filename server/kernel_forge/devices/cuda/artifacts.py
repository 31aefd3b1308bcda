"""Compiled code in the cache: the image, its linker names, and what the assembler said."""

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from kernel_forge.devices.artifact_cache import ENTRY_FILE, META_FILE, ArtifactCache
from kernel_forge.devices.compilers.gpu.code import GpuCode
from kernel_forge.devices.compilers.message_rows import message_of, message_row
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.opinion import DeviceCode
from kernel_forge.devices.cuda.wire import Code
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage, Unavailable
from kernel_forge.domain.resources import Resources
from kernel_forge.ports import Artifact


def store(cache: ArtifactCache, key: str, code: GpuCode, sources: DeviceCode) -> Path:
    """The entry of ``key``, made from ``code``.

    Raises:
        OSError: the cache cannot be written.
    """
    folder = cache.build_folder()
    meta = {
        "entries": dict(code.entries),
        "resources": {k: asdict(r) for k, r in code.resources.items()},
        "sources": {name: [f.path, f.text] for name, f in sources.sources.items()},
        "compiler": code.compiler,
        "messages": [message_row(m) for m in code.messages],
        "digest": hashlib.sha256(code.image).hexdigest(),
    }
    try:
        (folder / ENTRY_FILE).write_bytes(code.image)
        (folder / META_FILE).write_text(json.dumps(meta), encoding="utf-8")
        return cache.adopt(key, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # adopted, it is no longer there


def read_artifact(folder: Path, request: CompileRequest, *, from_cache: bool) -> Artifact | None:
    """The artifact of a cache entry; None where the entry is damaged or gone."""
    try:
        meta = json.loads((folder / META_FILE).read_text(encoding="utf-8"))
        resources = {k: Resources(**r) for k, r in meta["resources"].items()}
        note = CompilerMessage("note", f"compiled by {meta['compiler']}", None, meta["compiler"])
        messages = (note, *(message_of(row) for row in meta["messages"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return Artifact(str(folder), request.kernels, messages, from_cache, resources)


def load_code(artifact: Artifact) -> tuple[Code, Mapping[str, UserFile]] | Unavailable:
    """The machine code of an artifact, and the user's files by the names the compiler knew them by.

    A damaged entry is deleted: its code would fail on the GPU, as if the kernel were wrong. What was read lately is not
    read again as long as the entry is there: a search runs and times the same code within a moment.
    """
    folder = Path(artifact.handle)
    known = _read_lately.get(artifact.handle)
    if known is not None and folder.exists():
        return known
    loaded = _load(folder)
    if not isinstance(loaded, Unavailable):
        with _keeping:
            while len(_read_lately) >= _MOST_KEPT:
                del _read_lately[next(iter(_read_lately))]
            _read_lately[artifact.handle] = loaded
    return loaded


_MOST_KEPT = 32
_keeping = threading.Lock()
_read_lately: dict[str, tuple[Code, Mapping[str, UserFile]]] = {}


def _load(folder: Path) -> tuple[Code, Mapping[str, UserFile]] | Unavailable:
    try:
        meta = json.loads((folder / META_FILE).read_text(encoding="utf-8"))
        image = (folder / ENTRY_FILE).read_bytes()
    except (OSError, ValueError):
        return Unavailable("the compiled kernel has been evicted from the cache; compile again")
    try:
        if hashlib.sha256(image).hexdigest() != meta["digest"]:
            raise ValueError("another image")
        return Code(image, dict(meta["entries"])), {n: UserFile(*file) for n, file in meta["sources"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        shutil.rmtree(folder, ignore_errors=True)
        return Unavailable("the compiled kernel is damaged on disk; compile again")

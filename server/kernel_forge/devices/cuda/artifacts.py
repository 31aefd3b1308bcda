"""Compiled code in the cache: the image, its linker names, and what the assembler said."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from kernel_forge.devices.compilers.code import DeviceSources, GpuCode
from kernel_forge.devices.cuda.wire import Code
from kernel_forge.devices.emulator.cache import ArtifactCache
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage, Unavailable
from kernel_forge.domain.resources import Resources
from kernel_forge.ports import Artifact

IMAGE, META = "kernel", "meta.json"


def store(cache: ArtifactCache, key: str, code: GpuCode, sources: DeviceSources) -> Path:
    """The entry of ``key``, made from ``code``."""
    folder = cache.build_folder()
    (folder / IMAGE).write_bytes(code.image)
    meta = {
        "entries": dict(code.entries),
        "resources": {k: asdict(r) for k, r in code.resources.items()},
        "texts": dict(sources.texts),
        "compiler": code.compiler,
    }
    (folder / META).write_text(json.dumps(meta), encoding="utf-8")
    return cache.adopt(key, folder)


def read_artifact(folder: Path, request: CompileRequest, *, from_cache: bool) -> Artifact:
    """The artifact of a cache entry."""
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    resources = {k: Resources(**r) for k, r in meta["resources"].items()}
    notes = (CompilerMessage("note", f"compiled by {meta['compiler']}", None, meta["compiler"]),)
    return Artifact(str(folder), request.kernels, notes, from_cache, resources)


def load_code(artifact: Artifact) -> tuple[Code, Mapping[str, str]] | Unavailable:
    """The machine code of an artifact and the user's files by path."""
    folder = Path(artifact.handle)
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        image = (folder / IMAGE).read_bytes()
    except (OSError, ValueError):
        return Unavailable("the compiled kernel has been evicted from the cache; compile again")
    return Code(image, meta["entries"]), meta["texts"]

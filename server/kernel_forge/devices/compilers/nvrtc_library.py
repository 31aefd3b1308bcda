"""Finding NVRTC: the pip wheels, or a toolkit."""

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NvrtcPaths:
    """The library and the folders with CUDA's headers; ``name`` for a person."""

    library: Path
    includes: tuple[Path, ...]
    name: str


def find_nvrtc() -> NvrtcPaths | None:
    """The first NVRTC with headers: ``CUDA_HOME``, /usr/local/cuda, then the ``nvidia`` wheels."""
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if not root:
            continue
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
            library = _library(Path(root) / folder)
            if library is not None and (Path(root) / "include" / "cuda_fp16.h").exists():
                return NvrtcPaths(library, _with_cccl((Path(root) / "include",)), _name(library))
    spec = find_spec("nvidia")
    for base in map(Path, spec.submodule_search_locations or ()) if spec is not None else ():
        libraries = sorted(found for lib in base.glob("*/lib") if (found := _library(lib)) is not None)
        includes = tuple(sorted(p for p in base.glob("*/include") if p.is_dir()))
        if libraries and any((p / "cuda_fp16.h").exists() for p in includes):
            return NvrtcPaths(libraries[-1], _with_cccl(includes), _name(libraries[-1]))
    return None


def _with_cccl(includes: tuple[Path, ...]) -> tuple[Path, ...]:
    """CUB, Thrust and libcu++ lie in a folder of their own since CUDA 13."""
    return (*includes, *(p / "cccl" for p in includes if (p / "cccl").is_dir()))


def _library(folder: Path) -> Path | None:
    found = sorted(p for p in folder.glob("libnvrtc.so*") if "builtins" not in p.name)
    return found[0] if found else None


def _name(library: Path) -> str:
    version = re.search(r"\.so\.(\d+(?:\.\d+)*)", library.resolve().name)
    return f"NVRTC {version.group(1)}" if version else "NVRTC"

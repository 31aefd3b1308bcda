"""The copy of the user's file and its local headers that the compilers see."""

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.includes import IncludeHook, answer_has_include, has_computed_includes, replace_includes
from kernel_forge.domain.text import Location, Range

Translator = Callable[[str, IncludeHook], str]
"""A file's text, and what to do with its includes, in their order -> the text for another compiler."""
HostCode = Callable[[str], tuple[tuple[int, int], ...]]
"""Text -> code point ranges (start, end) of host-only code, which is blanked."""

# Libraries that run on the host or have no emulation. Dropped, and named if the kernel then does not compile.
_LIBRARIES = re.compile(
    r"^(thrust/|cub/|cuda/|nvtx3/|cutlass/|cute/|mma\.h|cublas|cusparse|cusolver|cufft|curand|cudnn|nccl|nvToolsExt|"
    r"mpi\.h|omp\.h|nvrtc|nvml|cudaProfiler|cuda_fp8|cuda_fp4|cuda_fp6|texture|surface|helper_|cuda_gl_interop)"
)
# Answered by the always-included header; the C library's own would take our assert away.
_REPLACED = frozenset({"cassert", "assert.h"})
MAX_HEADERS = 500
LONGEST_NAME = 100  # of a copy, without its number: the user's name may be as long as a file system allows


class TooManyHeaders(Exception):
    """The file includes more local headers than are read; ``location`` is the include that was one too many."""

    def __init__(self, location: Location) -> None:
        super().__init__(f"more than {MAX_HEADERS} headers of the project are included")
        self.location = location


@dataclass
class ShadowTree:
    """Texts by file name in the build folder, the main file first; includes among them go by these names.

    Attributes:
        files: name -> text as the translator made it; without one, as the user wrote it but for the includes.
        device_files: name -> text as the user wrote it, host-only code blanked, for a CUDA compiler.
        sources: name of a file in messages and line tables (absolute path) -> the user's file, host-only code blanked.
        dropped: (path, zero-based line, header) of includes that were left out of ``files``.
        is_whole: whether these are all local files that a compiler reads; else no key made from them tells the result.
    """

    files: dict[str, str] = field(default_factory=dict)
    device_files: dict[str, str] = field(default_factory=dict)
    sources: dict[str, UserFile] = field(default_factory=dict)
    dropped: list[tuple[str, int, str]] = field(default_factory=list)
    is_whole: bool = True


def shadow_sources(
    path: str,
    text: str,
    include_dirs: tuple[str, ...],
    host_code: HostCode,
    translator: Translator = replace_includes,
    ours: Path | None = None,
) -> ShadowTree:
    """Copy ``text`` and every local header it includes, directly or not.

    A header is local when it is found beside the including file or in ``include_dirs`` (but not in the folder
    ``ours``, whose headers stand in for CUDA's). Includes that are found nowhere stay for the compiler to refuse.

    Raises:
        TooManyHeaders: see there.
    """
    tree = ShadowTree()
    names: dict[Path, str] = {}

    def is_ours(header: Path) -> bool:
        return ours is not None and header.resolve().is_relative_to(ours)

    def add(original: Path, shown: str, content: str) -> str:
        name = f"{len(names)}_{re.sub(r'[^A-Za-z0-9_.-]', '_', original.name)[-LONGEST_NAME:]}"
        names[original.resolve()] = name
        tree.files[name] = tree.device_files[name] = ""
        # A byte order mark would stand in the middle of the text that is compiled.
        blanked = _blank(content, host_code(content)).removeprefix("\ufeff")
        tree.sources[str(original)] = UserFile(shown, blanked)

        def exists(header: str, quoted: bool) -> bool:
            found = _find(header, quoted, original, include_dirs)
            return found is not None and not is_ours(found)

        # Beside the copies there are other files than beside the user's, and what exists belongs to the key.
        blanked, answered = answer_has_include(blanked, exists)
        tree.is_whole = tree.is_whole and answered and not has_computed_includes(blanked)
        local: dict[int, str] = {}  # line -> the directive for the local header that is included there

        def on_include(header: str, quoted: bool, line: int) -> str | None:
            if header in _REPLACED:
                return ""
            found = _find(header, quoted, original, include_dirs)
            if found is not None and not is_ours(found):
                if found.resolve() not in names:
                    if len(names) > MAX_HEADERS:
                        raise TooManyHeaders(Location(shown, Range.of_line(line)))
                    add(found, str(found), found.read_text(encoding="utf-8", errors="replace"))
                local[line] = f'#include "{names[found.resolve()]}"'
                return local[line]
            if found is None and _LIBRARIES.match(header) and not (ours is not None and (ours / header).exists()):
                tree.dropped.append((shown, line, header))
                return ""
            return None

        translated = translator(blanked, on_include)
        quoted_path = str(original).replace("\\", "\\\\").replace('"', '\\"')
        tree.files[name] = f'#line 1 "{quoted_path}"\n{translated}'
        tree.device_files[name] = (
            f'#line 1 "{quoted_path}"\n{replace_includes(blanked, lambda _header, _quoted, line: local.get(line))}'
        )
        return name

    add(Path(os.path.abspath(path)), path, text)  # noqa: PTH100 -- Path.absolute() keeps `..`
    return tree


def _blank(text: str, ranges: tuple[tuple[int, int], ...]) -> str:
    pieces = []
    position = 0
    for start, end in sorted(ranges):
        if start < position:
            continue
        pieces.append(text[position:start])
        pieces.append(re.sub(r"[^\r\n]", " ", text[start:end]))
        position = end
    return "".join(pieces) + text[position:]


def _find(header: str, quoted: bool, includer: Path, include_dirs: tuple[str, ...]) -> Path | None:
    folders = [includer.parent] if quoted else []
    for folder in [*folders, *(Path(d) for d in include_dirs)]:
        candidate = Path(os.path.abspath(folder / header))  # noqa: PTH100 -- as above
        with contextlib.suppress(OSError):  # the name is too long, say
            if candidate.is_file():
                return candidate
    return None

"""The copy of the user's file and its local headers that the host compiler sees."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kernel_forge.devices.emulator.rewrite.declarations import Rewritten, rewrite

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


@dataclass
class ShadowTree:
    """Rewritten texts by file name in the build folder, the main file first.

    Attributes:
        files: name in the build folder -> text.
        originals: name in the build folder -> path of the original.
        texts: path of the original -> its text.
        device_texts: path of the original -> its text with host-only code blanked, main file first.
        headers: name as included -> path of the local header it means.
        dropped: (path, zero-based line, header) of includes that were left out.
        dynamic_arrays: see :class:`~kernel_forge.devices.emulator.rewrite.declarations.Rewritten`.
    """

    files: dict[str, str] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    device_texts: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    dropped: list[tuple[str, int, str]] = field(default_factory=list)
    dynamic_arrays: list[tuple[str, str]] = field(default_factory=list)


def shadow_sources(path: str, text: str, include_dirs: tuple[str, ...], host_code: HostCode, ours: Path) -> ShadowTree:
    """Rewrite ``text`` and every local header it includes, directly or not.

    A header is local when it is found beside the including file or in ``include_dirs`` (but not among
    ``ours``, the emulator's own headers). Includes that are found nowhere stay for the compiler to refuse.
    """
    tree = ShadowTree()
    names: dict[Path, str] = {}

    def add(original: Path, content: str) -> str:
        name = f"{len(names)}_{original.name}"
        names[original] = name
        tree.files[name] = ""
        tree.originals[name] = str(original)
        tree.texts[str(original)] = content
        blanked = _blank(content, host_code(content))
        tree.device_texts[str(original)] = blanked

        def on_include(header: str, quoted: bool) -> str | None:
            if header in _REPLACED:
                return ""
            found = _find(header, quoted, original, include_dirs)
            if found is not None and not found.is_relative_to(ours) and len(names) < MAX_HEADERS:
                tree.headers[header] = str(found)
                if found not in names:
                    add(found, found.read_text(encoding="utf-8", errors="replace"))
                return f'#include "{names[found]}"'
            if found is None and _LIBRARIES.match(header) and not (ours / header).exists():
                tree.dropped.append((str(original), _line_of(content, header), header))
                return ""
            return None

        rewritten: Rewritten = rewrite(blanked, on_include)
        quoted_path = str(original).replace("\\", "\\\\").replace('"', '\\"')
        tree.files[name] = f'#line 1 "{quoted_path}"\n{rewritten.text}'
        tree.dynamic_arrays.extend(rewritten.dynamic_arrays)
        return name

    add(Path(path), text)
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
        candidate = folder / header
        if candidate.is_file():
            return candidate.resolve()
    return None


def _line_of(text: str, header: str) -> int:
    offset = text.find(header)
    return text.count("\n", 0, max(0, offset))

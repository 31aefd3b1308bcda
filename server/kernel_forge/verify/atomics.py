"""Which outputs may legitimately depend on the order of threads: sums by atomics on floats."""

import re
from collections.abc import Sequence
from pathlib import Path

from kernel_forge.domain.spec import KernelSpec
from kernel_forge.source import SourceFile
from kernel_forge.source.calls import reachable
from kernel_forge.source.tokens import Token

_ATOMIC = re.compile(r"atomic(?:Add|Sub|Exch|CAS|Min|Max)(?:_block|_system)?|fetch_add|fetch_sub")


def unordered_outputs(spec: KernelSpec, source: SourceFile, include_dirs: Sequence[str] = ()) -> frozenset[str]:
    """Float outputs that an atomic may add to.

    Where every atomic names its target directly (``atomicAdd(&y[i], v)`` with a parameter ``y``), those; else, as the
    address may come from anywhere, all.
    """
    floats = frozenset(a.name for a in spec.outputs if a.dtype.is_float)
    if not floats:
        return floats

    def read(name: str, path: str) -> tuple[str, str] | None:
        for folder in (Path(path).parent, *map(Path, include_dirs)):
            file = folder / name
            try:
                return str(file.resolve()), file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
        return None

    targets: set[str | None] = set()
    for body in reachable(source.text, source.path, (launch.kernel for launch in spec.launches), read):
        for at, token in enumerate(body):
            if token.kind == "word" and _ATOMIC.fullmatch(token.text):
                targets.add(_target(body, at))
    if not targets:
        return frozenset()
    names = {t for t in targets if t is not None}
    arguments = {a.name for a in spec.args}
    if None in targets or len(spec.launches) > 1 or not names <= arguments:
        return floats
    return floats & names if names <= {a.name for a in spec.outputs} else floats


def _target(body: Sequence[Token], at: int) -> str | None:
    """The name that the first argument begins with: ``y`` in ``atomicAdd(&y[i], v)`` and ``atomicAdd(y + i, v)``."""
    index = at + 1
    while index < len(body) and body[index].text in ("(", "&"):
        index += 1
    return body[index].text if index > at + 1 and index < len(body) and body[index].kind == "word" else None

"""What a verdict, or the result of a tuning run, depends on, so that typing elsewhere in the file does not age it."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_forge.domain.spec import KernelReference, KernelSpec
from kernel_forge.domain.text import Range
from kernel_forge.source import SourceFile


@dataclass(frozen=True)
class Basis:
    """The kernels a verdict speaks of, and a digest of their file without the other kernels and their spec blocks."""

    kernels: frozenset[str]
    digest: str

    @staticmethod
    def of(source: SourceFile, spec: KernelSpec) -> "Basis":
        """The basis of a verdict about ``spec`` as it stands in ``source``."""
        names = _kernels(spec)
        return Basis(names, _digest(source, names))

    def holds(self, source: SourceFile) -> bool:
        """Whether nothing that the verdict depends on differs in ``source``."""
        return _digest(source, self.kernels) == self.digest


def code_digest(source: SourceFile, spec: KernelSpec) -> str:
    """Of what can change how ``spec`` runs: device code without other kernels and comments, its block, its launches.

    Host code may tell a launch, which the spec then has.
    """
    names = _kernels(spec)
    gone = [*_of_other_kernels(source, names), *(b.range for b in source.blocks)]
    spans = [(source.offset(place.start), source.offset(place.end)) for place in gone]
    code = _COMMENT.sub(lambda match: match["kept"] or " ", _without(source.text, [*spans, *source.host_ranges]))
    lines = [" ".join(line.split()) for line in code.split("\n")]
    blocks = [b.toml for b in source.blocks if b.kernel_below is not None and _name(b.kernel_below) in names]
    launches = [
        (launch.kernel, launch.args, *(e.text for e in (*launch.grid, *launch.block, launch.shared, *launch.cluster)))
        for launch in spec.launches
    ]
    return _hash("\n".join([*(line for line in lines if line), *blocks, repr(launches)]))


_COMMENT = re.compile(
    r"""(?P<kept>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
      | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | \.?\d(?:'(?=\w)|[\w.])* | [^\W\d]\w*)
      | //(?:[^\n\\]|\\.)* | /\*.*?(?:\*/|\Z)""",
    re.VERBOSE | re.DOTALL,
)
"""A comment, or what may look as if it had one inside."""


def _kernels(spec: KernelSpec) -> frozenset[str]:
    """The kernels that a run of ``spec`` launches."""
    launches = list(spec.launches)
    for reference in spec.references.values():
        if isinstance(reference, KernelReference):
            launches.extend(reference.launches)
    return frozenset(_name(launch.kernel) for launch in launches) | {_name(spec.kernel)}


def _name(kernel: str) -> str:
    return kernel.partition("<")[0].rpartition("::")[2].strip()


def _digest(source: SourceFile, kernels: frozenset[str]) -> str:
    gone = _of_other_kernels(source, kernels)
    text = _without(source.text, [(source.offset(place.start), source.offset(place.end)) for place in gone])
    return _hash("\n".join(line.rstrip() for line in text.split("\n") if line.strip()))


def _of_other_kernels(source: SourceFile, kernels: frozenset[str]) -> list[Range]:
    """Where kernels other than those, and their spec blocks, stand."""
    gone = [k.range for k in source.kernels if _name(k.name) not in kernels]
    return gone + [
        b.range for b in source.blocks if b.kernel_below is not None and _name(b.kernel_below) not in kernels
    ]


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at:start])
        at = max(at, end)
    return "".join([*kept, text[at:]])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

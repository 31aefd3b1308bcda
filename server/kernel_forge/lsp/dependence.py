"""What a verdict depends on, so that typing elsewhere in the file does not age it."""

import hashlib
from dataclasses import dataclass

from kernel_forge.domain.spec import KernelReference, KernelSpec
from kernel_forge.source import SourceFile


@dataclass(frozen=True)
class Basis:
    """The kernels a verdict speaks of, and a digest of their file without the other kernels and their spec blocks."""

    kernels: frozenset[str]
    digest: str

    @staticmethod
    def of(source: SourceFile, spec: KernelSpec) -> "Basis":
        """The basis of a verdict about ``spec`` as it stands in ``source``."""
        launches = list(spec.launches)
        for reference in spec.references.values():
            if isinstance(reference, KernelReference):
                launches.extend(reference.launches)
        names = frozenset(_name(launch.kernel) for launch in launches) | {_name(spec.kernel)}
        return Basis(names, _digest(source, names))

    def holds(self, source: SourceFile) -> bool:
        """Whether nothing that the verdict depends on differs in ``source``."""
        return _digest(source, self.kernels) == self.digest


def _name(kernel: str) -> str:
    return kernel.partition("<")[0].rpartition("::")[2].strip()


def _digest(source: SourceFile, kernels: frozenset[str]) -> str:
    gone = [k.range for k in source.kernels if _name(k.name) not in kernels]
    gone += [b.range for b in source.blocks if b.kernel_below is not None and _name(b.kernel_below) not in kernels]
    text = source.text
    for place in sorted(gone, key=lambda r: r.start, reverse=True):
        text = text[: source.offset(place.start)] + text[source.offset(place.end) :]
    return hashlib.sha256(
        "\n".join(line.rstrip() for line in text.split("\n") if line.strip()).encode("utf-8", "surrogatepass")
    ).hexdigest()

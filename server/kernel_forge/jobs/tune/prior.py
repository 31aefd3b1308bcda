"""The first configurations of a search: what is known before anything is timed.

In this order: the default; the best of earlier searches in the ledger; then the most promising on this GPU by the shape
of their launches (:mod:`kernel_forge.perf.promise`) and by the rules of ``kb/``, far from each other.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.domain.record import Kind, Selection
from kernel_forge.domain.spec import Configuration, KernelSpec, Sizes
from kernel_forge.jobs.tune.prospects import Prospects
from kernel_forge.ports import Ledger
from kernel_forge.search import SearchSpace
from kernel_forge.source import SourceFile

_CONSIDERED = 2048
_LOOKED_AT = 500

Suggestion = tuple[Configuration, str]
"""A configuration and why it is tried, in one line."""


def first_configurations(
    space: SearchSpace,
    spec: KernelSpec,
    sizes: Sizes,
    gpu: GpuFacts | None,
    remembered: Sequence[Suggestion],
    count: int,
    seed: int,
    intensity: float | None = None,
    source: SourceFile | None = None,
) -> list[Suggestion]:
    """The default, the remembered and then up to ``count`` promising ones; valid ones only, each once.

    The same arguments give the same list. ``gpu`` is None for a device without multiprocessors, where only the rules
    speak; where they have nothing to say of this kernel either, nothing is promising. ``intensity`` is the kernel's
    arithmetic intensity in operations per byte, where it is known; ``source`` tells its static shared memory.
    """
    found: dict[int, str] = {}
    fixed = {p.name: p.values[0] for p in space.parameters if len(p.values) == 1}
    default = _numbers({**spec.default_configuration, **fixed})
    for configuration, reason in [(default, "the default of the source"), *remembered]:
        index = space.index_of(configuration)
        if index is not None:
            found.setdefault(index, reason)
    considered = space.sample(_CONSIDERED, np.random.default_rng(seed))
    prospects = Prospects.of(space, spec, sizes, gpu, considered, intensity, source)
    for row in prospects.choose(space, count, exclude=set(found)):
        found[int(considered[row])] = prospects.reason(row)
    return [(_numbers(space.configuration(index)), reason) for index, reason in found.items()]


def remembered(
    ledger: Ledger, spec: KernelSpec, sizes: Sizes, basis: str, device_name: str, most: int = 3
) -> list[Suggestion]:
    """The winners of earlier searches: of this kernel first, then of kernels with the same parameters.

    Of this kernel: on this device before others, near sizes before far ones, new before old. Times of an emulation say
    nothing of a GPU, nor the other way round. At most ``most``, each configuration once.

    Raises:
        LedgerUnavailable: as from the ledger.
    """
    names = sorted(t.name for t in spec.tunables)
    found = []
    for age, entry in enumerate(ledger.entries(Selection(kinds=(Kind.TUNE_END,), limit=_LOOKED_AT))):
        record = entry.record
        details = record.details
        if details.get("parameters") != names or not record.configuration or not _comparable(record.basis, basis):
            continue
        own = details.get("kernel") == spec.kernel
        here = details.get("device_name") == device_name
        where = "" if here else f" on {details.get('device_name')}"
        case = _first_case(details.get("cases"))
        reason = (
            f"the best of this kernel at {_in_words(case)}{where}"
            if own
            else f"the best of {details.get('kernel')}, which has the same parameters{where}"
        )
        found.append(((not own, not here, _distance(case, sizes), age), dict(record.configuration), reason))
    kept: list[Suggestion] = []
    for _, configuration, reason in sorted(found, key=lambda each: each[0]):
        if all(configuration != other for other, _ in kept):
            kept.append((configuration, reason))
    return kept[:most]


def _numbers(configuration: Mapping[str, object]) -> Configuration:
    return {name: value for name, value in configuration.items() if isinstance(value, int | float)}


def _comparable(basis: str, other: str) -> bool:
    """Whether both are measurements on some GPU, or both are of the same kind."""
    return basis == other or all(b.startswith("measured") for b in (basis, other))


def _first_case(cases: object) -> Mapping[str, float]:
    first = cases[0] if isinstance(cases, Sequence) and cases and isinstance(cases[0], Mapping) else {}
    return {str(name): value for name, value in first.items() if isinstance(value, int | float)}


def _in_words(case: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.items()) or "other sizes"


def _distance(case: Mapping[str, float], sizes: Sizes) -> float:
    """Sum of the differences of the sizes' logarithms; infinite where the sizes have other names."""
    if case.keys() != sizes.keys():
        return math.inf
    return sum(abs(math.log(max(case[n], 1) / max(sizes[n], 1))) for n in sizes)

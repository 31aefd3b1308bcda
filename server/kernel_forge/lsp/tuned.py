"""What is known of tuning the kernels of a document, and what that means for its present text.

A result speaks of the text that was tuned, but for the values of the tunables' defaults: to set these is what it is
for. So texts are compared as they are with the best configuration as the default.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_forge.domain.event import Progress
from kernel_forge.domain.outcome import Passed, Verdict
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.text import TextEdit
from kernel_forge.domain.tuning import KernelTuning, SearchProgress
from kernel_forge.lsp.dependence import code_digest
from kernel_forge.source import SourceFile, parse
from kernel_forge.views.words import caveat

if TYPE_CHECKING:  # pydantic is slow to import and nothing here needs it to start
    from kernel_forge.spec import SpecReading

Sidecar = tuple[str, str] | None
"""Path and text of ``name.forge.toml``."""


@dataclass
class TuningRun:
    """A tuning run that waits or goes on.

    Attributes:
        spec, source, sidecar: what it began with.
        finish: set to end the search with its best so far.
        is_stopped: nothing shall come of it any more.
        message: what it does now.
        search: how far the search is; None before and after it.
        tried: trials so far.
    """

    spec: KernelSpec
    source: SourceFile
    sidecar: Sidecar
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    is_stopped: bool = False
    message: str = "waiting"
    search: SearchProgress | None = None
    tried: int = 0

    def take(self, step: Progress) -> None:
        """Note a step of its job."""
        self.message, self.search = step.message.removeprefix(f"{self.spec.kernel}: "), step.search
        if step.search is not None:
            self.tried = step.search.trials


@dataclass(frozen=True)
class Change:
    """The edits, by path, that make a configuration the default, or ``impossible`` says why there are none."""

    edits: Mapping[str, tuple[TextEdit, ...]] = field(default_factory=dict)
    impossible: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What a result depends on: the kernel's part of the file (a digest), and the sidecar where the spec is there."""

    code: str
    sidecar: str | None


@dataclass(frozen=True)
class Tuned:
    """What came of tuning a kernel, with what it speaks of; ``text`` is that of the file when the tuning began."""

    result: KernelTuning | Verdict
    subject: Subject
    text: str


@dataclass(frozen=True)
class Standing:
    """What a result means for a text that has ``sidecar`` beside it: whether it speaks of another, whether its best is
    the default already, and the edits that make it so."""

    is_stale: bool
    is_applied: bool
    change: Change
    sidecar: Sidecar


@dataclass(frozen=True)
class Paused:
    """A run that was stopped after ``trials``; it can go on for as long as the file is ``text``."""

    trials: int
    text: str


@dataclass
class Tunings:
    """Of one document, by kernel.

    Attributes:
        running: in progress or waiting.
        results: the newest.
        standings: of the results, for the text that was read last.
        paused: of the runs that were stopped in between.
    """

    running: dict[str, TuningRun] = field(default_factory=dict)
    results: dict[str, Tuned] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    paused: dict[str, Paused] = field(default_factory=dict)


def tuned(run: TuningRun, result: KernelTuning | Verdict) -> Tuned:
    """The result of a run."""
    change = change_of(result, run.spec, run.source, run.sidecar)
    return Tuned(result, _subject(change, run.spec, run.source, run.sidecar), run.source.text)


def standing(known: Tuned, spec: KernelSpec, source: SourceFile, sidecar: Sidecar) -> Standing:
    """What ``known`` means for a text."""
    change = change_of(known.result, spec, source, sidecar)
    best = known.result.winner.configuration if isinstance(known.result, KernelTuning) else {}
    is_applied = bool(best) and all(spec.default_configuration.get(k) == v for k, v in best.items())
    return Standing(_subject(change, spec, source, sidecar) != known.subject, is_applied, change, sidecar)


def standings(
    results: Mapping[str, Tuned], reading: "SpecReading", source: SourceFile, sidecar: Sidecar
) -> dict[str, Standing]:
    """What ``results`` mean for a text; none for a kernel that it does not have with a spec."""
    found = {}
    for kernel, known in results.items():
        spec = reading.spec_of(kernel)
        if spec is not None:
            found[kernel] = standing(known, spec, source, sidecar)
    return found


def verdict_of_default(result: KernelTuning | Verdict, spec: KernelSpec) -> Verdict | None:
    """The verdict that a tuning gave, in full, on what is the default of ``spec`` by now; None where it gave none.

    The result must speak of the text that ``spec`` is of.
    """
    full: tuple[Verdict | None, ...]
    if isinstance(result, KernelTuning):
        full = (result.default_verdict, result.verdict)
    else:  # what the gate alone says belongs to no case
        full = (result,) if result.case is not None else ()
    return next((v for v in full if v is not None and v.configuration == spec.default_configuration), None)


def change_of(result: KernelTuning | Verdict, spec: KernelSpec, source: SourceFile, sidecar: Sidecar) -> Change:
    """What makes the best configuration the default."""
    from kernel_forge.spec.defaults import NewDefault, make_default  # late: see features/reading.py

    if isinstance(result, Verdict):
        return Change()
    made = make_default(spec, source, result.winner.configuration, sidecar)
    return Change(made.edits, None, made.notes) if isinstance(made, NewDefault) else Change(impossible=made)


def is_sure(tuning: KernelTuning) -> bool:
    """Whether the best is verified, and faster than the default for sure; an emulation is sure of no time of a GPU."""
    ratio = tuning.winner.speedup
    if caveat(tuning.basis) is not None:
        return False
    faster = tuning.is_improved and ratio is not None and ratio.is_faster
    return faster and isinstance(tuning.verdict.outcome, Passed)


def _subject(change: Change, spec: KernelSpec, source: SourceFile, sidecar: Sidecar) -> Subject:
    from kernel_forge.spec.defaults import edited  # late: see features/reading.py

    own = change.edits.get(source.path, ())
    as_set = parse(edited(source.text, own), source.path) if own else source
    beside = None
    if sidecar is not None and spec.block_path == sidecar[0]:
        beside = edited(sidecar[1], change.edits.get(sidecar[0], ()))
    return Subject(code_digest(as_set, spec), beside)

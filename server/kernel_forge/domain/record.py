"""What the ledger keeps of a run: plain values, in the shape in which they are written down.

Source text is not among them: of a source file and of what it includes there are digests, of a spec its own text,
which says what was asked of the kernel and so what two runs may be compared by.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Union

Json = Union[None, bool, int, float, str, Sequence["Json"], Mapping[str, "Json"]]  # noqa: UP007 (it is recursive)
Number = int | float | bool


class Kind(Enum):
    """What a record is of. A ``tune`` begins a search, whose trials and end name its number as their ``run``."""

    VERIFY = "verify"
    TIME = "time"
    TUNE = "tune"
    TRIAL = "trial"
    TUNE_END = "tune-end"


@dataclass(frozen=True, slots=True)
class Subject:
    """What was run.

    Attributes:
        path: the CUDA file. Given absolute; read back relative to the project folder, where it lies below that.
        source: SHA-256 of the file's text (UTF-8), in hexadecimal.
        spec: the spec block as written, or the whole sidecar.
        files: SHA-256 of the local headers, and of the Python files that the spec names, by path.
    """

    path: str
    kernel: str
    source: str
    spec: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Platform:
    """Where it was run, and how it was compiled.

    Attributes:
        basis: what the words may claim: ``emulated``, ``measured on NVIDIA H200``, ``replayed``, ``predicted``.
        facts: what the device says of itself, name -> value.
        compiler, driver: None where the device has none.
        include_dirs, defines, flags: given to the compiler beside the device's own.
    """

    device: str
    basis: str
    description: str
    facts: Mapping[str, str] = field(default_factory=dict)
    compiler: str | None = None
    driver: str | None = None
    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """What a model and the knowledge base had to do with a run: ``cost`` in US dollars, digests in hexadecimal."""

    prompt: str | None = None
    prompt_version: str | None = None
    prompt_hash: str | None = None
    model: str | None = None
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    kb_hash: str | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing that happened.

    Attributes:
        basis: as in :class:`Platform`; every record has it, so that no number ever stands without.
        tool: version of Kernel Forge.
        started: with its time zone.
        outcome: ``{"type": name of the outcome, ...}`` with its fields; NaN and infinities as text.
        subject, platform: None for a trial and the end of a search, which share those of their ``run``.
        seconds: wall time of the whole; None where it was not taken.
        measurement: a time with its interval, as in :class:`~kernel_forge.domain.measurement.Measurement`.
        run: number of the record that this one belongs to.
        details: what only this kind has: checks made, budget and sampler of a search, ...
    """

    kind: Kind
    basis: str
    tool: str
    started: datetime
    outcome: Mapping[str, Json]
    subject: Subject | None = None
    platform: Platform | None = None
    configuration: Mapping[str, Number] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int | None = None
    seconds: float | None = None
    measurement: Mapping[str, Json] | None = None
    run: int | None = None
    generation: Generation | None = None
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record in the ledger.

    Attributes:
        number: its place, from 1.
        recorded: when it was written, UTC.
        key: see :func:`likeness`; None where the record has no subject.
        hash: SHA-256 over number, content and the ``previous`` entry's hash.
    """

    number: int
    recorded: datetime
    record: Record
    key: str | None
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry whose content is none of ours. ``reason`` follows the words ``entry N is unreadable:``."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which entries: those that agree with everything that is not None, the newest ``limit``.

    ``path`` is a file or a folder, ``kernel`` may be without its namespace, ``key`` as of :func:`likeness`.
    """

    path: str | None = None
    kernel: str | None = None
    kinds: tuple[Kind, ...] | None = None
    run: int | None = None
    key: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Anchor:
    """A ledger as it was at one time, to be kept where who could change the ledger cannot change it.

    ``hash`` is the last entry's, and stands for all of them; ``marks`` has the first eight digits of the hash of each
    entry, which tell where a ledger that was written anew begins to differ.
    """

    count: int
    hash: str
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BadEntry:
    """The first entry that is not as it was written. ``reason`` follows the words ``entry N``."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What a check of the whole ledger says.

    Attributes:
        anchor: its present state, up to the last entry that is sound.
        bad: the first entry that is not, if there is one.
        altered: what else of the file is not as it was made, each in a few words.
    """

    anchor: Anchor
    bad: BadEntry | None
    altered: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return self.bad is None and not self.altered


def canonical(value: Json) -> str:
    """JSON in one spelling: sorted keys, no spaces, ASCII, shortest floats; NaN and infinities are refused.

    Raises:
        ValueError: a float that JSON has not.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def likeness(subject: Subject, platform: Platform) -> str:
    """A digest that is equal where the same code was asked the same, in the same way, on the same device.

    Not in it: configuration, sizes and seed.
    """
    parts: Json = [
        [subject.path, subject.kernel, subject.source, subject.spec, dict(subject.files)],
        [platform.device, platform.basis, platform.compiler, platform.driver],
        [platform.include_dirs, dict(platform.defines), platform.flags],
    ]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()

"""What the server knows about one open file: its text, what the spec says, what the last run found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from kernel_forge.domain.errors import SourceError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Unavailable, Verdict
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.text import Position, Range
from kernel_forge.lsp import plain_text
from kernel_forge.lsp.convert import from_range
from kernel_forge.lsp.dependence import Basis
from kernel_forge.lsp.encoding import Encoding
from kernel_forge.lsp.live import Edit, shift
from kernel_forge.lsp.tuned import Tunings
from kernel_forge.source import SourceFile, parse

if TYPE_CHECKING:  # pydantic is slow to import and nothing here needs it to start
    from kernel_forge.spec import SpecReading


@dataclass
class Results:
    """What a finished job found, moved along with the edits made since.

    ``verdicts`` are by kernel name, and so is ``bases``: the text that each verdict speaks of.
    """

    findings: tuple[Finding, ...] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    by_kernel: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    bases: dict[str, Basis] = field(default_factory=dict)


@dataclass
class Job:
    """A job that waits or runs: for ``kernel`` (None for all), begun with ``source`` and ``reading``."""

    kernel: str | None
    message: str
    source: SourceFile
    reading: "SpecReading | None"
    edits: list[Edit] = field(default_factory=list)


class Document:
    """An open file. Changed only from the server's event loop.

    Attributes:
        uri: as the client names it.
        path: the file system path (the URI itself for an unsaved buffer).
        version: the client's version of the text.
        source: the parsed text; empty while ``refused`` says why the text is not used.
        reading: specs and problems of this text; None until it has been read.
        last_reading: those of the last text that has been read, for what may lag behind typing.
        published: files for which diagnostics were sent.
        jobs: those in progress by ticket; the end of one that is not among them is of no interest.
        results: what the finished jobs found.
        tunings: what is known of tuning its kernels.
    """

    def __init__(self, uri: str, path: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = path
        self.version = version
        self.refused: str | None = None
        self._refused_text: str | None = None
        self.source: SourceFile
        self._replace(text)
        self.reading: SpecReading | None = None
        self.last_reading: SpecReading | None = None
        self.published: set[str] = set()
        self.results = Results()
        self.tunings = Tunings()
        self.jobs: dict[int, Job] = {}
        self._tickets = 0
        self._aged: tuple[SourceFile, dict[str, bool]] = (self.source, {})

    def line(self, number: int) -> str:
        """The text of a line without its break; "" past the end."""
        source = self.source
        start = source.offset(Position(number, 0))
        end = source.offset(Position(number + 1, 0))
        return source.text[start:end].rstrip("\r\n")

    def apply(
        self,
        changes: Sequence[lsp.TextDocumentContentChangeEvent],
        version: int,
        encoding: Encoding,
    ) -> None:
        """Apply the changes of one ``didChange``, in order, and move the results along."""
        self.version = version
        self.last_reading, self.reading = self.reading or self.last_reading, None
        for change in changes:
            if self._refused_text is not None:
                self._replace(plain_text.change(self._refused_text, change, encoding))
            elif isinstance(change, lsp.TextDocumentContentChangePartial):
                where = self._clipped(from_range(change.range, self.line, encoding))
                at_end = where.start.column == len(self.line(where.start.line))
                self._note(Edit(where, change.text, at_end))
                try:
                    self.source = self.source.edit(where, change.text)
                except SourceError:
                    self._replace(plain_text.change(self.source.text, change, encoding))
            else:
                whole = Range(Position(0, 0), self.source.position(len(self.source.text)))
                self._note(Edit(whole, change.text))
                self._replace(change.text)

    def _replace(self, text: str) -> None:
        try:
            self.source = parse(text, self.path)
            self.refused = self._refused_text = None
        except SourceError as error:
            self.source = parse("", self.path)
            self.refused, self._refused_text = str(error), text

    def _clipped(self, place: Range) -> Range:
        """Where in the text an edit of ``place`` happens."""
        source = self.source
        return Range(source.position(source.offset(place.start)), source.position(source.offset(place.end)))

    def _note(self, edit: Edit) -> None:
        self.results.findings = shift(self.results.findings, edit)
        self.results.by_kernel = {k: shift(fs, edit) for k, fs in self.results.by_kernel.items()}
        for job in self.jobs.values():
            job.edits.append(edit)

    def is_stale(self, kernel: str) -> bool:
        """Whether the verdict of ``kernel`` speaks of another text than the present one."""
        if self._aged[0] is not self.source:
            self._aged = (self.source, {})
        basis = self.results.bases.get(kernel)
        if basis is not None and kernel not in self._aged[1]:
            self._aged[1][kernel] = not basis.holds(self.source)
        return self._aged[1].get(kernel, False)

    def running(self, kernel: str) -> str | None:
        """Message of the job in progress that will judge ``kernel``, None when there is none."""
        return next((j.message for j in reversed(self.jobs.values()) if j.kernel in (None, kernel)), None)

    def start(self, message: str, kernel: str | None) -> int:
        """A job on the present text begins and replaces older ones for the same; returns its ticket."""
        self.jobs = {t: j for t, j in self.jobs.items() if kernel is not None and j.kernel != kernel}
        self._tickets += 1
        self.jobs[self._tickets] = Job(kernel, message, self.source, self.reading)
        return self._tickets

    def stop(self, ticket: int) -> None:
        """The job ended without results."""
        self.jobs.pop(ticket, None)

    def clear(self) -> None:
        """Nothing is known any more."""
        self.results = Results()

    def needs_verdict(self, kernel: str) -> bool:
        """Whether nothing is known of ``kernel`` as it stands."""
        known = self.results.verdicts.get(kernel)
        return known is None or isinstance(known.outcome, Unavailable) or self.is_stale(kernel)

    def adopt(self, spec: KernelSpec, verdict: Verdict, findings: tuple[Finding, ...]) -> None:
        """Take over a verdict on a kernel of the present text that no verification of its own gave."""
        old = self.results
        by_kernel = {**old.by_kernel, spec.kernel: findings}
        gone = old.by_kernel.get(spec.kernel, ())
        kept = tuple(f for f in old.findings if f not in gone)
        bases = {**old.bases, spec.kernel: Basis.of(self.source, spec)}
        self.results = Results((*kept, *findings), {**old.verdicts, spec.kernel: verdict}, by_kernel, bases)
        self._aged = (self.source, {})

    def settle(
        self,
        ticket: int,
        findings: tuple[Finding, ...],
        verdicts: dict[str, Verdict],
        *,
        keep: tuple[Finding, ...] = (),
        by_kernel: dict[str, tuple[Finding, ...]] | None = None,
    ) -> None:
        """Take over the results of a job; ``keep`` are findings already up to date.

        ``verdicts`` are all that are to be known: a verdict that was known before keeps its basis.
        """
        job = self.jobs.pop(ticket)
        moved = dict(by_kernel or {})
        for edit in job.edits:
            findings = shift(findings, edit)
            moved = {k: fs if self.results.by_kernel.get(k) == fs else shift(fs, edit) for k, fs in moved.items()}
        bases = {k: b for k, b in self.results.bases.items() if verdicts.get(k) is self.results.verdicts.get(k)}
        for kernel in verdicts:
            spec = job.reading.spec_of(kernel) if job.reading is not None else None
            if kernel not in bases and spec is not None:
                bases[kernel] = Basis.of(job.source, spec)
        self.results = Results((*keep, *findings), verdicts, moved, bases)
        self._aged = (self.source, {})

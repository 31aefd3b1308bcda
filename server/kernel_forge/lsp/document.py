"""What the server knows about one open file: its text, what the spec says, what the last run found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from kernel_forge.domain.errors import SourceError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.text import Position, Range
from kernel_forge.lsp.convert import from_range
from kernel_forge.lsp.encoding import Encoding
from kernel_forge.lsp.live import Edit, shift
from kernel_forge.source import SourceFile, parse

if TYPE_CHECKING:  # pydantic is slow to import and nothing here needs it to start
    from kernel_forge.spec import SpecReading


@dataclass
class Results:
    """What a finished job found, moved along with the edits made since.

    ``verdicts`` are by kernel name. ``stale`` is True once anything was typed after the job had started:
    the verdicts then speak of an older text.
    """

    findings: tuple[Finding, ...] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    by_kernel: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    stale: bool = False


class Document:
    """An open file. Changed only from the server's event loop.

    Attributes:
        uri: as the client names it.
        path: the file system path (the URI itself for an unsaved buffer).
        version: the client's version of the text.
        source: the parsed text; empty while ``refused`` says why the text is not used.
        reading: specs and problems of this text; None until it has been read.
        last_reading: those of the last text that has been read, for what may lag behind typing.
        started_reading: those the running (or last) job began with.
        published: files for which diagnostics were sent.
        ticket: number of the last job started; an older one's end is of no interest.
        results: what the last finished job found.
        running: message of the job in progress, None when idle.
    """

    def __init__(self, uri: str, path: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = path
        self.version = version
        self.refused: str | None = None
        self.source: SourceFile
        self._replace(text)
        self.reading: SpecReading | None = None
        self.last_reading: SpecReading | None = None
        self.started_reading: SpecReading | None = None
        self.published: set[str] = set()
        self.results = Results()
        self.running: str | None = None
        self.ticket = 0
        self._edits_since_start: list[Edit] = []

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
        whole_text: Callable[[], str],
    ) -> None:
        """Apply the changes of one ``didChange``, in order, and move the results along.

        ``whole_text`` gives the text after all changes, for when the text before them was refused.
        """
        self.version = version
        self.last_reading, self.reading = self.reading or self.last_reading, None
        if self.refused is not None:
            self._replace(whole_text())
            return
        for change in changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                where = from_range(change.range, self.line, encoding)
                at_end = where.start.column == len(self.line(where.start.line))
                self._note(Edit(where, change.text, at_end))
                try:
                    self.source = self.source.edit(where, change.text)
                except SourceError:
                    self._replace(whole_text())
                    return
            else:
                whole = Range(Position(0, 0), self.source.position(len(self.source.text)))
                self._note(Edit(whole, change.text))
                self._replace(change.text)

    def _replace(self, text: str) -> None:
        try:
            self.source = parse(text, self.path)
            self.refused = None
        except SourceError as error:
            self.source = parse("", self.path)
            self.refused = str(error)

    def _note(self, edit: Edit) -> None:
        self.results.findings = shift(self.results.findings, edit)
        self.results.stale = bool(self.results.verdicts)
        if self.running is not None:
            self._edits_since_start.append(edit)

    def start(self, message: str) -> int:
        """A job on the present text begins (and replaces any older one); returns its ticket."""
        self.running = message
        self.started_reading = self.reading
        self._edits_since_start = []
        self.ticket += 1
        return self.ticket

    def stop(self) -> None:
        """The job ended without results."""
        self.running = None
        self._edits_since_start = []

    def settle(
        self,
        findings: tuple[Finding, ...],
        verdicts: dict[str, Verdict],
        *,
        keep: tuple[Finding, ...] = (),
        by_kernel: dict[str, tuple[Finding, ...]] | None = None,
    ) -> None:
        """Take over the results of the job begun with :meth:`start`; ``keep`` are findings already up to date."""
        stale = bool(self._edits_since_start)
        for edit in self._edits_since_start:
            findings = shift(findings, edit)
        self.results = Results((*keep, *findings), verdicts, by_kernel or {}, stale)
        self.stop()

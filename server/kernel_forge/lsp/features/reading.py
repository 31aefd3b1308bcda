"""Spec diagnostics: read the blocks shortly after the text changed, publish what is known.

Reading runs on a thread of its own: a large file with many blocks takes longer than a keystroke may.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.text import Range
from kernel_forge.lsp.convert import is_file_path, to_diagnostic, uri_of
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.lsp.tuned import Standing, standings, verdict_of_default
from kernel_forge.views.findings import findings_of

if TYPE_CHECKING:
    from kernel_forge.spec import SpecReading

log = logging.getLogger(__name__)
DEBOUNCE_SECONDS = 0.15
reader = ThreadPoolExecutor(1, thread_name_prefix="spec-reader")


def sidecar_path(path: str) -> Path | None:
    """``name.forge.toml`` beside ``name.cu``; None beside a document that is no file."""
    return Path(path).with_suffix(".forge.toml") if is_file_path(path) else None


def sidecar_of(server: KernelForgeServer, path: str) -> tuple[str, str] | None:
    """Path and text of the sidecar: as open in the editor, else as on disk, else None."""
    beside = sidecar_path(path)
    if beside is None:
        return None
    if str(beside) in server.sidecars:
        return str(beside), server.sidecars[str(beside)]
    try:
        return (str(beside), beside.read_text(encoding="utf-8")) if beside.is_file() else None  # not a pipe
    except (OSError, UnicodeDecodeError):
        return None


def schedule(server: KernelForgeServer, document: Document, delay: float = DEBOUNCE_SECONDS) -> None:
    """Read the document's specs after ``delay`` seconds without a further call."""
    pending = server.pending_reads.pop(document.uri, None)
    if pending is not None:
        pending.cancel()
    server.pending_reads[document.uri] = asyncio.get_running_loop().create_task(_read_later(server, document, delay))


async def _read_later(server: KernelForgeServer, document: Document, delay: float) -> None:
    await asyncio.sleep(delay)
    await read(server, document)


async def read(server: KernelForgeServer, document: Document) -> None:
    """Read the specs of the document's present text and publish; a newer text cancels the effect."""
    source, version = document.source, document.version
    beside = sidecar_of(server, document.path)
    tuned = dict(document.tunings.results)

    def work() -> tuple["SpecReading", dict[str, Standing]]:
        # Imported late: pydantic takes long to import, and the client waits for `initialized`.
        from kernel_forge.spec import read_specs

        found = read_specs(source, beside)
        return found, standings(tuned, found, source, beside)

    reading, standing = await asyncio.get_running_loop().run_in_executor(reader, work)
    if document.version == version and server.document(document.uri) is document:
        document.reading = reading
        document.tunings.standings = standing
        _adopt_verdicts(document, reading)
        publish(server, document)
        server.refresh_lenses()


def _adopt_verdicts(document: Document, reading: "SpecReading") -> None:
    """A tuning verifies the default in full, and its winner: where nothing else is known, that is known."""
    for kernel, standing in document.tunings.standings.items():
        spec, known = reading.spec_of(kernel), document.tunings.results[kernel]
        if spec is None or standing.is_stale or not document.needs_verdict(kernel):
            continue
        verdict = verdict_of_default(known.result, spec)
        if verdict is not None and not isinstance(verdict.outcome, Unavailable):
            is_same = known.text == document.source.text  # else its places may be elsewhere by now
            document.adopt(spec, verdict, findings_of(verdict, spec, spec.name_range) if is_same else ())


def publish(server: KernelForgeServer, document: Document) -> None:
    """Send every diagnostic of the document, also those that lie in its sidecar or headers."""
    by_path: dict[str, list[Finding]] = {document.path: []}
    for finding in current_findings(document):
        by_path.setdefault(finding.path, []).append(finding)
    for path in document.published - by_path.keys():
        by_path[path] = []
    document.published = {path for path, findings in by_path.items() if findings}
    for path, findings in by_path.items():
        own = path == document.path
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri=document.uri if own else uri_of(path),
                version=document.version if own else None,
                diagnostics=[to_diagnostic(f, server.lines_of, server.encoding) for f in findings],
            )
        )


def current_findings(document: Document) -> tuple[Finding, ...]:
    """Problems of the spec as it stands, then what the last run found and is still true to the text."""
    if document.refused is not None:
        return (Finding("KF902", Severity.ERROR, document.refused, document.path, Range.of_line(0)),)
    problems = document.reading.problems if document.reading is not None else ()
    return (*problems, *document.results.findings)

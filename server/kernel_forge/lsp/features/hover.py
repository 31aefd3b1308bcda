"""Hovers: on a kernel's name, and on the words of a spec block."""

from lsprotocol import types as lsp

from kernel_forge.domain.text import Position
from kernel_forge.lsp.convert import from_position, to_range
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.source import CommentBlock
from kernel_forge.views.hover import hover_text
from kernel_forge.views.tuning_hover import running_text, tuning_text


def register(server: KernelForgeServer) -> None:
    """Register ``textDocument/hover``."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(ls: KernelForgeServer, params: lsp.HoverParams) -> lsp.Hover | None:
        document = ls.document(params.text_document.uri)
        if document is None:
            return None
        at = from_position(params.position, document.line, ls.encoding)
        block = block_at(document, at)
        if block is not None:
            from kernel_forge.spec import describe  # late: see features/reading.py

            toml_at = to_toml(block, at)
            text = describe(block.toml, toml_at) if toml_at is not None else None
            return _markdown(text) if text is not None else None
        reading = document.reading or document.last_reading
        kernel = next((k for k in document.source.kernels if k.name_range.contains(at)), None)
        spec = reading.spec_of(kernel.name) if reading is not None and kernel is not None else None
        if kernel is None or spec is None:
            return None
        text = hover_text(
            spec,
            document.results.verdicts.get(spec.kernel),
            stale=document.is_stale(spec.kernel),
            running=document.running(spec.kernel),
            tuning=_tuning(document, spec.kernel),
        )
        found = _markdown(text)
        found.range = to_range(kernel.name_range, document.line, ls.encoding)
        return found


def _tuning(document: Document, kernel: str) -> str | None:
    """What is known of tuning the kernel: the run in progress, then the last result."""
    tunings = document.tunings
    parts = []
    run, known, standing = tunings.running.get(kernel), tunings.results.get(kernel), tunings.standings.get(kernel)
    if run is not None:
        parts.append(running_text(run.message, run.search))
    if known is not None and standing is not None:
        parts.append(tuning_text(known.result, stale=standing.is_stale, applied=standing.is_applied))
    return "\n\n".join(parts) or None


def _markdown(text: str) -> lsp.Hover:
    return lsp.Hover(contents=lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=text))


def block_at(document: Document, at: Position) -> CommentBlock | None:
    """The spec block around a position."""
    return next((b for b in document.source.blocks if b.range.contains(at)), None)


def to_toml(block: CommentBlock, at: Position) -> Position | None:
    """A position of the file as one of the block's TOML; None on the delimiters and before the text."""
    line = at.line - block.range.start.line - 1
    if not 0 <= line < len(block.columns):
        return None
    column = at.column - block.columns[line]
    return Position(line, column) if column >= 0 else None

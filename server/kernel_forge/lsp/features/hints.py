"""Inlay hints: what a tuned kernel takes, at the end of the line of its name."""

from lsprotocol import types as lsp

from kernel_forge.domain.text import Position
from kernel_forge.domain.tuning import KernelTuning
from kernel_forge.lsp.convert import from_range, to_position
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.views.tuning_hover import hint_label, tuning_text


def register(server: KernelForgeServer) -> None:
    """Register ``textDocument/inlayHint``."""

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions(resolve_provider=False))
    def inlay_hint(ls: KernelForgeServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = ls.document(params.text_document.uri)
        if document is None or not ls.settings.tuning_hints:
            return []
        where = from_range(params.range, document.line, ls.encoding)
        hints = []
        for kernel in document.source.kernels:
            known = document.tunings.results.get(kernel.name)
            standing = document.tunings.standings.get(kernel.name)
            at = Position(kernel.name_range.end.line, len(document.line(kernel.name_range.end.line)))
            if known is None or standing is None or standing.is_stale or not where.contains(at):
                continue  # a time of an older text would be taken for one of this
            result = known.result
            if isinstance(result, KernelTuning):
                tooltip = tuning_text(result, applied=standing.is_applied)
                hints.append(
                    lsp.InlayHint(
                        position=to_position(at, document.line, ls.encoding),
                        label=hint_label(result, applied=standing.is_applied),
                        padding_left=True,
                        tooltip=lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=tooltip),
                    )
                )
        return hints

"""Completion inside spec blocks."""

from lsprotocol import types as lsp

from kernel_forge.lsp.convert import from_position
from kernel_forge.lsp.features.hover import block_at, to_toml
from kernel_forge.lsp.server import KernelForgeServer


def register(server: KernelForgeServer) -> None:
    """Register ``textDocument/completion``."""

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=['"', "=", "[", "{"]))
    def completion(ls: KernelForgeServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document = ls.document(params.text_document.uri)
        if document is None:
            return []
        at = from_position(params.position, document.line, ls.encoding)
        block = block_at(document, at)
        toml_at = to_toml(block, at) if block is not None else None
        if block is None or toml_at is None:
            return []
        from kernel_forge.spec import complete  # late: see features/reading.py

        return [
            lsp.CompletionItem(
                label=c.label, insert_text=c.text, detail=c.detail[:120], documentation=c.detail, sort_text=f"{i:03}"
            )
            for i, c in enumerate(complete(block.toml, toml_at, document.source.kernels))
        ]

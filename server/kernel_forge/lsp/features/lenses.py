"""One lens above every kernel with a spec: what is known about it, and *Verify*."""

from lsprotocol import types as lsp

from kernel_forge.domain.spec import KernelSpec
from kernel_forge.lsp.convert import to_range
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.features.verification import UNTRUSTED, VERIFY_COMMAND
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.views.words import title


def register(server: KernelForgeServer) -> None:
    """Register ``textDocument/codeLens``."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    def code_lens(ls: KernelForgeServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = ls.document(params.text_document.uri)
        if document is None:
            return []
        reading = document.reading or document.last_reading
        if reading is None:
            return []
        names = {k.name: k.name_range for k in document.source.kernels}
        return [
            lsp.CodeLens(
                range=to_range(names[spec.kernel], document.line, ls.encoding),
                command=lsp.Command(
                    title=lens_title(ls, document, spec),
                    command=VERIFY_COMMAND,
                    arguments=[document.uri, spec.kernel],
                ),
            )
            for spec in reading.specs
            if spec.kernel in names
        ]


def lens_title(server: KernelForgeServer, document: Document, spec: KernelSpec) -> str:
    """The state in a few words."""
    running = document.running(spec.kernel)
    if running is not None:
        return f"running: {running}"
    verdict = document.results.verdicts.get(spec.kernel)
    if verdict is None:
        return "not verified · Verify" if server.settings.trusted else f"not verified: {UNTRUSTED}"
    stale = "changed since: " if document.is_stale(spec.kernel) else ""
    return stale + title(verdict)

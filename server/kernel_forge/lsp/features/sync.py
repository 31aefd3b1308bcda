"""Open, change, save, close: keep the documents and start work."""

import logging

from lsprotocol import types as lsp

from kernel_forge.lsp import plain_text
from kernel_forge.lsp.convert import path_of, uri_of
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.features import reading
from kernel_forge.lsp.features.tuning import pause_all
from kernel_forge.lsp.features.verification import cancel, verify
from kernel_forge.lsp.server import KernelForgeServer

log = logging.getLogger(__name__)
SIDECAR_SUFFIX = ".forge.toml"


def register(server: KernelForgeServer) -> None:
    """Register the handlers of document synchronisation."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: KernelForgeServer, params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = path_of(item.uri)
        if path.endswith(SIDECAR_SUFFIX):
            ls.sidecars[path] = item.text
            _reread_owner(ls, path)
            return
        reading.schedule(ls, ls.open_document(item), delay=0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(ls: KernelForgeServer, params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        path = path_of(uri)
        if path in ls.sidecars:
            for change in params.content_changes:
                ls.sidecars[path] = plain_text.change(ls.sidecars[path], change, ls.encoding)
            _reread_owner(ls, path)
            return
        document = ls.document(uri)
        if document is None:
            log.warning("ignored a change of a document that is not open")
            return
        had_findings = bool(document.results.findings)
        document.apply(params.content_changes, version, ls.encoding)
        if had_findings:
            reading.publish(ls, document)  # at once: a stale squiggle must not stay on a changed line
        reading.schedule(ls, document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(ls: KernelForgeServer, params: lsp.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        document = ls.document(params.text_document.uri)
        if path.endswith(SIDECAR_SUFFIX):
            document = _owner(ls, path)
        if document is not None and ls.settings.verify_on_save:
            await verify(ls, document, None, asked=False)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(ls: KernelForgeServer, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.sidecars.pop(path_of(uri), None)
        document = ls.documents.pop(uri, None)
        if document is None:
            return
        pending = ls.pending_reads.pop(uri, None)
        if pending is not None:
            pending.cancel()
        await cancel(ls, document)
        await pause_all(ls, document)
        for path in {document.path, *document.published}:
            target = uri if path == document.path else uri_of(path)
            ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=target, diagnostics=[]))


def _owner(server: KernelForgeServer, sidecar: str) -> Document | None:
    return next((d for d in server.documents.values() if str(reading.sidecar_path(d.path)) == sidecar), None)


def _reread_owner(server: KernelForgeServer, sidecar: str) -> None:
    owner = _owner(server, sidecar)
    if owner is not None:
        reading.schedule(server, owner)

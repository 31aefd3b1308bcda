"""Lenses above every kernel with a spec: what is known about it, and *Verify*; what tuning found, and *Autotune*."""

from lsprotocol import types as lsp

from kernel_forge.domain.spec import KernelSpec
from kernel_forge.lsp.convert import to_range
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.features.tuning import AUTOTUNE_COMMAND, FINISH_COMMAND, PAUSE_COMMAND
from kernel_forge.lsp.features.verification import UNTRUSTED, VERIFY_COMMAND
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.views.tuning_hover import running_title, tuned_title
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
                command=lsp.Command(title=title, command=command, arguments=[document.uri, spec.kernel]),
            )
            for spec in reading.specs
            if spec.kernel in names
            for title, command in (
                (lens_title(ls, document, spec), VERIFY_COMMAND),
                *tuning_lenses(ls, document, spec),
            )
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


def tuning_lenses(server: KernelForgeServer, document: Document, spec: KernelSpec) -> list[tuple[str, str]]:
    """Titles and commands about tuning; none where there is nothing to tune, or no leave to."""
    tunings, kernel = document.tunings, spec.kernel
    run = tunings.running.get(kernel)
    if run is not None:
        title = running_title(run.message, run.search)
        finish = [(f"{title} · Finish", FINISH_COMMAND)] if run.search is not None else [(title, PAUSE_COMMAND)]
        return [*finish, ("Pause", PAUSE_COMMAND)]
    if not spec.tunables or not server.settings.trusted:
        return []
    paused = tunings.paused.get(kernel)
    if paused is not None and paused.text == document.source.text:
        return [(f"tuning paused after {paused.trials} trials · Autotune", AUTOTUNE_COMMAND)]
    known, standing = tunings.results.get(kernel), tunings.standings.get(kernel)
    if known is None or standing is None:
        return [("Autotune", AUTOTUNE_COMMAND)]
    return [(tuned_title(known.result, stale=standing.is_stale, applied=standing.is_applied), AUTOTUNE_COMMAND)]

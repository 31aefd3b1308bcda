"""Code actions: mend a spec, verify and tune a kernel, apply what tuning found, draft a spec block."""

from collections.abc import Mapping

from lsprotocol import types as lsp

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.outcome import Passed, Verdict
from kernel_forge.domain.text import Range, TextEdit
from kernel_forge.lsp.convert import from_range, path_of, to_diagnostic, to_text_edit, uri_of
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.features.reading import current_findings, sidecar_of, sidecar_path
from kernel_forge.lsp.features.tuning import AUTOTUNE_COMMAND, untunable
from kernel_forge.lsp.features.verification import UNTRUSTED, VERIFY_COMMAND
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.lsp.tuned import is_sure
from kernel_forge.source import Kernel
from kernel_forge.views.words import caveat, pairs, problem

VERIFY_KIND = "refactor.rewrite.kernelForge.verify"
AUTOTUNE_KIND = "refactor.rewrite.kernelForge.autotune"
APPLY_KIND = "refactor.rewrite.kernelForge.applyBest"
ADD_SPEC_KIND = "refactor.rewrite.kernelForge.addSpecBlock"


def register(server: KernelForgeServer) -> None:
    """Register ``textDocument/codeAction``."""

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(
            code_action_kinds=[lsp.CodeActionKind.QuickFix, VERIFY_KIND, AUTOTUNE_KIND, APPLY_KIND, ADD_SPEC_KIND],
            resolve_provider=False,
        ),
    )
    def code_action(ls: KernelForgeServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        path = path_of(params.text_document.uri)
        wanted = params.context.only
        document = ls.document(params.text_document.uri)
        owners = [document] if document is not None else [d for d in ls.documents.values() if _is_beside(d, path)]
        if not owners:
            return []
        where = from_range(params.range, ls.lines_of(path), ls.encoding)
        actions = [action for owner in owners for action in _fixes(ls, owner, path, where)]
        if document is not None:
            actions += _kernel_actions(ls, document, where)
        return [a for a in actions if not wanted or any(_within(a.kind, kind) for kind in wanted)]


def _within(kind: str | None, wanted: str) -> bool:
    return kind is not None and (kind == wanted or kind.startswith(f"{wanted}.") or wanted == "")


def _is_beside(document: Document, path: str) -> bool:
    """Whether ``path`` is the sidecar of the document."""
    return str(sidecar_path(document.path)) == path


def _fixes(server: KernelForgeServer, document: Document, path: str, where: Range) -> list[lsp.CodeAction]:
    """The fixes at a place of the document or of its sidecar; each edits the file it is meant for."""
    actions = []
    for finding in current_findings(document):
        if finding.path != path or not _touches(finding.range, where):
            continue
        for fix in finding.fixes:
            actions.append(
                lsp.CodeAction(
                    title=fix.title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[to_diagnostic(finding, server.lines_of, server.encoding)],
                    is_preferred=fix.preferred or None,
                    edit=_edit(server, document, fix.path or finding.path, fix.edits),
                )
            )
    return actions


def _kernel_actions(server: KernelForgeServer, document: Document, where: Range) -> list[lsp.CodeAction]:
    kernel = kernel_at(document, where)
    if kernel is None:
        return []
    specs = document.reading.specs if document.reading is not None else ()
    if any(spec.kernel == kernel.name for spec in specs):
        why_not = None if server.settings.trusted else UNTRUSTED
        untuned = untunable(server, document, kernel.name)
        return [
            _run(document, kernel, "Verify", VERIFY_KIND, VERIFY_COMMAND, why_not),
            _run(document, kernel, "Autotune", AUTOTUNE_KIND, AUTOTUNE_COMMAND, untuned),
            *_apply_best(server, document, kernel),
        ]
    if kernel.body_range is None or any(block.kernel_below == kernel.name for block in document.source.blocks):
        return []
    from kernel_forge.spec import draft_block  # late: see features/reading.py

    try:
        draft = draft_block(document.source, kernel.name)
    except UsageError:  # it takes what no argument can be made for
        return []
    gaps = " (with gaps to fill)" if draft.has_gaps else ""
    return [
        lsp.CodeAction(
            title=f"Add spec block for {kernel.name}{gaps}",
            kind=ADD_SPEC_KIND,
            edit=_edit(server, document, document.path, (draft.edit,)),
        )
    ]


def _run(document: Document, kernel: Kernel, verb: str, kind: str, command: str, why_not: str | None) -> lsp.CodeAction:
    title = f"{verb} {kernel.name}"
    return lsp.CodeAction(
        title=title,
        kind=kind,
        command=lsp.Command(title=title, command=command, arguments=[document.uri, kernel.name]),
        disabled=None if why_not is None else lsp.CodeActionDisabled(reason=why_not),
    )


def _apply_best(server: KernelForgeServer, document: Document, kernel: Kernel) -> list[lsp.CodeAction]:
    """The edit that makes the best configuration the default, where the result speaks of the present text."""
    known = document.tunings.results.get(kernel.name)
    standing = document.tunings.standings.get(kernel.name)
    if known is None or standing is None or standing.is_stale or standing.is_applied:
        return []
    tuning = known.result
    if isinstance(tuning, Verdict) or not tuning.is_improved:
        return []
    if standing.sidecar != sidecar_of(server, document.path):  # edited, and not read yet
        return []
    reason = standing.change.impossible
    if not isinstance(tuning.verdict.outcome, Passed):
        reason = f"the best is not verified: {problem(tuning.verdict.outcome)}"
    return [
        lsp.CodeAction(
            title=f"Apply best to {kernel.name}{'' if caveat(tuning.basis) is None else ' (emulated)'}: "
            f"{pairs(tuning.winner.configuration)}",
            kind=APPLY_KIND,
            is_preferred=(reason is None and is_sure(tuning)) or None,
            edit=None if reason is not None else _edits(server, document, standing.change.edits),
            disabled=None if reason is None else lsp.CodeActionDisabled(reason=reason),
        )
    ]


def kernel_at(document: Document, where: Range) -> Kernel | None:
    """The kernel whose text (or spec block right above it) ``where`` touches."""
    for kernel in document.source.kernels:
        if _touches(kernel.range, where):
            return kernel
    for block in document.source.blocks:
        if block.kernel_below is not None and _touches(block.range, where):
            return next((k for k in document.source.kernels if k.name == block.kernel_below), None)
    return None


def _has_document_changes(capabilities: lsp.ClientCapabilities) -> object:
    edits = capabilities.workspace.workspace_edit if capabilities.workspace is not None else None
    return edits is not None and edits.document_changes


def _touches(a: Range, b: Range) -> bool:
    return a.start <= b.end and b.start <= a.end


def _edit(server: KernelForgeServer, document: Document, path: str, edits: tuple[TextEdit, ...]) -> lsp.WorkspaceEdit:
    return _edits(server, document, {path: edits})


def _edits(
    server: KernelForgeServer, document: Document, edits: Mapping[str, tuple[TextEdit, ...]]
) -> lsp.WorkspaceEdit:
    """Edits by path, of the document or of what stands beside it (then without a version)."""
    changes: dict[str, list[lsp.TextEdit]] = {}
    for path, of_path in edits.items():
        uri = document.uri if path == document.path else uri_of(path)
        changes[uri] = [to_text_edit(edit, server.lines_of(path), server.encoding) for edit in of_path]
    if not server.supports(_has_document_changes):
        return lsp.WorkspaceEdit(changes=changes)
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(
                text_document=lsp.OptionalVersionedTextDocumentIdentifier(
                    uri=uri, version=document.version if uri == document.uri else None
                ),
                edits=list(converted),
            )
            for uri, converted in changes.items()
        ]
    )

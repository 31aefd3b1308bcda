"""Running verifications: from a save or a command to findings, with progress and cancel."""

import logging
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, assert_never

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from kernel_forge.domain.event import Progress
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.text import Location, Range
from kernel_forge.jobs.client import JobCancelled, JobFailed
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.lsp.convert import unverifiable
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.encoding import as_written
from kernel_forge.lsp.features import reading
from kernel_forge.lsp.progress import ProgressBar
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.views.findings import failure_finding, findings_of

log = logging.getLogger(__name__)
VERIFY_COMMAND = "kernelForge.verify"
UNTRUSTED = "this workspace is not trusted: nothing is compiled or run"


def register(server: KernelForgeServer) -> None:
    """Register the commands that start and stop verifications."""

    @server.command(VERIFY_COMMAND)
    async def verify_command(ls: KernelForgeServer, *arguments: Any) -> None:
        uri, kernel = strings(arguments, "uri", "kernel")
        document = opened(ls, uri)
        if document is None:
            return
        await verify(ls, document, kernel, asked=True)

    @server.command("kernelForge.cancel")
    async def cancel_command(ls: KernelForgeServer, *arguments: Any) -> None:
        (uri,) = strings(arguments, "uri")
        document = ls.document(uri) if uri is not None else None
        if document is not None:
            await cancel(ls, document)

    @server.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    async def progress_cancelled(ls: KernelForgeServer, params: lsp.WorkDoneProgressCancelParams) -> None:
        stop = ls.on_cancel.get(params.token)
        if stop is not None:
            await stop()


def opened(server: KernelForgeServer, uri: str | None) -> Document | None:
    """The document that a command is about; where it is not open, the person is told."""
    document = server.document(uri) if uri is not None else None
    if document is None:
        server.tell("Open the file in the editor first.", lsp.MessageType.Warning)
    return document


def strings(arguments: Sequence[object], *names: str) -> list[str | None]:
    """The arguments of a command by position: strings, None where missing or null. Further ones are ignored.

    (pygls itself would demand that a command with named parameters gets all of them.)

    Raises:
        JsonRpcInvalidParams: one is something else.
    """
    found: list[str | None] = []
    for name, value in zip_longest(names, arguments[: len(names)]):
        if value is not None and not isinstance(value, str):
            raise JsonRpcInvalidParams(f"argument {name}: expected a string or null, got {type(value).__name__}")
        found.append(value)
    return found


async def cancel(server: KernelForgeServer, document: Document) -> None:
    """Stop the document's verifications; their processes are gone on return."""
    for kernel in {job.kernel for job in document.jobs.values()}:
        await server.queue.cancel(_key(document, kernel))


def _key(document: Document, kernel: str | None) -> str:
    """The queue's key: a job for one kernel takes the place of no other job."""
    return f"{document.uri}\n{kernel or ''}"


async def verify(server: KernelForgeServer, document: Document, kernel: str | None, *, asked: bool) -> None:
    """Verify the document's present text. ``asked`` by the person (as against a save): then say why not, if not."""
    if not server.settings.trusted:
        if asked:
            server.tell(f"Not verified: {UNTRUSTED}.", lsp.MessageType.Warning)
        return
    impossible = unverifiable(document.path)
    if impossible is not None:
        if asked:
            server.tell(f"Not verified: {impossible}.", lsp.MessageType.Warning)
        return
    if document.reading is None:
        await reading.read(server, document)
    read = document.reading
    if document.refused is not None or read is None or not read.specs:
        if asked:
            server.tell(_nothing_to_do(document), lsp.MessageType.Warning)
        if document.results.verdicts or document.results.findings:
            document.clear()
            reading.publish(server, document)
        return
    if kernel is not None and read.spec_of(kernel) is None:
        server.tell(f"Not verified: this file has no spec block of a kernel {kernel[:100]}.", lsp.MessageType.Warning)
        return
    request = VerifyRequest(
        path=document.path,
        text=as_written(document.source.text),
        sidecar=reading.sidecar_of(server, document.path),
        kernel=kernel,
        device=server.settings.device,
        include_dirs=server.settings.include_dirs,
        flags=server.settings.compiler_flags,
        defines=server.settings.defines or {},
        time_limit=server.settings.time_limit,
    )
    replaced = {job.kernel for job in document.jobs.values()} - {kernel} if kernel is None else set()
    ticket = document.start("waiting", kernel)
    for other in replaced:  # the whole file has those kernels too, with a newer text
        await server.queue.cancel(_key(document, other))
    progress = ProgressBar(server, lambda: cancel(server, document))
    await progress.begin(f"Verify {kernel or document.path.rsplit('/', 1)[-1]}")

    def report(step: Progress) -> None:
        if ticket in document.jobs:
            document.jobs[ticket].message = step.message
            progress.report(step.message, step.done, step.total)

    server.refresh_lenses()
    end = await server.queue.submit(
        _key(document, kernel), lambda: server.jobs.run(request, report, request.wall_limit)
    )
    progress.end()
    if ticket in document.jobs:  # else a newer run has taken over, and shows its own state
        _settle(server, document, ticket, end)
    server.refresh_lenses()


def _nothing_to_do(document: Document) -> str:
    if document.refused is not None:
        return document.refused
    if document.reading is not None and document.reading.problems:
        return "Not verified: mend the spec block first."
    return "Not verified: this file has no spec block. Use Add spec block on a kernel."


def _settle(
    server: KernelForgeServer, document: Document, ticket: int, end: FileReport | JobFailed | JobCancelled
) -> None:
    match end:
        case FileReport():
            _take(document, ticket, end)
        case JobCancelled():
            document.stop(ticket)
            return
        case JobFailed(kind="reference"):
            place = end.location or Location(document.path, Range.of_line(0))
            text = f"not verified: {end.message}"
            finding = Finding("KF203", Severity.ERROR, text, place.path, place.range)
            verdicts, by_kernel, kept = _others(document, document.jobs[ticket].kernel)
            document.settle(ticket, (finding,), verdicts, keep=kept, by_kernel=by_kernel)
        case JobFailed():
            log.warning("verification failed (%s): %s\n%s", end.kind, end.message, end.log)
            first = end.message.strip().splitlines()[-1] if end.message.strip() else end.kind
            text = f"the verification itself failed ({end.kind}): {first}"
            finding = failure_finding(end.kind, text, document.path, Severity.WARNING)
            verdicts, by_kernel, kept = _others(document, document.jobs[ticket].kernel)
            document.settle(ticket, (finding,), verdicts, keep=kept, by_kernel=by_kernel)
        case _:
            assert_never(end)
    reading.publish(server, document)


def _others(
    document: Document, kernel: str | None
) -> tuple[dict[str, Verdict], dict[str, tuple[Finding, ...]], tuple[Finding, ...]]:
    """Verdicts and findings (by kernel, and all) of the other kernels; none where ``kernel`` is None."""
    if kernel is None:
        return {}, {}, ()
    results = document.results
    by_kernel = {k: fs for k, fs in results.by_kernel.items() if k != kernel}
    verdicts = {k: v for k, v in results.verdicts.items() if k != kernel}
    return verdicts, by_kernel, tuple(f for fs in by_kernel.values() for f in fs)


def _take(document: Document, ticket: int, report: FileReport) -> None:
    """New verdicts replace those of the same kernels; with a job for one kernel the others' stay."""
    job = document.jobs[ticket]
    verdicts, by_kernel, kept = _others(document, job.kernel)
    new: list[Finding] = []
    for verdict in report.verdicts:
        spec = job.reading.spec_of(verdict.kernel) if job.reading is not None else None
        name_range = spec.name_range if spec is not None else Range.of_line(0)
        found = findings_of(verdict, spec, name_range)
        by_kernel[verdict.kernel] = found
        new.extend(found)
        verdicts[verdict.kernel] = verdict
    document.settle(ticket, tuple(new), verdicts, keep=kept, by_kernel=by_kernel)

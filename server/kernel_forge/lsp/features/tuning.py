"""Running *Autotune*: from a command to a result, in the background, with progress, pause and finish."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, assert_never

from lsprotocol import types as lsp

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.event import Progress
from kernel_forge.domain.outcome import Unavailable, Verdict
from kernel_forge.domain.record import Kind, Selection
from kernel_forge.domain.tuning import Budget, KernelTuning
from kernel_forge.jobs.client import JobCancelled, JobFailed, TuneEnd
from kernel_forge.jobs.requests import TuneReport, TuneRequest
from kernel_forge.lsp.convert import unverifiable
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.encoding import as_written
from kernel_forge.lsp.features import reading
from kernel_forge.lsp.features.verification import UNTRUSTED, opened, strings
from kernel_forge.lsp.progress import ProgressBar
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.lsp.tuned import Paused, TuningRun, tuned
from kernel_forge.ports import Ledger
from kernel_forge.views.tuning_hover import search_line, tuned_title
from kernel_forge.views.words import problem, sentence

log = logging.getLogger(__name__)
AUTOTUNE_COMMAND = "kernelForge.autotune"
FINISH_COMMAND = "kernelForge.autotune.finish"
PAUSE_COMMAND = "kernelForge.autotune.pause"
LENS_SECONDS = 1.0
"""How often at most lenses are asked for anew while a search goes on."""


def register(server: KernelForgeServer) -> None:
    """Register the commands that start, end and pause tuning runs."""

    @server.command(AUTOTUNE_COMMAND)
    async def autotune_command(ls: KernelForgeServer, *arguments: Any) -> None:
        uri, kernel = strings(arguments, "uri", "kernel")
        document = opened(ls, uri)
        if document is None:
            return
        await autotune(ls, document, kernel)

    @server.command(FINISH_COMMAND)
    def finish_command(ls: KernelForgeServer, *arguments: Any) -> None:
        for _, kernel, run in _addressed(ls, arguments):
            if run.search is not None:
                run.finish.set()
            elif run.tried:
                ls.tell(f"{kernel}: the search has ended already; its best is being verified.")
            else:
                ls.tell(f"{kernel}: nothing has been tried yet.")

    @server.command(PAUSE_COMMAND)
    async def pause_command(ls: KernelForgeServer, *arguments: Any) -> None:
        for document, kernel, _ in _addressed(ls, arguments):
            await pause(ls, document, kernel)


def _addressed(server: KernelForgeServer, arguments: tuple[Any, ...]) -> list[tuple[Document, str, TuningRun]]:
    """The runs that a command means: of one kernel, or all of the file."""
    uri, kernel = strings(arguments, "uri", "kernel")
    document = server.document(uri) if uri is not None else None
    running = dict(document.tunings.running) if document is not None else {}
    found = [(document, name, run) for name, run in running.items() if kernel in (None, name) and document is not None]
    if not found:
        server.tell("Nothing is being tuned there.")
    return found


async def pause(server: KernelForgeServer, document: Document, kernel: str) -> None:
    """Stop the tuning of ``kernel``; its processes are gone on return, and what it tried stays in the record."""
    run = document.tunings.running.get(kernel)
    if run is not None:
        run.is_stopped = True
        await server.tuning_queue.cancel(_key(document, kernel))


async def pause_all(server: KernelForgeServer, document: Document) -> None:
    """Stop every tuning run of the document."""
    for kernel in tuple(document.tunings.running):
        await pause(server, document, kernel)


def _key(document: Document, kernel: str) -> str:
    return f"{document.uri}\n{kernel}"


def untunable(server: KernelForgeServer, document: Document, kernel: str) -> str | None:
    """Why ``kernel`` cannot be tuned, or None; ``document`` has been read."""
    if not server.settings.trusted:
        return UNTRUSTED
    impossible = unverifiable(document.path)
    if impossible is not None:
        return impossible
    if document.refused is not None:
        return document.refused
    spec = document.reading.spec_of(kernel) if document.reading is not None else None
    if spec is None:
        return f"this file has no spec block of a kernel {kernel[:100]} that can be used"
    return None if spec.tunables else "its spec has no [tune] table"


async def autotune(server: KernelForgeServer, document: Document, kernel: str | None) -> None:
    """Begin to tune a kernel of the document's present text, and return; say why not, if not."""
    if document.reading is None and server.settings.trusted:
        await reading.read(server, document)
    read = document.reading
    tunable = [spec.kernel for spec in read.specs if spec.tunables] if read is not None else []
    name = kernel if kernel is not None else tunable[0] if len(tunable) == 1 else None
    if name is None:
        which = f"name one of {', '.join(tunable)}" if tunable else "this file has no spec with a [tune] table"
        server.tell(f"Not tuned: {which if server.settings.trusted else UNTRUSTED}.", lsp.MessageType.Warning)
        return
    why_not = untunable(server, document, name)
    spec = read.spec_of(name) if read is not None else None
    if why_not is not None or spec is None:
        server.tell(f"Not tuned: {name[:100]}: {why_not}.", lsp.MessageType.Warning)
        return
    old = document.tunings.running.get(name)
    if old is not None and old.source is document.source:
        server.tell(f"{name} is being tuned already.")
        return
    if old is not None:
        old.is_stopped = True  # it may not be in the queue yet, where the new one would replace it
    run = TuningRun(spec, document.source, reading.sidecar_of(server, document.path))
    document.tunings.running[name] = run
    document.tunings.paused.pop(name, None)
    server.in_background(_run(server, document, name, run))


def _request(server: KernelForgeServer, run: TuningRun, kernel: str) -> TuneRequest:
    settings = server.settings
    return TuneRequest(
        path=run.source.path,
        text=as_written(run.source.text),
        sidecar=run.sidecar,
        kernel=kernel,
        device=settings.device,
        include_dirs=settings.include_dirs,
        flags=settings.compiler_flags,
        defines=settings.defines or {},
        time_limit=settings.time_limit,
        budget=Budget(trials=settings.tune_trials, seconds=settings.tune_seconds),
        sampler=settings.tune_sampler,
    )


async def _run(server: KernelForgeServer, document: Document, kernel: str, run: TuningRun) -> None:
    request = _request(server, run, kernel)
    bar = ProgressBar(server, lambda: pause(server, document, kernel))
    await bar.begin(f"Autotune {kernel}")
    report = _reporter(server, run, bar)
    end: TuneEnd = JobCancelled()
    if not run.is_stopped and not server.is_closing:
        end = await server.tuning_queue.submit(
            _key(document, kernel), lambda: server.jobs.run(request, report, request.wall_limit, run.finish)
        )
    bar.end()
    if document.tunings.running.get(kernel) is run:  # else a newer run has taken over, and shows its own state
        del document.tunings.running[kernel]
        await _settle(server, document, kernel, run, end)
    server.refresh_lenses()


def _reporter(server: KernelForgeServer, run: TuningRun, bar: ProgressBar) -> Callable[[Progress], None]:
    refreshed = 0.0

    def report(step: Progress) -> None:
        nonlocal refreshed
        run.take(step)
        line = run.message if step.search is None else search_line(step.search)
        # What comes after the search counts its own steps, and a bar must not go back.
        bar.report(line, step.done, step.total if step.search is not None else 0)
        if time.monotonic() - refreshed >= LENS_SECONDS:
            refreshed = time.monotonic()
            server.refresh_lenses(hints=False)

    server.refresh_lenses()
    return report


async def _settle(server: KernelForgeServer, document: Document, kernel: str, run: TuningRun, end: TuneEnd) -> None:
    match end:
        case TuneReport():
            result = next((r for r in end.results if r.kernel == kernel), None)
            if result is None:
                server.tell(f"{kernel} was not tuned: its spec block has a problem.", lsp.MessageType.Warning)
            else:
                await _take(server, document, kernel, run, result)
        case JobCancelled():
            if run.tried:
                document.tunings.paused[kernel] = Paused(run.tried, run.source.text)
            if not server.is_closing:
                server.tell(await _paused(server, document.path, kernel, run.tried))
        case JobFailed(kind="reference"):
            place = "" if end.location is None else f" ({end.location.path}:{end.location.range.start.line + 1})"
            server.tell(f"{kernel} was not tuned: {end.message}{place}.", lsp.MessageType.Warning)
        case JobFailed():
            log.warning("tuning failed (%s): %s\n%s", end.kind, end.message, end.log)
            known = end.kind in ("usage", "unavailable", "time-limit")
            why = end.message if known else f"{end.kind}: {(end.message.strip() or end.kind).splitlines()[-1]}"
            server.tell(f"{kernel} was not tuned: {why}.", lsp.MessageType.Warning)
        case _:
            assert_never(end)


async def _take(
    server: KernelForgeServer, document: Document, kernel: str, run: TuningRun, result: KernelTuning | Verdict
) -> None:
    known = await asyncio.get_running_loop().run_in_executor(reading.reader, tuned, run, result)
    document.tunings.results[kernel] = known
    if server.document(document.uri) is not document:
        return
    await reading.read(server, document)  # for what the result means for the text as it is by now
    if isinstance(result, KernelTuning):
        title = tuned_title(result, stale=False, applied=False)
        server.tell(f"{kernel}: {title}.")
        return
    outcome = result.outcome
    why = outcome.reason if isinstance(outcome, Unavailable) else f"{problem(outcome)}: {sentence(outcome)}"
    server.tell(f"{kernel} was not tuned: {why.rstrip('.')}.", lsp.MessageType.Warning)


async def _paused(server: KernelForgeServer, path: str, kernel: str, tried: int) -> str:
    """What to say of a run that was stopped in between: only what is in the record can be gone on with."""
    if not tried:
        return f"Autotune of {kernel} was stopped before it tried anything."
    kept = await asyncio.get_running_loop().run_in_executor(None, _kept, server.find_ledger(path), path, kernel)
    if kept is None:
        return f"Autotune of {kernel} was stopped after {tried} trials, which are not kept: no runs are recorded here."
    return (
        f"Autotune of {kernel} is paused after {tried} trials. "
        f"The record keeps {kept}: Autotune goes on with them while the file stays as it is."
    )


def _kept(ledger: Ledger | None, path: str, kernel: str) -> int | None:
    """How many trials of the newest search of ``kernel`` are recorded; None where nothing is."""
    if ledger is None:
        return None
    try:
        newest = ledger.entries(Selection(path=path, kernel=kernel, kinds=(Kind.TUNE,), limit=1))
        return len(ledger.entries(Selection(run=newest[0].number, kinds=(Kind.TRIAL,)))) if newest else None
    except LedgerUnavailable:
        return None

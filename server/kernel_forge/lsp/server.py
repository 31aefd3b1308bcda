"""The language server: lifecycle and what its features share.

Invariant: this process parses text and reads specs. It compiles nothing, runs nothing and compares
nothing; all of that is a job in another process (:mod:`kernel_forge.jobs.client`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from kernel_forge import __version__
from kernel_forge.jobs.client import COMMAND, JobClient
from kernel_forge.jobs.queue import JobQueue
from kernel_forge.jobs.recording import Recorder
from kernel_forge.lsp.convert import LineOf, path_of
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.encoding import Encoding
from kernel_forge.lsp.protocol import Protocol
from kernel_forge.lsp.settings import Settings
from kernel_forge.lsp.structure import strict_converter
from kernel_forge.ports import FindLedger

if TYPE_CHECKING:
    from pygls.server import ServerErrors  # exists for type checkers only

log = logging.getLogger(__name__)


class KernelForgeServer(LanguageServer):
    """pygls's server plus the open documents, the settings and the queues of jobs.

    Everything here is used from the event loop only. ``worker`` is the command that starts a worker process.
    """

    protocol: Protocol

    def __init__(self, find_ledger: FindLedger = lambda _: None, worker: tuple[str, ...] = COMMAND) -> None:
        super().__init__("kernel-forge", __version__, protocol_cls=Protocol, converter_factory=strict_converter)
        self.find_ledger = find_ledger
        self.jobs = JobClient(worker, Recorder(find_ledger, self.tell))
        self.queue = JobQueue()
        self.tuning_queue = JobQueue()
        self.settings = Settings()
        self.documents: dict[str, Document] = {}
        self.sidecars: dict[str, str] = {}
        self.pending_reads: dict[str, asyncio.Task[None]] = {}
        self.on_cancel: dict[int | str, Callable[[], Awaitable[None]]] = {}
        self.is_closing = False
        self.shut_down = False
        self.exit_code = 0
        self._background: set[asyncio.Task[None]] = set()

    @property
    def encoding(self) -> Encoding:
        """The position encoding agreed with the client."""
        agreed = self.workspace.position_encoding
        return Encoding(str(getattr(agreed, "value", agreed)))

    def document(self, uri: str) -> Document | None:
        """The open document of that URI."""
        return self.documents.get(uri)

    def lines_of(self, path: str) -> LineOf:
        """The lines of a file: of the open document where there is one, else as on disk."""
        for document in self.documents.values():
            if document.path == path:
                return document.line
        text = self.sidecars.get(path)
        return _lines(text.split("\n")) if text is not None else _disk_lines(path)

    def supports(self, test: Callable[[lsp.ClientCapabilities], object]) -> bool:
        """Whether the client's capabilities pass ``test`` (a missing branch counts as no)."""
        try:
            return bool(test(self.client_capabilities))
        except AttributeError:
            return False

    def report_server_error(self, error: Exception, source: "ServerErrors") -> None:
        """Called by pygls: a message that is no JSON is refused; a fault of ours that no answer tells is shown."""
        if source is JsonRpcException and isinstance(error, ValueError | RecursionError):  # from parsing
            self.protocol.refuse(None, int(lsp.ErrorCodes.ParseError), f"not JSON: {type(error).__name__}")
        elif source is not FeatureRequestError:
            log.error("%s", error, exc_info=error)
            super().report_server_error(error, source)

    def tell(self, message: str, kind: lsp.MessageType = lsp.MessageType.Info) -> None:
        """Show ``message`` to the person."""
        self.window_show_message(lsp.ShowMessageParams(type=kind, message=message))

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do ``work`` without making anybody wait; what it raises is logged and shown."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[None]") -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s", error, exc_info=error)
            self.tell(f"Kernel Forge has a fault: {type(error).__name__}: {error}", lsp.MessageType.Error)

    def refresh_lenses(self, *, hints: bool = True) -> None:
        """Ask the client to fetch lenses, and inlay hints, again, where it can."""
        if self.supports(lambda c: c.workspace and c.workspace.code_lens and c.workspace.code_lens.refresh_support):
            self.in_background(self._ask(self.workspace_code_lens_refresh_async))
        if hints and self.supports(
            lambda c: c.workspace and c.workspace.inlay_hint and c.workspace.inlay_hint.refresh_support
        ):
            self.in_background(self._ask(self.workspace_inlay_hint_refresh_async))

    async def _ask(self, refresh: Callable[[None], Awaitable[Any]]) -> None:
        try:
            await refresh(None)
        except Exception as error:  # the client promised to know it; if not, it asks again by itself
            log.info("the client does not refresh: %s", error)

    def open_document(self, item: lsp.TextDocumentItem) -> Document:
        """Start to keep track of a document."""
        document = Document(item.uri, path_of(item.uri), item.version, item.text)
        self.documents[item.uri] = document
        return document


def _lines(lines: list[str]) -> LineOf:
    return lambda number: lines[number].rstrip("\r") if 0 <= number < len(lines) else ""


def _disk_lines(path: str) -> LineOf:
    try:
        return _lines(Path(path).read_text(encoding="utf-8", errors="replace").split("\n"))
    except (OSError, ValueError):  # no such file, or a name that no file can have
        log.info("cannot read %s to place a range in it", path)
        return lambda _: ""

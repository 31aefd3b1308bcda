"""The language server: lifecycle and what its features share.

Invariant: this process parses text and reads specs. It compiles nothing, runs nothing and compares
nothing; all of that is a job in another process (:mod:`kernel_forge.jobs.client`).
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from kernel_forge import __version__
from kernel_forge.jobs.client import JobClient
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
    """pygls's server plus the open documents, the settings and the job queue.

    Everything here is used from the event loop only.
    """

    protocol: Protocol

    def __init__(self, find_ledger: FindLedger = lambda _: None) -> None:
        super().__init__("kernel-forge", __version__, protocol_cls=Protocol, converter_factory=strict_converter)
        self.jobs = JobClient(recorder=Recorder(find_ledger, self.tell))
        self.queue = JobQueue(self.jobs)
        self.settings = Settings()
        self.documents: dict[str, Document] = {}
        self.sidecars: dict[str, str] = {}
        self.pending_reads: dict[str, asyncio.Task[None]] = {}
        self.progress_owners: dict[str, str] = {}
        self.shut_down = False
        self.exit_code = 0
        self._refresh: asyncio.Task[None] | None = None

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

    def refresh_lenses(self) -> None:
        """Ask the client to fetch lenses again, where it can."""
        if self.supports(lambda c: c.workspace and c.workspace.code_lens and c.workspace.code_lens.refresh_support):
            self._refresh = asyncio.get_running_loop().create_task(self._ask_for_lenses())

    async def _ask_for_lenses(self) -> None:
        try:
            await self.workspace_code_lens_refresh_async(None)
        except Exception as error:  # the client promised to know it; if not, it asks again by itself
            log.info("the client does not refresh lenses: %s", error)

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

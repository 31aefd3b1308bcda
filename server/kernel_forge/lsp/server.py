"""The language server: lifecycle and what its features share.

Invariant: this process parses text and reads specs. It compiles nothing, runs nothing and compares
nothing; all of that is a job in another process (:mod:`kernel_forge.jobs.client`).
"""

import logging
import sys
from collections.abc import Callable

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from kernel_forge import __version__
from kernel_forge.jobs.client import JobClient
from kernel_forge.lsp.convert import LineOf, path_of
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.encoding import Encoding
from kernel_forge.lsp.settings import Settings

log = logging.getLogger(__name__)


class KernelForgeServer(LanguageServer):
    """pygls's server plus the open documents, the settings and the job client.

    Everything here is used from the event loop only.
    """

    def __init__(self, jobs: JobClient) -> None:
        super().__init__("kernel-forge", __version__)
        self.jobs = jobs
        self.settings = Settings()
        self.documents: dict[str, Document] = {}

    @property
    def encoding(self) -> Encoding:
        """The position encoding agreed with the client."""
        return Encoding(str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding)))

    def document(self, uri: str) -> Document | None:
        """The open document of that URI."""
        return self.documents.get(uri)

    def lines_of(self, path: str) -> LineOf:
        """The lines of a file: of the open document where there is one, else as on disk."""
        for document in self.documents.values():
            if document.path == path:
                return document.line
        return _disk_lines(path)

    def supports(self, test: Callable[[lsp.ClientCapabilities], object]) -> bool:
        """Whether the client's capabilities pass ``test`` (a missing branch counts as no)."""
        try:
            return bool(test(self.client_capabilities))
        except AttributeError:
            return False

    def tell(self, message: str, kind: lsp.MessageType = lsp.MessageType.Info) -> None:
        """Show ``message`` to the person."""
        self.window_show_message(lsp.ShowMessageParams(type=kind, message=message))

    def open_document(self, item: lsp.TextDocumentItem) -> Document:
        """Start to keep track of a document."""
        document = Document(item.uri, path_of(item.uri), item.version, item.text)
        self.documents[item.uri] = document
        return document


def _disk_lines(path: str) -> LineOf:
    def line(number: int) -> str:
        try:
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                for index, text in enumerate(file):
                    if index == number:
                        return text.rstrip("\r\n")
        except OSError:
            log.info("cannot read %s to place a related location", path)
        return ""

    return line


def guard_stdout() -> None:
    """Send stray prints to stderr: on stdio, stdout belongs to the protocol."""
    sys.stdout = sys.stderr

"""Work-done progress of one job, with Cancel."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from kernel_forge.lsp.server import KernelForgeServer

log = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0
_tokens = count(1)


class ProgressBar:
    """One bar; silent where the client has none. Cancel on it calls ``on_cancel``."""

    def __init__(self, server: "KernelForgeServer", on_cancel: Callable[[], Awaitable[None]]) -> None:
        self._server = server
        self._token = f"kernel-forge-{next(_tokens)}"
        self._shown = False
        self._on_cancel = on_cancel

    async def begin(self, title: str) -> None:
        """Create and show it."""
        if not self._server.supports(lambda c: c.window and c.window.work_done_progress):
            return
        try:
            await asyncio.wait_for(self._server.work_done_progress.create_async(self._token), ANSWER_SECONDS)
        except Exception as error:  # a client may refuse, or not answer; the work goes on without a bar
            log.info("the client shows no progress: %s", error)
            return
        self._shown = True
        self._server.on_cancel[self._token] = self._on_cancel
        self._server.work_done_progress.begin(
            self._token, lsp.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0)
        )

    def report(self, message: str, done: int, total: int) -> None:
        """Show a step: ``done`` of ``total``, 0 while unknown."""
        if self._shown:
            share = min(100, 100 * done // total) if total else None
            self._server.work_done_progress.report(
                self._token, lsp.WorkDoneProgressReport(message=message, percentage=share, cancellable=True)
            )

    def end(self) -> None:
        """Take it away."""
        if self._shown:
            self._server.work_done_progress.end(self._token, lsp.WorkDoneProgressEnd())
            self._server.work_done_progress.tokens.pop(self._token, None)
            self._server.on_cancel.pop(self._token, None)

"""One session over TCP: the first client that connects has it, and its end, however it comes, is the server's."""

import asyncio
import contextlib
import logging
import os
import threading

from pygls.io_ import run_async

from kernel_forge.domain.errors import UsageError
from kernel_forge.lsp.server import KernelForgeServer

log = logging.getLogger(__name__)


def serve_tcp(server: KernelForgeServer, host: str, port: int) -> None:
    """Listen, serve one client, and return when it has ended the session or is gone.

    Raises:
        UsageError: that address cannot be listened on.
    """
    with contextlib.suppress(asyncio.CancelledError, SystemExit):  # ``exit`` raises it in the loop
        asyncio.run(_serve(server, host, port))


async def _serve(server: KernelForgeServer, host: str, port: int) -> None:
    gone = asyncio.Event()
    is_taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal is_taken
        if is_taken:
            log.warning("refused a second client: a server has one session")
            writer.close()
            return
        is_taken = True
        try:
            await _session(server, reader, writer)
        finally:
            gone.set()

    try:
        listening = await asyncio.start_server(connected, host, port)
    except (OSError, UnicodeError) as error:  # the latter from a host name that cannot be encoded
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or error
        raise UsageError(f"--tcp {host}:{port} cannot be listened on: {reason}") from error
    try:
        await gone.wait()
    finally:
        listening.close()
        server.shutdown()  # type: ignore[no-untyped-call]


async def _session(server: KernelForgeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    server.protocol.set_writer(writer)
    try:
        await run_async(threading.Event(), reader, server.protocol, log, server.report_server_error)
    except SystemExit:  # an orderly end
        pass
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        log.warning("the client is gone: %s", error)
    except ValueError as error:  # a header without an end
        log.warning("what the client sends cannot be read: %s", error)
    finally:
        with contextlib.suppress(ConnectionError):
            writer.close()

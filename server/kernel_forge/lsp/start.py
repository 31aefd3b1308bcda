"""Putting the server together and starting it."""

import logging
import os
import sys

from pygls.exceptions import JsonRpcInvalidParams

from kernel_forge.jobs.client import COMMAND
from kernel_forge.lsp.features import (
    code_actions,
    completion,
    hints,
    hover,
    lenses,
    lifecycle,
    sync,
    tuning,
    verification,
)
from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.lsp.tcp import serve_tcp
from kernel_forge.ports import FindLedger


def create_server(find_ledger: FindLedger = lambda _: None, worker: tuple[str, ...] = COMMAND) -> KernelForgeServer:
    """A server with every feature registered, whose runs are recorded where ``find_ledger`` says.

    ``worker`` is the command that starts a worker process.
    """
    server = KernelForgeServer(find_ledger, worker)
    for feature in (lifecycle, sync, verification, tuning, code_actions, lenses, hints, hover, completion):
        feature.register(server)
    return server


def serve(
    tcp: tuple[str, int] | None = None,
    find_ledger: FindLedger = lambda _: None,
    worker: tuple[str, ...] = COMMAND,
) -> None:
    """Serve on stdio, or one client on a TCP address, until the client ends the session or is gone.

    Raises:
        UsageError: the address cannot be listened on.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)  # at INFO it logs every message with its whole body
    for name in ("pygls.protocol.json_rpc", "pygls.server"):
        logging.getLogger(name).addFilter(_not_refusals)
    server = create_server(find_ledger, worker)
    if tcp is not None:
        serve_tcp(server, *tcp)
        if server.exit_code:
            sys.exit(server.exit_code)
        return
    # On stdio our standard output belongs to the protocol: a stray print must not end up in it.
    protocol_out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server.start_io(sys.stdin.buffer, protocol_out)
    if server.exit_code:  # pygls swallows it
        sys.exit(server.exit_code)


def _not_refusals(record: logging.LogRecord) -> bool:
    """Whether to log: what was refused is the client's fault, and the client has the reason."""
    error = record.exc_info[1] if record.exc_info is not None else None
    unreadable = record.name == "pygls.server" and isinstance(error, ValueError | RecursionError)
    return not unreadable and not isinstance(error, JsonRpcInvalidParams)

"""Putting the server together and starting it."""

import logging
import os
import sys

from kernel_forge.lsp.features import code_actions, completion, hover, lenses, lifecycle, sync, verification
from kernel_forge.lsp.server import KernelForgeServer


def create_server() -> KernelForgeServer:
    """A server with every feature registered."""
    server = KernelForgeServer()
    for feature in (lifecycle, sync, verification, code_actions, lenses, hover, completion):
        feature.register(server)
    return server


def serve(tcp: tuple[str, int] | None = None) -> None:
    """Serve on stdio, or on a TCP address, until the client ends the session."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)  # at INFO it logs every message with its whole body
    server = create_server()
    if tcp is not None:
        server.start_tcp(*tcp)
        return
    # On stdio our standard output belongs to the protocol: a stray print must not end up in it.
    protocol_out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server.start_io(sys.stdin.buffer, protocol_out)

"""The language server.

Invariant: the only importer of pygls and lsprotocol. Compiles nothing, runs nothing, compares nothing.
"""

from kernel_forge.lsp.start import create_server, serve

__all__ = ["create_server", "serve"]

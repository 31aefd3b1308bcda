"""Start, settings, trust, and the end."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from lsprotocol import types as lsp

from kernel_forge.lsp.server import KernelForgeServer
from kernel_forge.lsp.settings import SECTION, read_settings

log = logging.getLogger(__name__)


def register(server: KernelForgeServer) -> None:
    """Register the lifecycle handlers."""
    startup_problems: list[str] = []

    @server.feature(lsp.INITIALIZE)
    def initialize(ls: KernelForgeServer, params: lsp.InitializeParams) -> None:
        ls.settings, problems = read_settings(params.initialization_options, ls.settings, may_trust=True)
        startup_problems.extend(problems)  # the client takes no messages before its answer

    @server.feature(lsp.INITIALIZED)
    async def initialized(ls: KernelForgeServer, _params: lsp.InitializedParams) -> None:
        _tell(ls, startup_problems)
        startup_problems.clear()
        if ls.settings.trusted:
            # Not before the client has its answer: a worker's imports would compete with ours for the CPU.
            await asyncio.sleep(0.2)
            ls.jobs.warm_up()
        await _pull_settings(ls)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def changed(ls: KernelForgeServer, params: lsp.DidChangeConfigurationParams) -> None:
        _apply(ls, params.settings)
        await _pull_settings(ls)

    @server.feature("kernelForge/trust")
    def trust_changed(ls: KernelForgeServer, params: object) -> None:
        trusted = params.get("trusted") if isinstance(params, Mapping) else None
        if isinstance(trusted, bool):
            ls.settings, _ = read_settings({"trusted": trusted}, ls.settings, may_trust=True)
            ls.refresh_lenses()

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(ls: KernelForgeServer, _params: None = None) -> None:
        ls.is_closing = True
        await ls.queue.close()
        await ls.tuning_queue.close()
        await ls.jobs.close()
        ls.protocol.cancel_others()
        ls.shut_down = True

    @server.feature(lsp.EXIT)
    def leave(ls: KernelForgeServer, _params: None = None) -> None:
        ls.exit_code = 0 if ls.shut_down else 1


async def _pull_settings(server: KernelForgeServer) -> None:
    if not server.supports(lambda c: c.workspace and c.workspace.configuration):
        return
    item = lsp.ConfigurationItem(section=SECTION)
    try:
        answer = await server.workspace_configuration_async(lsp.ConfigurationParams(items=[item]))
    except Exception as error:  # the client promised an answer; without one the settings stay as they are
        log.warning("the client does not tell its settings: %s", error)
        return
    if answer:
        _apply(server, answer[0])


def _apply(server: KernelForgeServer, raw: object) -> None:
    server.settings, problems = read_settings(raw, server.settings)
    _tell(server, problems)


def _tell(server: KernelForgeServer, problems: Sequence[str]) -> None:
    for problem in problems:
        server.tell(f"Kernel Forge settings: {problem}.", lsp.MessageType.Warning)

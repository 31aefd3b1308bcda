"""The copy of the user's file and its local headers that the host's compiler sees."""

from dataclasses import dataclass, field
from pathlib import Path

from kernel_forge.devices.emulator.rewrite.rewriter import rewrite
from kernel_forge.devices.includes import IncludeHook
from kernel_forge.devices.shadow import HostCode, ShadowTree, shadow_sources


@dataclass
class Translation(ShadowTree):
    """``files`` are rewritten for the host's compiler.

    Attributes:
        settings: see :class:`~kernel_forge.devices.emulator.rewrite.rewriter.Rewritten`.
    """

    settings: list[str] = field(default_factory=list)


def translate(path: str, text: str, include_dirs: tuple[str, ...], host_code: HostCode, ours: Path) -> Translation:
    """Rewrite ``text`` and every local header it includes, see :func:`~kernel_forge.devices.shadow.shadow_sources`.

    Raises:
        TooManyHeaders: see there.
    """
    aliases: dict[str, str] = {}
    settings: list[str] = []

    def rewritten(content: str, on_include: IncludeHook) -> str:
        made = rewrite(content, on_include, aliases)
        settings.extend(made.settings)
        return made.text

    tree = shadow_sources(path, text, include_dirs, host_code, rewritten, ours)
    return Translation(tree.files, tree.device_files, tree.sources, tree.dropped, tree.is_whole, settings)

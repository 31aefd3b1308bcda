"""The composition root: the only module that knows every adapter."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kernel_forge.domain.errors import DeviceUnavailable
from kernel_forge.ports import Device

DEVICE_NAMES = ("emulator",)


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``KERNEL_FORGE_CACHE``, else the user's cache folder."""
    named = os.environ.get("KERNEL_FORGE_CACHE")
    if named:
        return Path(named)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "kernel-forge"


@cache
def device(name: str) -> Device:
    """The device of that name; ``auto`` is the best one that is usable.

    Raises:
        DeviceUnavailable: there is no device of that name.
    """
    makers: dict[str, Callable[[], Device]] = {"emulator": _emulator}
    if name == "auto":
        return device("emulator")
    if name not in makers:
        raise DeviceUnavailable(f"there is no device {name}; devices are {', '.join(DEVICE_NAMES)}, or auto")
    return makers[name]()


def _emulator() -> Device:
    from kernel_forge.devices.emulator import EmulatorDevice
    from kernel_forge.source import parse

    return EmulatorDevice(cache_folder(), lambda text: parse(text.replace("\0", " "), "").host_ranges)


def serve_jobs() -> None:
    """Be a job worker on stdin and stdout."""
    from kernel_forge.jobs.worker import serve

    serve(device)


def serve_editor(tcp: tuple[str, int] | None = None) -> None:
    """Be a language server on stdio, or on a TCP address."""
    from kernel_forge.lsp import serve

    serve(tcp)

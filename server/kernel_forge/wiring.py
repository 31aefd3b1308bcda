"""The composition root: the only module that knows every adapter."""

import argparse
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kernel_forge.domain.errors import DeviceUnavailable
from kernel_forge.ports import Device

DEVICE_NAMES = ("emulator", "cuda")


def cache_folder() -> Path:
    """Where compiled kernels are kept, absolute: ``KERNEL_FORGE_CACHE``, else the user's cache folder."""
    named = os.environ.get("KERNEL_FORGE_CACHE")
    if named:
        return Path(named).absolute()
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root).absolute() if root else Path.home() / ".cache") / "kernel-forge"


@cache
def device(name: str) -> Device:
    """The device of that name; ``auto`` is the best one that is usable.

    Raises:
        DeviceUnavailable: there is no device of that name.
    """
    makers: dict[str, Callable[[], Device]] = {"emulator": _emulator, "cuda": _cuda}
    if name == "auto":
        return device("emulator")
    if name not in makers:
        raise DeviceUnavailable(f"there is no device {name}; devices are {', '.join(DEVICE_NAMES)}, or auto")
    return makers[name]()


def _emulator() -> Device:
    from kernel_forge.devices.emulator import EmulatorDevice

    return EmulatorDevice(cache_folder(), _host_ranges)


def _cuda() -> Device:
    from kernel_forge.devices.cuda import CudaDevice, local_worker

    return CudaDevice("cuda", cache_folder(), local_worker(0), _host_ranges)


def _host_ranges(text: str) -> tuple[tuple[int, int], ...]:
    from kernel_forge.source import parse

    return parse(text.replace("\0", " "), "").host_ranges


def serve_gpu(arguments: list[str]) -> None:
    """Be the worker of one GPU on stdin and stdout: ``--gpu N``, ``--plain-memory`` under a sanitizer."""
    from kernel_forge.devices.cuda.worker import serve

    parser = argparse.ArgumentParser(prog="kernel-forge worker")
    parser.add_argument("--gpu", type=int, default=0, metavar="N")
    parser.add_argument("--plain-memory", action="store_true")
    options = parser.parse_args(arguments)
    serve(options.gpu, plain_memory=options.plain_memory)


def serve_jobs() -> None:
    """Be a job worker on stdin and stdout."""
    from kernel_forge.jobs.worker import serve

    serve(device)


def serve_editor(tcp: tuple[str, int] | None = None) -> None:
    """Be a language server on stdio, or on a TCP address."""
    from kernel_forge.lsp import serve

    serve(tcp)

"""The composition root: the only module that knows every adapter."""

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_forge.domain.errors import DeviceUnavailable, UsageError
from kernel_forge.ports import Device, Ledger

if TYPE_CHECKING:
    from kernel_forge.devices.settings import GpuSettings
    from kernel_forge.domain.recorded_space import RecordedSpace


def config_file() -> Path:
    """The user's configuration: ``KERNEL_FORGE_CONFIG``, else ``kernel-forge/config.toml`` in the user's folder.

    Raises:
        UsageError: the one that is named is not there.
    """
    named = os.environ.get("KERNEL_FORGE_CONFIG")
    if named:
        if not Path(named).exists():
            raise UsageError(f"KERNEL_FORGE_CONFIG names {named}, which does not exist")
        return Path(named)
    root = os.environ.get("XDG_CONFIG_HOME")
    return (Path(root) if root else Path.home() / ".config") / "kernel-forge" / "config.toml"


def device_names() -> tuple[str, ...]:
    """The devices that can be named: those of this machine, and those of the user's configuration.

    Raises:
        UsageError: the configuration cannot be read.
    """
    from kernel_forge.devices.settings import read_gpu_settings

    return ("emulator", "cuda", *read_gpu_settings(config_file()))


def cache_folder() -> Path:
    """Where compiled kernels are kept, absolute: ``KERNEL_FORGE_CACHE``, else the user's cache folder."""
    named = os.environ.get("KERNEL_FORGE_CACHE")
    if named:
        return Path(named).absolute()
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root).absolute() if root else Path.home() / ".cache") / "kernel-forge"


@cache
def device(name: str) -> Device:
    """The device of that name; ``auto`` is the emulator, ``cuda:1`` a further GPU of this machine.

    Raises:
        DeviceUnavailable: there is no device of that name.
        UsageError: the user's configuration cannot be read.
    """
    from kernel_forge.devices.settings import GpuSettings, read_gpu_settings

    if name in ("auto", "emulator"):
        return _emulator() if name == "emulator" else device("emulator")
    kind, _, number = name.partition(":")
    if kind == "cuda" and (not number or number.isdecimal()):
        return _gpu(name, GpuSettings(gpu=int(number or 0)))
    configured = read_gpu_settings(config_file())
    if name not in configured:
        known = ", ".join(("emulator", "cuda", *configured))
        raise DeviceUnavailable(f"there is no device {name}; devices are {known}, or auto ({config_file()} adds more)")
    return _gpu(name, configured[name])


def ledger(path: str) -> Ledger:
    """The ledger of the project that ``path``, a file or a folder, belongs to."""
    from kernel_forge.ledger import project_folder

    return _ledger_of(project_folder(Path(path)))


def recording_ledger(path: str) -> Ledger | None:
    """The same for recording runs; None where the user has turned that off.

    Raises:
        UsageError: it cannot be told whether they have.
    """
    from kernel_forge.ledger import is_recording

    return ledger(path) if is_recording(os.environ, config_file()) else None


@cache
def _ledger_of(project: Path) -> Ledger:
    from kernel_forge.ledger import SqliteLedger

    return SqliteLedger(project)


def _emulator() -> Device:
    from kernel_forge.devices.emulator import EmulatorDevice

    return EmulatorDevice(cache_folder(), _host_ranges)


def _gpu(name: str, settings: "GpuSettings") -> Device:
    from kernel_forge.devices.compilers.gpu.compiler import GpuCompiler
    from kernel_forge.devices.cuda import CudaDevice, local_worker

    command = settings.command or local_worker(settings.gpu)
    compiler = GpuCompiler(settings.compiler or "auto")
    return CudaDevice(name, cache_folder(), command, _host_ranges, compiler)


def _host_ranges(text: str) -> tuple[tuple[int, int], ...]:
    from kernel_forge.source import parse

    return parse(text.replace("\0", " "), "").host_ranges


def recorded_space(path: Path) -> "RecordedSpace":
    """The recorded search space in a file.

    Raises:
        UsageError: it cannot be read.
    """
    from kernel_forge.devices.replay import read_recorded_space

    return read_recorded_space(path)


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

    serve(device, recording_ledger)


def serve_editor(tcp: tuple[str, int] | None = None) -> None:
    """Be a language server on stdio, or on a TCP address."""
    from kernel_forge.lsp import serve

    serve(tcp, recording_ledger)

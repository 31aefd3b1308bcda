"""Devices that the user has named: ``devices`` tables of the configuration file.

```toml
[devices.lab]                        # a GPU of another machine, through any command that speaks the worker's frames
command = ["ssh", "lab", "kernel-forge", "worker", "--gpu", "0"]

[devices.second]                     # another GPU of this machine
gpu = 1
compiler = "nvcc"                    # or "nvrtc"; default: whichever is there
```

The file is the user's own, never one of a workspace: a command in it is run.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_forge.configuration import read_configuration
from kernel_forge.domain.errors import UsageError

_KEYS = {"command", "gpu", "compiler"}
COMPILERS = ("nvrtc", "nvcc")
RESERVED = ("auto", "emulator", "cuda")


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """One GPU: the ``command`` that serves it, or its number on this machine; ``compiler`` None for any."""

    command: tuple[str, ...] | None = None
    gpu: int = 0
    compiler: str | None = None


def read_gpu_settings(file: Path) -> Mapping[str, GpuSettings]:
    """The devices of a configuration file; none where there is no file.

    Raises:
        UsageError: the file cannot be read, or an entry is not as above; the message names file and entry.
    """
    data = read_configuration(file)
    near = difflib.get_close_matches("devices", data.keys() - {"devices"}, 1, cutoff=0.75)
    if near:
        raise UsageError(f"{file} has a table {near[0]}; did you mean devices, as in [devices.lab]?")
    tables = data.get("devices", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{file}: devices must be a table of tables, as in [devices.lab]")
    return {name: _device(f"{file}: [devices.{name}]", name, table) for name, table in tables.items()}


def _device(where: str, name: str, table: Any) -> GpuSettings:
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table")
    if name in RESERVED or ":" in name:
        raise UsageError(f"{where}: {name} is taken; choose another name")
    unknown = sorted(table.keys() - _KEYS)
    if unknown:
        raise UsageError(f"{where} has the unknown key {unknown[0]} (keys: {', '.join(sorted(_KEYS))})")
    command, gpu, compiler = table.get("command"), table.get("gpu"), table.get("compiler")
    if (command is None) == (gpu is None):
        raise UsageError(f"{where} needs either command or gpu")
    if command is not None and not (
        isinstance(command, list) and command and all(isinstance(w, str) and w and "\0" not in w for w in command)
    ):
        raise UsageError(f'{where}: command is a list of words, for example ["ssh", "lab", "kernel-forge", "worker"]')
    if gpu is not None and (not isinstance(gpu, int) or isinstance(gpu, bool) or gpu < 0):
        raise UsageError(f"{where}: gpu is the number of a GPU, from 0")
    if compiler is not None and compiler not in COMPILERS:
        raise UsageError(f"{where}: compiler is one of {', '.join(COMPILERS)}")
    return GpuSettings(None if command is None else tuple(command), gpu or 0, compiler)

"""What Python code can change for all of its process, and putting it back."""

import builtins
import contextlib
import math
import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

_MODULES: tuple[ModuleType, ...] = (builtins, math, np, np.linalg, np.random)
_LIMITS = {n: getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_")}


@dataclass(frozen=True)
class ProcessState:
    """A moment's state: see :meth:`restore`. ``process`` is the id of the process."""

    process: int
    folder: str
    limits: Mapping[str, tuple[int, int]]
    names: tuple[Mapping[str, Any], ...]
    streams: tuple[Any, ...]

    @staticmethod
    def now() -> "ProcessState":
        """The state at present."""
        return ProcessState(
            os.getpid(),
            _folder(),
            {name: resource.getrlimit(number) for name, number in _LIMITS.items()},
            tuple(dict(vars(module)) for module in _MODULES),
            (sys.stdin, sys.stdout, sys.stderr),
        )

    def restore(self) -> str | None:
        """Put everything back; tell what of the changes could mislead ours, else None.

        The current folder and the standard streams are put back without a word: nothing of ours depends on them.
        """
        changed = []
        for module, names in zip(_MODULES, self.names, strict=True):
            present = vars(module)
            for name, value in names.items():
                if (not name.startswith("_") or name == "__import__") and present.get(name) is not value:
                    changed.append(f"{module.__name__}.{name}")
                    setattr(module, name, value)
        for name, limit in self.limits.items():
            if resource.getrlimit(_LIMITS[name]) != limit:
                changed.append(f"the resource limit {name}")
                with contextlib.suppress(OSError, ValueError):  # a hard limit that stays lowered
                    resource.setrlimit(_LIMITS[name], limit)
        sys.stdin, sys.stdout, sys.stderr = self.streams
        if _folder() != self.folder:
            with contextlib.suppress(OSError):
                os.chdir(self.folder)
        return ", ".join(changed[:3]) if changed else None


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 (a Path for every call would cost more than it)
    except OSError:
        return "/"  # the folder is gone

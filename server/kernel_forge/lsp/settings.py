"""What the client may configure, read from initialization options and ``workspace/configuration``."""

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

SECTION = "kernelForge"
MAX_SECONDS = 86400.0
MAX_TRIALS = 100_000
_BREAK = re.compile(r"[\0\n\r\v\f]")


@dataclass(frozen=True, slots=True)
class Settings:
    """The server's settings; names in the protocol are camelCase under ``kernelForge``.

    Attributes:
        trusted: whether code of this workspace may be compiled and run. True unless the client says
            otherwise: an editor without the notion of trust starts the server on purpose.
        verify_on_save: run verification when a file with spec blocks is saved.
        device: name of the device, as for ``--device``.
        time_limit: seconds for one verification.
        include_dirs: further directories for ``#include``.
        defines: macros, name -> value.
        compiler_flags: for the CUDA compiler, e.g. ``-use_fast_math``.
        tune_trials, tune_seconds: budget of *Autotune*, whatever ends first.
        tune_sampler: name of the search strategy, as for ``kernel-forge tune --sampler``; the worker knows which there
            are.
        tuning_hints: show what was tuned at the end of the kernel's line.
    """

    trusted: bool = True
    verify_on_save: bool = True
    device: str = "auto"
    time_limit: float = 120.0
    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] | None = None
    compiler_flags: tuple[str, ...] = ()
    tune_trials: int = 100
    tune_seconds: float = 60.0
    tune_sampler: str = "portfolio"
    tuning_hints: bool = True


def read_settings(raw: object, old: Settings, *, may_trust: bool = False) -> tuple[Settings, tuple[str, ...]]:
    """``old`` with what ``raw`` (a JSON object, possibly nested under the section) sets.

    ``may_trust`` is True for initialization options only: they come from the client itself. Configuration
    can come from a file in the workspace, and a workspace must not declare itself trusted.

    Returns the settings and one message per entry that was not understood; such an entry keeps its old
    value.
    """
    if not isinstance(raw, Mapping):
        return old, ()
    values: Mapping[str, Any] = raw.get(SECTION, raw) if isinstance(raw.get(SECTION, {}), Mapping) else raw
    known = {_camel(f.name): f.name for f in fields(Settings)}
    accepted: dict[str, Any] = {}
    problems = []
    for key, value in values.items():
        name = known.get(key)
        if name is None or (name == "trusted" and not may_trust):
            continue  # other parts of the client keep settings in the same section
        converted = _convert(name, value)
        if converted is None:
            problems.append(f"{SECTION}.{key}: {reprlib.repr(value)} is not {_EXPECTED[name]}")
        else:
            accepted[name] = converted
    return replace(old, **accepted), tuple(problems)


_EXPECTED = {
    "trusted": "true or false",
    "verify_on_save": "true or false",
    "device": "the name of a device",
    "time_limit": "a number of seconds above 0 and up to 86400",
    "include_dirs": "a list of directories",
    "defines": "an object of macro names and values, each on one line",
    "compiler_flags": "a list of flags",
    "tune_trials": "a whole number from 1 to 100000",
    "tune_seconds": "a number of seconds above 0 and up to 86400",
    "tune_sampler": "the name of a sampler",
    "tuning_hints": "true or false",
}


def _convert(name: str, value: object) -> object | None:
    match name, value:
        case ("trusted" | "verify_on_save" | "tuning_hints", bool()):
            return value
        case ("device" | "tune_sampler", str()) if value:
            return value
        case ("tune_trials", int()) if not isinstance(value, bool) and 1 <= value <= MAX_TRIALS:
            return value
        case ("time_limit" | "tune_seconds", int() | float()) if (
            not isinstance(value, bool) and 0 < value <= MAX_SECONDS
        ):
            return float(value)
        case ("include_dirs" | "compiler_flags", list() | tuple()) if all(
            isinstance(v, str) and _can_be_a_name(v) for v in value
        ):
            return tuple(value)
        case ("defines", Mapping()) if all(
            isinstance(k, str) and isinstance(v, str | int | float) and not _BREAK.search(f"{k}{v}")
            for k, v in value.items()
        ):
            return {k: str(v) for k, v in value.items()}
    return None


def _can_be_a_name(text: str) -> bool:
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)

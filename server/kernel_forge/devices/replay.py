"""Recorded spaces from files: Kernel Tuner's cache files, and results in the T4 format; plain or gzip-compressed JSON.

A recorded space takes the place of a device: it says how long a configuration takes. It is no :class:`Device`, for it
can compile and run nothing. Reading is I/O, so it is here and not in ``search/``, which gets the frozen
:class:`RecordedSpace` from ``wiring``.
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.recorded_space import RecordedSpace, RecordedTrial, Value

_RESTRICTED = ("InvalidConfig", "constraints")
"""How the two formats mark what restrictions rule out: it is no configuration of the space."""

_FAILED_TIME = 1e15
"""Older cache files write 1e20 for a configuration that failed."""

_MILLISECONDS = {"s": 1e3, "seconds": 1e3, "ms": 1.0, "milliseconds": 1.0, "us": 1e-3, "microseconds": 1e-3, "ns": 1e-6}

_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:run|wall|kernel|execution|elapsed)?[ _-]?(?:time|duration|latency)s?(?![a-z])", re.I
)
"""What an objective in no unit is called where it is a time (in ms, as Kernel Tuner has them); not ``timesteps``."""


def read_recorded_space(path: Path) -> RecordedSpace:
    """The recorded space in a file.

    Raises:
        UsageError: it cannot be read, is neither format, or has no configuration that worked.
    """
    data = _json(path)
    try:
        if isinstance(data.get("cache"), dict):
            space = _from_cache(data)
        elif isinstance(data.get("results"), list):
            space = _from_t4(data)
        else:
            raise UsageError(f"{path}: neither a Kernel Tuner cache file (`cache`) nor T4 results (`results`)")
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UsageError(f"{path}: a record is not as the format has it ({type(error).__name__}: {error})") from None
    if not any(t.time is not None for t in space.trials):
        raise UsageError(f"{path}: no configuration has a time")
    return space


def _json(path: Path) -> Mapping[str, Any]:
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    try:
        try:
            data = json.loads(text)
        except ValueError:
            # Kernel Tuner closes the file when the tuning ends; one that was interrupted lacks the end.
            data = json.loads(text.rstrip().rstrip(",") + "}}")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{path}: the outermost JSON value is no object")
    return data


def _from_cache(data: Mapping[str, Any]) -> RecordedSpace:
    names = list(data["tune_params_keys"])
    trials = []
    for record in data["cache"].values():
        trial = _trial(tuple(_value(record[name]) for name in names), record["time"])
        if trial is not None:
            trials.append(trial)
    listed = {name: data["tune_params"][name] for name in names}
    return _space(str(data.get("kernel_name", "")), str(data.get("device_name", "")), names, listed, trials)


def _from_t4(data: Mapping[str, Any]) -> RecordedSpace:
    results = data["results"]
    if not results:
        raise ValueError("`results` is empty")
    names = list(results[0]["configuration"])
    trials = []
    for result in results:
        invalidity = result["invalidity"]
        found: object = invalidity
        if invalidity == "correct":
            # The first objective, as Kernel Tuner writes it; a time unless the run says otherwise.
            measured = {m["name"]: m for m in result["measurements"]}
            one = measured[result.get("objectives", ["time"])[0]]
            found = float(one["value"]) * _scale(str(one["name"]), str(one.get("unit") or ""))
        trial = _trial(tuple(_value(result["configuration"][name]) for name in names), found)
        if trial is not None:
            trials.append(trial)
    metadata = data.get("metadata") or {}
    device = metadata.get("device_name") or (metadata.get("hardware") or {}).get("device") or ""
    return _space(str(metadata.get("kernel_name", "")), str(device), names, {}, trials)


def _scale(objective: str, unit: str) -> float:
    """Milliseconds in the unit of an objective: with a unit of time, or without any and named as a time.

    Raises:
        ValueError: it is no time; less of it may be worse.
    """
    if unit in _MILLISECONDS:
        return _MILLISECONDS[unit]
    if unit:
        raise ValueError(f"the objective {objective!r} is in {unit!r}, which is no unit of time")
    if not _TIME_NAME.search(objective):
        raise ValueError(f"the objective {objective!r} has no unit and is not named as a time")
    return _MILLISECONDS["ms"]


def _trial(configuration: tuple[Value, ...], found: object) -> RecordedTrial | None:
    """A trial from a time in ms or the word for why there is none; None for what restrictions rule out."""
    if isinstance(found, str):
        return None if found in _RESTRICTED else RecordedTrial(configuration, None, found)
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise ValueError(f"a time is {found!r}")
    if not math.isfinite(found) or found >= _FAILED_TIME:
        return RecordedTrial(configuration, None, "failed")
    if found <= 0:
        raise ValueError(f"a time is {found:g}")
    return RecordedTrial(configuration, float(found))


def _space(
    kernel: str, device: str, names: list[str], listed: Mapping[str, list[Any]], trials: list[RecordedTrial]
) -> RecordedSpace:
    by_configuration = {t.configuration: t for t in trials}  # one measured again counts as it was last
    columns = []
    for k, name in enumerate(names):
        present = {t.configuration[k] for t in trials}
        order = [v for v in map(_value, listed.get(name, ())) if v in present]
        columns.append((name, tuple(dict.fromkeys([*order, *_sorted(present - set(order))]))))
    return RecordedSpace(kernel, device, tuple(columns), tuple(by_configuration.values()))


def _sorted(values: Iterable[Value]) -> list[Value]:
    return sorted(values, key=lambda v: (isinstance(v, str), v if not isinstance(v, str) else 0, str(v)))


def _value(found: object) -> Value:
    if isinstance(found, int | float) and not math.isfinite(found):  # an integer beyond every float raises
        raise ValueError(f"a parameter has the value {found}")
    if isinstance(found, int | float | str):
        return found
    return json.dumps(found)  # a list or null as value: its text is as good a name

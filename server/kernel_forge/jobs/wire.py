"""JSON for everything that crosses the border between the caller and a worker process.

One generic codec over frozen dataclasses: types come from the annotations, unions are told apart by a ``"type"``
field, and anything unknown or missing is refused. Floats that JSON has not (NaN, infinities) travel as strings.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from kernel_forge.domain.errors import InternalError

VERSION = 6
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(value: Any) -> Any:
    """``value`` (dataclasses, enums, tuples, mappings, scalars) as plain JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        plain = value.item()
        return encode(float(plain) if isinstance(plain, np.generic) else plain)
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InternalError(f"cannot encode {type(value).__name__}")


def decode(kind: Any, data: Any) -> Any:
    """JSON data as a value of the annotated type ``kind``.

    Raises:
        InternalError: the data does not fit.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(arguments, data)
    if origin is tuple:
        return _decode_tuple(arguments, data)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise InternalError(f"a mapping was expected, not {type(data).__name__}")
        return {k: decode(arguments[1], v) for k, v in data.items()}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, data)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise InternalError(f"{kind.__name__} has no value {data!r}") from None
    return _decode_scalar(kind, data)


def _decode_scalar(kind: Any, data: Any) -> Any:
    if kind is float and isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if kind is type(None) and data is None:
        return None
    if isinstance(kind, type) and type(data) is kind:
        return data
    raise InternalError(f"{kind} was expected, not {data!r}")


def _decode_union(arguments: tuple[Any, ...], data: Any) -> Any:
    if isinstance(data, dict) and "type" in data:
        for option in arguments:
            if dataclasses.is_dataclass(option) and getattr(option, "__name__", "") == data["type"]:
                return decode(option, data)
    # Exact scalar types first: 1 is an int where int is an option, though a float would take it.
    for option in arguments:
        if isinstance(option, type) and type(data) is option:
            return data
    for option in arguments:
        try:
            return decode(option, data)
        except InternalError:
            continue
    raise InternalError(f"{data!r} fits none of {arguments}")


def _decode_tuple(arguments: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise InternalError(f"a list was expected, not {type(data).__name__}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(decode(arguments[0], v) for v in data)
    if len(arguments) != len(data):
        raise InternalError(f"{len(arguments)} items were expected, not {len(data)}")
    return tuple(decode(a, v) for a, v in zip(arguments, data, strict=True))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode_dataclass(kind: type, data: Any) -> Any:
    if not isinstance(data, dict) or data.get("type") != kind.__name__:
        raise InternalError(f"{kind.__name__} was expected")
    hints = _hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    unknown = set(data) - names - {"type"}
    missing = names - set(data)
    if unknown or missing:
        raise InternalError(f"{kind.__name__}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    return kind(**{name: decode(hints[name], data[name]) for name in names})

"""JSON to protocol types, strictly: what has the wrong type is refused and not converted.

lsprotocol's own converter takes ``null`` as the text ``"None"``, ``1.5`` as line 1 and the string ``"ab"`` as
the list ``["a", "b"]``.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Optional, Union, get_args, get_origin

from cattrs import Converter, transform_error
from cattrs.errors import BaseValidationError
from pygls.protocol import default_converter

MAX_REASONS = 3
_ID = int | str


class WrongType(TypeError):
    """A value has another JSON type than the protocol says; the text names both."""


def strict_converter() -> Converter:
    """lsprotocol's converter without its conversions between JSON types."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _plain)
    converter.register_structure_hook(Union[int, str], _identifier)  # noqa: UP007  an alias is what cattrs looks up
    converter.register_structure_hook(Optional[Union[int, str]], _optional_identifier)  # noqa: UP007, UP045
    converter.register_structure_hook_factory(_is_sequence, _sequence)
    return converter


def reason(error: Exception) -> str:
    """What was wrong with the parameters, in one line."""
    if not isinstance(error, BaseValidationError):
        return f"{type(error).__name__}: {error}"[:300]
    reasons = [
        text.replace(" @ $.", " at ").replace(" @ $", "")[:200]
        for text in transform_error(error, format_exception=_say)
    ]
    return "; ".join(reasons[:MAX_REASONS])


def _say(error: BaseException, kind: type | None) -> str:
    if isinstance(error, KeyError):
        return "required field missing"
    if isinstance(error, WrongType | ValueError) and str(error):
        return str(error).rstrip(".")
    return f"invalid value, expected {getattr(kind, '__name__', kind)}"


def _plain(value: Any, kind: type) -> Any:
    if issubclass(kind, Enum):  # those of the protocol are integers or strings too
        return kind(value)
    if kind is int and isinstance(value, float) and value.is_integer():  # some clients have no other numbers
        return int(value)
    if type(value) is not kind:  # bool is an int to Python, but not in JSON
        raise WrongType(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _identifier(value: Any, _kind: object) -> int | str:
    if not isinstance(value, _ID) or isinstance(value, bool):
        raise WrongType(f"expected an integer or a string, got {type(value).__name__}")
    return value


def _optional_identifier(value: Any, kind: object) -> int | str | None:
    return None if value is None else _identifier(value, kind)


def _is_sequence(kind: Any) -> bool:
    origin: object = get_origin(kind)
    return origin is Sequence


def _sequence(kind: Any, converter: Converter) -> Any:
    (item,) = get_args(kind)

    def structure(value: Any, _kind: object) -> tuple[Any, ...]:
        if value == {}:  # how some clients write an empty table
            return ()
        if not isinstance(value, list):
            raise WrongType(f"expected a list, got {type(value).__name__}")
        return tuple(converter.structure(one, item) for one in value)

    return structure

"""What the content of an entry must look like to be ours: whoever can write the file can write anything into it.

The one place that checks it; who reads entries relies on it. Fields that are not named here may be anything of JSON,
with finite numbers and not nested deeply.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_forge.domain.record import Kind

DEEPEST = 40
"""Levels of nesting; what we write has fewer than ten."""

_Place = Annotated[int, Field(ge=0)]
_Seconds = Annotated[float, Field(ge=0)]
_Time = Annotated[float, Field(gt=0)]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Subject(_Shape):
    path: str
    kernel: str
    source: str
    spec: str
    files: dict[str, str] = {}


class _Platform(_Shape):
    device: str
    basis: str
    description: str
    facts: dict[str, str] = {}
    defines: dict[str, str] = {}
    compiler: str | None = None
    driver: str | None = None
    include_dirs: list[str] = []
    flags: list[str] = []


class _Outcome(_Shape):
    type: str
    message: str | None = None


class _Measurement(_Shape):
    seconds: _Seconds


class _Entry(_Shape):
    basis: str
    tool: str
    started: str
    recorded: str
    outcome: _Outcome
    subject: _Subject | None
    platform: _Platform | None
    configuration: dict[str, int | float | bool] = {}
    sizes: dict[str, int] = {}
    seed: _Place | None = None
    seconds: _Seconds | None = None
    measurement: _Measurement | None = None
    run: Annotated[int, Field(ge=1)] | None = None
    generation: dict[str, Any] | None = None
    details: dict[str, Any] = {}
    key: str | None


class _Trial(_Shape):
    number: _Place | None = None
    seconds: list[_Time] | None = None
    early: bool = False
    reason: str | None = None


class _Search(_Shape):
    cases: list[dict[str, int]] = []
    fixed: dict[str, int | float | bool] = {}
    sampler: str | None = None


class _SearchEnd(_Shape):
    kernel: str | None = None
    parameters: list[str] | None = None
    device_name: str | None = None
    cases: list[dict[str, int]] = []


_DETAILS: dict[Kind, type[_Shape]] = {Kind.TRIAL: _Trial, Kind.TUNE: _Search, Kind.TUNE_END: _SearchEnd}


def check_shape(data: object) -> None:
    """Check the parsed content of an entry.

    Raises:
        ValueError: it is none of ours; the message says where, in one line.
    """
    if not _is_flat(data, DEEPEST):
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    try:
        entry = _Entry.model_validate(data)
        kind = Kind((entry.model_extra or {}).get("kind"))
        if kind in _DETAILS:
            _DETAILS[kind].model_validate(entry.details)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the content"
        raise ValueError(f"{place}: {first['msg']}") from None


def _is_flat(value: object, levels: int) -> bool:
    """Whether ``value`` has at most so many levels."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)

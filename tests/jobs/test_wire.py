"""Everything that crosses the border comes out as it went in."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Mismatch, MismatchKind, Outcome, Passed, Verdict
from kernel_forge.domain.text import Range
from kernel_forge.jobs.messages import Done, Failed, Hello, Job, Stepped, from_line, to_line
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.jobs.wire import decode, encode

OUTCOMES = get_args(Outcome)


def same(a: Any, b: Any) -> bool:
    """Equality where NaN is NaN and 1 is not 1.0."""
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("kind", OUTCOMES, ids=lambda k: k.__name__)
@given(data=st.data())
def test_every_outcome_makes_the_round_trip(kind: type, data: st.DataObject) -> None:
    outcome = data.draw(st.from_type(kind))
    verdict = Verdict("k", "/a.cu", outcome, {"B": 1, "F": 0.5, "ON": True}, 7, "emulator", "emulated")
    line = to_line(Done(1, FileReport((), (verdict,))))
    assert line.count(b"\n") == 1
    assert same(from_line(line), Done(1, FileReport((), (verdict,))))


@given(message=st.one_of(*(st.from_type(kind) for kind in (Hello, Job, Stepped, Failed))))
def test_every_message_makes_the_round_trip(message: Hello | Job | Stepped | Failed) -> None:
    assert same(from_line(to_line(message)), message)


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.longdouble(2), 2.0),
        (np.float32("nan"), "NaN"),
    ],
)
def test_numpy_scalars_are_encoded(scalar: Any, plain: Any) -> None:
    assert encode(scalar) == plain
    assert type(encode(scalar)) is type(plain)


def test_a_mismatch_with_numpy_values() -> None:
    outcome = Mismatch(MismatchKind.WRONG_VALUE, "y", 1, 2, (np.int64(0),), np.float32(1), np.float32("inf"), 0.0, 1.0)  # type: ignore[arg-type]
    assert decode(Mismatch, json.loads(json.dumps(encode(outcome)))).got == math.inf


def test_an_unknown_enum_value_is_our_error() -> None:
    data = encode(Finding("KF101", Severity.ERROR, "m", "/a", Range.of_line(0)))
    data["severity"] = 99
    with pytest.raises(InternalError, match="Severity has no value 99"):
        decode(Finding, data)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[]",
        b"1",
        b'{"type":"No"}',
        b'{"type":"Hello"}',
        b'{"type":"Hello","version":2,"x":1}',
        b"[" * 100000,
    ],
)
def test_garbage_is_refused(line: bytes) -> None:
    with pytest.raises(InternalError):
        from_line(line)


def test_what_cannot_be_encoded_is_our_error() -> None:
    with pytest.raises(InternalError):
        encode(Passed(1, 1, {"y": object()}))  # type: ignore[dict-item]


def request(**fields: Any) -> VerifyRequest:
    return VerifyRequest("/a.cu", **{"text": "", "time_limit": 10.0, **fields})


def test_the_limit_of_a_file_grows_with_its_specs() -> None:
    block = "// /// kernel-forge\n// ///\n"
    assert request().spec_count == 1
    assert request(text=block * 3).spec_count == 3
    assert request(text=block, sidecar=("/a.forge.toml", "[kernels.a]\n[kernels.b]\n")).spec_count == 3
    assert request(text=block * 3, kernel="k").spec_count == 1
    assert request(text=block * 3).wall_limit == 60.0
    assert Progress("x").total == 0

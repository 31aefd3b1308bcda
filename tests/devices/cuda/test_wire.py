"""Runs as headers and payloads: what goes in comes out."""

import json
from typing import Any

import numpy as np
import pytest

from kernel_forge.devices.cuda.keeping import Kept
from kernel_forge.devices.cuda.protocol import Frame, ProtocolError
from kernel_forge.devices.cuda.wire import Code, decode_plan, decode_runs, encode_plan, encode_runs
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, Scalar
from kernel_forge.domain.measurement import TimingPlan

CODE, POISON = Code(b"the kernel", {"k": "_Z1k"}), Code(b"poison!", {"p": "p"})
X = np.arange(3, dtype=np.float32)


def request(**launch: Any) -> RunRequest:
    args = (BufferRef("x"), BufferRef("y"), Scalar(DType.INT32, -2))
    buffers = (Buffer("x", DType.FLOAT32, 12, X, writable=False), Buffer("y", DType.FLOAT64, 16))
    return RunRequest(buffers, (Launch("k", args, (1, 2, 3), (4, 5, 6), 7, **launch),), poison_seed=9)


def frame(made: tuple[dict[str, Any], list[bytes | memoryview]]) -> Frame:
    header, payload = made
    return Frame(header, bytearray(b"".join(payload)))


@pytest.mark.parametrize("poison", [None, POISON])
def test_runs_come_out_as_they_went_in(poison: Code | None) -> None:
    first, second = request(stream="copy", cluster=(2, 1, 1), cooperative=True), request()
    one, two = decode_runs(frame(encode_runs([(CODE, first), (POISON, second)], poison)), Kept())
    assert (bytes(one.code.image), bytes(two.code.image)) == (b"the kernel", b"poison!")
    assert (one.poison is None) == (poison is None)
    assert one.poison is None or (bytes(one.poison.image), one.poison.entries) == (b"poison!", {"p": "p"})
    (launch,) = one.launches
    assert (launch.stream, launch.cluster, launch.cooperative) == ("copy", (2, 1, 1), True)
    assert launch.args == ("x", "y", (-2).to_bytes(4, "little", signed=True))
    assert two.launches[0].stream is None
    for run in (one, two):
        assert np.array_equal(run.buffers[0].initial(9), X)
        assert run.buffers[1].data is None


def test_an_array_that_many_runs_have_travels_once() -> None:
    codes = [Code(f"kernel {number}".encode(), {"k": "k"}) for number in range(8)]
    header, payload = encode_runs([(code, request()) for code in codes])
    assert sum(len(part) for part in payload) == 8 * len(b"kernel 0") + X.nbytes
    runs = decode_runs(frame((header, payload)), Kept())
    assert [bytes(r.code.image) for r in runs] == [bytes(c.image) for c in codes]
    assert len({id(r.buffers[0].data) for r in runs}) == 1


def test_other_arrays_travel_as_what_they_are() -> None:
    """Views of the same memory: the same elements under another shape, a part of it, and every other element."""
    x = np.arange(8, dtype=np.float32)
    views = [x, x.reshape(2, 4), x[:4], x[::2], x[::2], x.copy()]
    buffers = [(Buffer("x", DType.FLOAT32, v.nbytes, v, writable=False),) for v in views]
    header, payload = encode_runs([(CODE, RunRequest(b, ())) for b in buffers])
    runs = decode_runs(frame((header, payload)), Kept())
    for run, view in zip(runs, views, strict=True):
        assert run.buffers[0].initial(0).tolist() == view.ravel().tolist()
    assert runs[0].buffers[0].data is runs[1].buffers[0].data
    assert runs[0].buffers[0].data is not runs[5].buffers[0].data


def test_a_plan_comes_out_as_it_went_in() -> None:
    for plan in (TimingPlan(), TimingPlan(1.5, 0.2, 3, False, False, hopeless=1e-4, energy=True)):
        assert decode_plan(json.loads(json.dumps(encode_plan(plan)))) == plan


def test_a_header_of_another_version_is_refused() -> None:
    header, payload = encode_runs([(CODE, request())])
    del header["runs"][0]["poison"]
    with pytest.raises(ProtocolError, match="not of this version"):
        decode_runs(frame((header, payload)), Kept())

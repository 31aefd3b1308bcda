"""Runs as headers and payloads: what goes in comes out."""

from typing import Any

import numpy as np
import pytest

from kernel_forge.devices.cuda.protocol import Frame, ProtocolError
from kernel_forge.devices.cuda.wire import Code, decode_runs, encode_run
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, Scalar

CODE, POISON = Code(b"the kernel", {"k": "_Z1k"}), Code(b"poison!", {"p": "p"})
X = np.arange(3, dtype=np.float32)


def request(**launch: Any) -> RunRequest:
    args = (BufferRef("x"), BufferRef("y"), Scalar(DType.INT32, -2))
    buffers = (Buffer("x", DType.FLOAT32, 12, X, writable=False), Buffer("y", DType.FLOAT64, 16))
    return RunRequest(buffers, (Launch("k", args, (1, 2, 3), (4, 5, 6), 7, **launch),), poison_seed=9)


def frame(*runs: tuple[dict[str, Any], list[bytes | memoryview]]) -> Frame:
    return Frame({"runs": [header for header, _ in runs]}, bytearray(b"".join(p for _, ps in runs for p in ps)))


@pytest.mark.parametrize("poison", [None, POISON])
def test_runs_come_out_as_they_went_in(poison: Code | None) -> None:
    first = encode_run(CODE, request(stream="copy", cluster=(2, 1, 1), cooperative=True), poison)
    one, two = decode_runs(frame(first, encode_run(CODE, request())))
    assert bytes(one.code.image) == b"the kernel"
    assert (one.poison is None) == (poison is None)
    assert one.poison is None or (bytes(one.poison.image), one.poison.entries) == (b"poison!", {"p": "p"})
    assert two.poison is None
    (launch,) = one.launches
    assert (launch.stream, launch.cluster, launch.cooperative) == ("copy", (2, 1, 1), True)
    assert launch.args == ("x", "y", (-2).to_bytes(4, "little", signed=True))
    assert two.launches[0].stream is None
    for run in (one, two):
        assert np.array_equal(run.buffers[0].initial(9), X)
        assert run.buffers[1].data is None


def test_a_header_of_another_version_is_refused() -> None:
    header, payload = encode_run(CODE, request())
    del header["poison"]
    with pytest.raises(ProtocolError, match="not of this version"):
        decode_runs(frame((header, payload)))

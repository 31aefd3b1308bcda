"""Frames: what is written is read; what is no frame is told, and never waited for."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.devices.cuda.keeping import Kept
from kernel_forge.devices.cuda.protocol import Frame, ProtocolError, read_frame, write_frame
from kernel_forge.devices.cuda.wire import Code, decode_runs, encode_runs
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, Scalar, poison
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Sampling, Texture

HEADERS = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8) | st.booleans(), max_size=4)


@given(HEADERS, st.lists(st.binary(max_size=64), max_size=4))
def test_what_is_written_is_read(header: dict[str, object], parts: list[bytes]) -> None:
    stream = io.BytesIO()
    write_frame(stream, {**header, "type": "job"}, parts)
    write_frame(stream, {"type": "ping"})
    stream.seek(0)
    first, second, end = read_frame(stream), read_frame(stream), read_frame(stream)
    assert first is not None and dict(first.header) == {**header, "type": "job"}
    assert [bytes(p) for p in first.arrays(len(p) for p in parts)] == parts
    assert second is not None and second.kind == "ping"
    assert end is None


def frame_bytes() -> bytes:
    stream = io.BytesIO()
    write_frame(stream, {"type": "job"}, [b"payload"])
    return stream.getvalue()


@pytest.mark.parametrize("cut", range(1, len(frame_bytes())))
def test_a_stream_that_ends_within_a_frame(cut: int) -> None:
    with pytest.raises(ProtocolError):
        read_frame(io.BytesIO(frame_bytes()[:cut]))


@pytest.mark.parametrize(
    "text",
    [
        b"bash: kernel-forge: command not found\n",
        b"KF" + b"\xff" * 12,
        b"KF" + (3).to_bytes(4, "big") + (0).to_bytes(8, "big") + b"{}}",
        b"KF" + (2).to_bytes(4, "big") + (0).to_bytes(8, "big") + b"{}",
    ],
    ids=["text", "endless", "no JSON", "no type"],
)
def test_what_is_no_frame(text: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_frame(io.BytesIO(text))


def test_a_payload_of_another_size_than_announced() -> None:
    with pytest.raises(ProtocolError, match="7 bytes of payload where 8 were announced"):
        Frame({"type": "job"}, b"payload").arrays([8])


@pytest.mark.parametrize("dtype", list(DType))
def test_a_run_travels_whole(dtype: DType) -> None:
    data = np.arange(6).astype(dtype.numpy)
    buffers = (Buffer("x", dtype, data.nbytes, data, writable=False), Buffer("y", dtype, data.nbytes))
    launch = Launch(
        "k<1>", (BufferRef("x"), BufferRef("y"), Scalar(dtype, 1)), (2, 1, 1), (3, 1, 1), 16, (2, 1, 1), True
    )
    request = RunRequest(buffers, (launch,), poison_seed=5)
    header, parts = encode_runs([(Code(b"machine code", {"k<1>": "_Z1k"}), request)])
    stream = io.BytesIO()
    write_frame(stream, {"type": "job", **header}, parts)
    stream.seek(0)
    frame = read_frame(stream)
    assert frame is not None
    (run,) = decode_runs(frame, Kept())
    assert bytes(run.code.image) == b"machine code" and run.code.entries == {"k<1>": "_Z1k"}
    x, y = run.buffers
    assert x.initial(5).tobytes() == data.tobytes() and not x.writable
    assert y.initial(5).tobytes() == poison(dtype, 6, 5).tobytes()
    made = run.launches[0]
    assert made.args == ("x", "y", np.ones(1, dtype.numpy).tobytes())
    assert (made.grid, made.block, made.shared_bytes, made.cluster) == ((2, 1, 1), (3, 1, 1), 16, (2, 1, 1))
    assert made.cooperative


def test_a_texture_travels_whole() -> None:
    sampling = Sampling(Filter.LINEAR, Address.MIRROR, True, Read.NORMALIZED, Memory.ARRAY)
    texture = Texture((3, 4), 2, sampling)
    texels = np.arange(24, dtype=np.uint8)
    request = RunRequest((Buffer("t", DType.UINT8, 24, texels, writable=False, texture=texture),), ())
    header, parts = encode_runs([(Code(b"", {}), request)])
    stream = io.BytesIO()
    write_frame(stream, {"type": "job", **header}, parts)
    stream.seek(0)
    frame = read_frame(stream)
    assert frame is not None
    (run,) = decode_runs(frame, Kept())
    assert run.buffers[0].texture == texture
    assert run.buffers[0].initial(0).tolist() == list(range(24))


def test_a_job_of_another_version() -> None:
    with pytest.raises(ProtocolError, match="not of this version"):
        decode_runs(Frame({"type": "job", "runs": [{"image": 0}]}), Kept())

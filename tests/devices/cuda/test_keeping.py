"""What a worker keeps: both sides agree, whatever jobs come in whatever order."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.devices.cuda.keeping import Kept, Sent, token_of
from kernel_forge.devices.cuda.protocol import Frame, ProtocolError, read_frame, write_frame
from kernel_forge.devices.cuda.wire import Code, decode_runs, encode_runs
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest

CODE = Code(b"cubin", {"k": "k"})


def frozen(size: int, value: float = 1.0) -> Any:
    array = np.full(size, value, np.float32)
    array.setflags(write=False)
    return array


def sent(sender: Sent, *arrays: Any) -> Frame:
    """The frame of a job with ``arrays``, as it arrives."""
    buffers = tuple(Buffer(f"b{i}", DType.FLOAT32, a.nbytes, a, writable=False) for i, a in enumerate(arrays))
    launch = Launch("k", tuple(BufferRef(b.name) for b in buffers), (1, 1, 1), (32, 1, 1))
    header, payload = sender.reduced(*encode_runs([(CODE, RunRequest(buffers, (launch,)))], keeping=True))
    stream = io.BytesIO()
    write_frame(stream, {**header, "type": "job"}, payload)
    stream.seek(0)
    found = read_frame(stream)
    assert found is not None
    return found


def received(kept: Kept, frame: Frame) -> list[Any]:
    (run,) = decode_runs(frame, kept)
    return [b.initial(0) for b in run.buffers]


def test_an_array_that_cannot_change_travels_once() -> None:
    sender, kept, array = Sent(), Kept(), frozen(1000)
    first, second = sent(sender, array), sent(sender, array.reshape(10, 100))
    assert len(first.payload) == len(CODE.image) + 4000
    assert len(second.payload) == len(CODE.image)
    for frame in (first, second):
        np.testing.assert_array_equal(received(kept, frame)[0], array)


def test_only_what_can_never_change_has_a_token() -> None:
    array = frozen(100)
    assert token_of(array) == token_of(array[:]) == token_of(array.reshape(10, 10))
    assert token_of(frozen(100)) != token_of(array)
    changing = np.zeros(100, np.float32)
    looking = changing[:]
    looking.setflags(write=False)  # its owner may still be written to
    assert token_of(changing) is None
    assert token_of(looking) is None
    assert token_of(array[10:]) is None
    assert token_of(array.reshape(10, 10).T) is None
    assert token_of(frozen(0)) is None


def test_a_new_array_in_the_place_of_an_old_one_is_another() -> None:
    seen = set()
    for value in range(50):
        token = token_of(frozen(64, value))
        assert token not in seen
        seen.add(token)


def test_a_worker_that_lacks_a_part_says_so() -> None:
    sender, array = Sent(), frozen(10)
    sent(sender, array)
    with pytest.raises(ProtocolError, match="never sent"):
        received(Kept(), sent(sender, array))


@given(
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True), max_size=25),
    st.integers(0, 4000),
)
def test_every_job_has_its_arrays_whatever_was_forgotten(jobs: list[list[int]], limit: int) -> None:
    """Eight arrays of 4 to 1,020 bytes; the last one may change."""
    arrays = [frozen(1 + 36 * n, n) for n in range(7)] + [np.zeros(50, np.float32)]
    sender, kept = Sent(limit), Kept()
    for number, job in enumerate(jobs):
        arrays[7][:] = number
        frame = sent(sender, *(arrays[n] for n in job))
        for n, found in zip(job, received(kept, frame), strict=True):
            np.testing.assert_array_equal(found, arrays[n])
        assert sum(len(part) for part in kept._held.values()) <= limit

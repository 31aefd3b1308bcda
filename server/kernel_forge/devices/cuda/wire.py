"""Run requests and loaded code as headers and payloads; see :mod:`kernel_forge.devices.cuda.protocol`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_forge.devices.cuda.keeping import Kept, token_of
from kernel_forge.devices.cuda.protocol import Frame, ProtocolError
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Dim3, Launch, RunRequest, poison
from kernel_forge.domain.measurement import TimingPlan
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Sampling, Texture

POISON_KERNEL = "kf_poison_shared"
"""The kernel of :attr:`WireRun.poison`, in poison.cu."""
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code to load: ``entries`` maps kernels and symbols, as the request names them, to linker names."""

    image: bytes | memoryview
    entries: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WireBuffer:
    """A buffer as the worker sees it. ``data`` None: :func:`~kernel_forge.domain.launch.poison`."""

    name: str
    dtype: DType
    nbytes: int
    writable: bool
    symbol: bool
    data: memoryview | None
    texture: Texture | None = None

    def initial(self, seed: int) -> Array:
        """Flat contents before the run."""
        if self.data is None:
            return poison(self.dtype, self.nbytes // self.dtype.itemsize, seed)
        return np.frombuffer(self.data, dtype=self.dtype.numpy)


@dataclass(frozen=True, slots=True)
class WireLaunch:
    """A launch as the worker sees it: an argument is a buffer's name or the bytes of a value."""

    kernel: str
    args: tuple[str | bytes, ...]
    grid: Dim3
    block: Dim3
    shared_bytes: int
    cluster: Dim3 | None
    cooperative: bool
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class WireRun:
    """Everything the worker needs for one execution; ``poison`` has the kernel that fills shared memory."""

    code: Code
    poison: Code | None
    buffers: tuple[WireBuffer, ...]
    launches: tuple[WireLaunch, ...]
    poison_seed: int
    time_limit: float
    output_limit: int


class Parts:
    """The payload of a job: every image and array once, however many runs have it.

    Arrays are told apart by the memory that they lie in, images by their bytes. What is added must not change before it
    is sent.
    """

    def __init__(self) -> None:
        self.payload: list[bytes | memoryview] = []
        self.tokens: list[int | None] = []
        self._known: dict[object, int] = {}

    @property
    def sizes(self) -> list[int]:
        """Bytes of each part, for the header."""
        return [len(part) for part in self.payload]

    def image(self, image: bytes | memoryview) -> int:
        """The number of the part that is ``image``."""
        return self._number(bytes(image), image)

    def array(self, array: Array) -> int:
        """The number of the part that has the elements of ``array``, in C order."""
        held = np.ascontiguousarray(array)
        if held.nbytes and np.shares_memory(held, array):
            return self._number((held.__array_interface__["data"][0], held.nbytes), as_bytes(held), token_of(array))
        return self._number(("copy", len(self.payload)), as_bytes(held))

    def _number(self, key: object, part: bytes | memoryview, token: int | None = None) -> int:
        if key not in self._known:
            self._known[key] = len(self.payload)
            self.payload.append(part)
            self.tokens.append(token)
        return self._known[key]


def encode_runs(
    runs: Sequence[tuple[Code, RunRequest]], poison: Code | None = None, *, keeping: bool = False
) -> tuple[dict[str, Any], list[bytes | memoryview]]:
    """Header entries and payload parts of some executions; without ``poison`` shared memory stays as the last kernel
    left it. With ``keeping`` the worker may keep what cannot change, see :mod:`.keeping`."""
    parts = Parts()
    headers = [_run_header(code, request, poison, parts) for code, request in runs]
    tokens = {"tokens": parts.tokens} if keeping else {}
    return {"runs": headers, "parts": parts.sizes, **tokens}, parts.payload


def _run_header(code: Code, request: RunRequest, poison: Code | None, parts: Parts) -> dict[str, Any]:
    return {
        "code": _code_header(code, parts),
        "poison": None if poison is None else _code_header(poison, parts),
        "buffers": [_buffer_header(b, parts) for b in request.buffers],
        "launches": [_launch_header(launch) for launch in request.launches],
        "poison_seed": request.poison_seed,
        "time_limit": request.time_limit,
        "output_limit": request.output_limit,
    }


def _code_header(code: Code, parts: Parts) -> dict[str, Any]:
    return {"image": parts.image(code.image), "entries": dict(code.entries)}


def as_bytes(array: Array) -> memoryview:
    """The bytes of a contiguous array, not copied."""
    view: Any = array.reshape(-1).view(np.uint8)  # bfloat16 has no buffer protocol
    return memoryview(view)


def _buffer_header(buffer: Buffer, parts: Parts) -> dict[str, Any]:
    if buffer.data is not None and buffer.data.nbytes != buffer.nbytes:
        raise ValueError(f"{buffer.name}: {buffer.data.nbytes} bytes of data for {buffer.nbytes}")
    return {
        "name": buffer.name,
        "dtype": buffer.dtype.value,
        "nbytes": buffer.nbytes,
        "writable": buffer.writable,
        "symbol": buffer.symbol,
        "texture": None if buffer.texture is None else encode_texture(buffer.texture),
        "data": None if buffer.data is None else parts.array(buffer.data),
    }


def _launch_header(launch: Launch) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "args": [{"ref": a.name} if isinstance(a, BufferRef) else {"value": a.encoded().hex()} for a in launch.args],
        "grid": launch.grid,
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "cluster": launch.cluster,
        "cooperative": launch.cooperative,
        "stream": launch.stream,
    }


def decode_runs(frame: Frame, kept: Kept) -> list[WireRun]:
    """The executions in ``header["runs"]``, their arrays cut from the payload or kept from an earlier job: one that
    several have is the same object in all of them.

    Raises:
        ProtocolError: the header is not of this form.
    """
    try:
        parts = kept.parts(frame)
        return [_run(h, parts) for h in frame.header["runs"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ProtocolError(f"a job that is not of this version: {error!r}") from None


def _code(header: Mapping[str, Any], parts: Sequence[memoryview]) -> Code:
    return Code(parts[header["image"]], dict(header["entries"]))


def _run(header: Mapping[str, Any], parts: Sequence[memoryview]) -> WireRun:
    buffers = tuple(
        WireBuffer(
            b["name"],
            DType(b["dtype"]),
            int(b["nbytes"]),
            bool(b["writable"]),
            bool(b["symbol"]),
            None if b["data"] is None else parts[b["data"]],
            None if b["texture"] is None else decode_texture(b["texture"]),
        )
        for b in header["buffers"]
    )
    launches = tuple(_launch(launch) for launch in header["launches"])
    return WireRun(
        _code(header["code"], parts),
        None if header["poison"] is None else _code(header["poison"], parts),
        buffers,
        launches,
        int(header["poison_seed"]),
        float(header["time_limit"]),
        int(header["output_limit"]),
    )


def _launch(header: Mapping[str, Any]) -> WireLaunch:
    args = tuple(a["ref"] if "ref" in a else bytes.fromhex(a["value"]) for a in header["args"])
    cluster = header["cluster"]
    return WireLaunch(
        header["kernel"],
        args,
        _dim(header["grid"]),
        _dim(header["block"]),
        int(header["shared_bytes"]),
        None if cluster is None else _dim(cluster),
        bool(header["cooperative"]),
        None if header["stream"] is None else str(header["stream"]),
    )


def _dim(values: Sequence[int]) -> Dim3:
    x, y, z = (int(v) for v in values)
    return (x, y, z)


def encode_texture(texture: Texture) -> dict[str, Any]:
    """A texture as JSON values."""
    sampling = texture.sampling
    return {
        "extents": texture.extents,
        "lanes": texture.lanes,
        "filter": sampling.filter.value,
        "address": sampling.address.value,
        "normalized": sampling.normalized,
        "read": sampling.read.value,
        "memory": sampling.memory.value,
    }


def decode_texture(header: Mapping[str, Any]) -> Texture:
    """Inverse of :func:`encode_texture`."""
    sampling = Sampling(
        Filter(header["filter"]),
        Address(header["address"]),
        bool(header["normalized"]),
        Read(header["read"]),
        Memory(header["memory"]),
    )
    return Texture(tuple(int(n) for n in header["extents"]), int(header["lanes"]), sampling)


def encode_plan(plan: TimingPlan) -> dict[str, Any]:
    """A plan as JSON values."""
    return {
        "budget": plan.budget,
        "interval": plan.interval,
        "min_samples": plan.min_samples,
        "cold": plan.cold,
        "outputs": plan.outputs,
        "hopeless": plan.hopeless,
        "energy": plan.energy,
        "sample": plan.sample,
    }


def decode_plan(header: Mapping[str, Any]) -> TimingPlan:
    """Inverse of :func:`encode_plan`."""
    return TimingPlan(
        float(header["budget"]),
        float(header["interval"]),
        int(header["min_samples"]),
        bool(header["cold"]),
        bool(header["outputs"]),
        None if header["hopeless"] is None else float(header["hopeless"]),
        bool(header["energy"]),
        int(header["sample"]),
    )

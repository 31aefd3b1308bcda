"""Run requests and loaded code as headers and payloads; see :mod:`kernel_forge.devices.cuda.protocol`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def encode_run(
    code: Code, request: RunRequest, poison: Code | None = None
) -> tuple[dict[str, Any], list[bytes | memoryview]]:
    """Header and payload parts of one execution; without ``poison`` shared memory stays as the last kernel left it."""
    arrays = [None if b.data is None else np.ascontiguousarray(b.data) for b in request.buffers]
    header = {
        "image": len(code.image),
        "entries": dict(code.entries),
        "poison": None if poison is None else {"image": len(poison.image), "entries": dict(poison.entries)},
        "buffers": [_buffer_header(b, a) for b, a in zip(request.buffers, arrays, strict=True)],
        "launches": [_launch_header(launch) for launch in request.launches],
        "poison_seed": request.poison_seed,
        "time_limit": request.time_limit,
        "output_limit": request.output_limit,
    }
    images = [code.image] if poison is None else [code.image, poison.image]
    return header, [*images, *(as_bytes(a) for a in arrays if a is not None)]


def as_bytes(array: Array) -> memoryview:
    """The bytes of a contiguous array, not copied."""
    view: Any = array.reshape(-1).view(np.uint8)  # bfloat16 has no buffer protocol
    return memoryview(view)


def _buffer_header(buffer: Buffer, data: Array | None) -> dict[str, Any]:
    if data is not None and data.nbytes != buffer.nbytes:
        raise ValueError(f"{buffer.name}: {data.nbytes} bytes of data for {buffer.nbytes}")
    return {
        "name": buffer.name,
        "dtype": buffer.dtype.value,
        "nbytes": buffer.nbytes,
        "writable": buffer.writable,
        "symbol": buffer.symbol,
        "texture": None if buffer.texture is None else encode_texture(buffer.texture),
        "data": data is not None,
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


def decode_runs(frame: Frame) -> list[WireRun]:
    """The executions in ``header["runs"]``, their arrays cut from the payload.

    Raises:
        ProtocolError: the header is not of this form.
    """
    try:
        headers: Sequence[Mapping[str, Any]] = frame.header["runs"]
        sizes = [s for h in headers for s in _sizes(h)]
        parts = iter(frame.arrays(sizes))
        return [_run(h, parts) for h in headers]
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"a job that is not of this version: {error!r}") from None


def _sizes(header: Mapping[str, Any]) -> list[int]:
    images = [h["image"] for h in (header, header["poison"]) if h is not None]
    return [*images, *(b["nbytes"] for b in header["buffers"] if b["data"])]


def _run(header: Mapping[str, Any], parts: Iterator[memoryview]) -> WireRun:
    code, poison = (None if h is None else Code(next(parts), dict(h["entries"])) for h in (header, header["poison"]))
    assert code is not None
    buffers = tuple(
        WireBuffer(
            b["name"],
            DType(b["dtype"]),
            int(b["nbytes"]),
            bool(b["writable"]),
            bool(b["symbol"]),
            next(parts) if b["data"] else None,
            None if b["texture"] is None else decode_texture(b["texture"]),
        )
        for b in header["buffers"]
    )
    launches = tuple(_launch(launch) for launch in header["launches"])
    return WireRun(
        code,
        poison,
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
    }


def decode_plan(header: Mapping[str, Any]) -> TimingPlan:
    """Inverse of :func:`encode_plan`."""
    return TimingPlan(
        float(header["budget"]),
        float(header["interval"]),
        int(header["min_samples"]),
        bool(header["cold"]),
        bool(header["outputs"]),
    )

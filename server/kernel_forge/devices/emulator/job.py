"""Writing the job of one run: see ``native/PROTOCOL.md``."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, poison
from kernel_forge.domain.stream_order import in_order
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Texture
from kernel_forge.ports import Artifact

MEMORY_BEYOND_BUFFERS = 4 << 30
REPORT, TEXT, JOB = "report", "text", "job"
# As kf_abi.h and runtime/texture.h number them.
_KINDS = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)
_ADDRESSES = (Address.CLAMP, Address.BORDER, Address.WRAP, Address.MIRROR)


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Where the run leaves the contents of each writable buffer."""

    outputs: dict[str, Path]


def write_job(folder: Path, artifact: Artifact, request: RunRequest, workers: int) -> JobFiles:
    """Write job and inputs into ``folder``.

    Raises:
        ValueError: the request names a kernel or a buffer that it does not have (our bug).
    """
    lines = [
        f"report {REPORT}",
        f"text {TEXT}",
        f"schedule {request.schedule.value} {request.schedule_seed}",
        f"poison {request.poison_seed}",
        f"workers {workers}",
        f"time_limit {request.time_limit}",
        f"output_limit {request.output_limit}",
        f"memory_limit {MEMORY_BEYOND_BUFFERS}",
    ]
    index = {buffer.name: i for i, buffer in enumerate(request.buffers)}
    outputs: dict[str, Path] = {}
    for i, buffer in enumerate(request.buffers):
        _initial(buffer, request.poison_seed).tofile(folder / f"in{i}")
        output = f"out{i}" if buffer.writable else "-"
        if buffer.writable:
            outputs[buffer.name] = folder / output
        if buffer.texture is not None:
            lines.append(_texture_line(i, buffer, buffer.texture))
        elif buffer.symbol:
            lines.append(f"symbol {i} {buffer.name} {buffer.nbytes} in{i} {output}")
        else:
            lines.append(f"buffer {i} {buffer.nbytes} {int(buffer.writable)} in{i} {output}")
    for launch in in_order(request.launches, request.schedule, request.schedule_seed):
        lines.extend(_launch_lines(launch, artifact, index))
    if request.watch is not None:
        watch = request.watch
        lines.append(f"watch {index[watch.buffer]} {watch.offset} {watch.nbytes}")
    (folder / JOB).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return JobFiles(outputs)


def _texture_line(number: int, buffer: Buffer, texture: Texture) -> str:
    sampling = texture.sampling
    z, y, x = (1,) * (3 - len(texture.extents)) + texture.extents
    fields = (
        number,
        f"in{number}",
        _KINDS.index(buffer.dtype),
        texture.lanes,
        len(texture.extents),
        *(x, y, z),
        int(sampling.filter is Filter.LINEAR),
        _ADDRESSES.index(sampling.address),
        int(sampling.normalized),
        int(sampling.read is Read.NORMALIZED),
        int(sampling.memory is Memory.LINEAR),
    )
    return "texture " + " ".join(str(f) for f in fields)


def _initial(buffer: Buffer, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if buffer.data is None:
        return poison(buffer.dtype, buffer.nbytes // buffer.dtype.itemsize, seed)
    if buffer.data.nbytes != buffer.nbytes:
        raise ValueError(f"{buffer.name}: {buffer.data.nbytes} bytes of data for {buffer.nbytes}")
    return np.ascontiguousarray(buffer.data)


def _launch_lines(launch: Launch, artifact: Artifact, index: dict[str, int]) -> list[str]:
    number = artifact.kernels.index(launch.kernel)
    numbers = (number, *launch.grid, *launch.block, launch.shared_bytes, int(launch.cooperative))
    lines = ["launch " + " ".join(str(n) for n in numbers)]
    for argument in launch.args:
        if isinstance(argument, BufferRef):
            lines.append(f"arg buffer {index[argument.name]}")
        else:
            lines.append(f"arg value {argument.encoded().hex()}")
    return lines

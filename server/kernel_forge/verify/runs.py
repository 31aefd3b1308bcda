"""One run of a spec's launches at one case: buffers made, launched, outputs handed back in their shapes."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.launch import Buffer, RunRequest, Schedule, Watch
from kernel_forge.domain.outcome import Ran, RunFailure, WatchHit
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role
from kernel_forge.ports import Artifact, Device
from kernel_forge.spec import BoundCase
from kernel_forge.spec.textures import texture_at
from kernel_forge.verify.inputs import Array


@dataclass(frozen=True)
class Options:
    """How to run: see :class:`~kernel_forge.domain.launch.RunRequest`."""

    schedule: Schedule = Schedule.FORWARD
    schedule_seed: int = 0
    poison_seed: int = 0
    time_limit: float = 5.0


@dataclass(frozen=True)
class Finished:
    """A run that ended normally; ``outputs`` are in their shapes."""

    outputs: Mapping[str, Array]
    seconds: float
    watch_hit: WatchHit | None


def run(
    spec: KernelSpec,
    bound: BoundCase,
    inputs: Mapping[str, Array],
    device: Device,
    artifact: Artifact,
    options: Options,
    watch: Watch | None = None,
) -> Finished | RunFailure:
    """Run on ``device``, telling who wrote the watched bytes last where ``watch`` is given."""
    outcome = device.run(artifact, request_of(spec, bound, inputs, options, watch))
    if not isinstance(outcome, Ran):
        return outcome
    outputs = {a.name: outcome.contents[a.name].reshape(bound.shapes[a.name]) for a in spec.outputs}
    return Finished(outputs, outcome.seconds, outcome.watch_hit)


def request_of(
    spec: KernelSpec, bound: BoundCase, inputs: Mapping[str, Array], options: Options, watch: Watch | None = None
) -> RunRequest:
    """The launches of ``spec`` at one case as a device takes them."""
    return RunRequest(
        buffers=tuple(_buffer(arg, bound, inputs) for arg in spec.args if isinstance(arg, BufferArg)),
        launches=bound.launches,
        schedule=options.schedule,
        schedule_seed=options.schedule_seed,
        poison_seed=options.poison_seed,
        time_limit=options.time_limit,
        watch=watch,
    )


def _buffer(arg: BufferArg, bound: BoundCase, inputs: Mapping[str, Array]) -> Buffer:
    data = inputs.get(arg.name)
    return Buffer(
        name=arg.name,
        dtype=arg.dtype,
        nbytes=bound.count(arg.name) * arg.dtype.itemsize,
        data=None if data is None else data.reshape(-1),
        writable=arg.role is not Role.IN,
        symbol=arg.is_symbol,
        texture=texture_at(arg, bound.shapes[arg.name]),
    )


def thread_count(bound: BoundCase) -> int:
    """CUDA threads of all launches together."""
    total = 0
    for launch in bound.launches:
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        total += blocks * launch.block[0] * launch.block[1] * launch.block[2]
    return total


def largest_extent(bound: BoundCase) -> int:
    """The largest extent of any buffer: how long a loop of one thread may be."""
    return max((n for shape in bound.shapes.values() for n in shape), default=1)

"""The buffers of timed trials: several sets, so that executions find their data in memory and not in the cache."""

import math
from collections.abc import Hashable

import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireBuffer, WireRun
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.memory import Memory, PlainBuffer, fill_from
from kernel_forge.devices.cuda.worker.stages import staged
from kernel_forge.devices.cuda.worker.textures import make_texture
from kernel_forge.domain.measurement import TimingPlan

CACHE_FACTOR = 2.5
MAX_SETS = 256


class BufferSets:
    """Sets of the buffers of a run, symbols excepted: those belong to a module.

    Attributes:
        sets: address and contents by name; at least one set, where caches are to be cold at least two or ``flushes``.
        flushes: the cache must be written over before an execution: the sets do not fill it.
    """

    def __init__(self, gpu: Gpu, run: WireRun, plan: TimingPlan, memory: float) -> None:
        """``memory``: bytes of the device that they may take."""
        self.sets: list[dict[str, Memory]] = []
        self._gpu = gpu
        self._seed = run.poison_seed
        self._pristine: dict[str, PlainBuffer] = {}
        buffers = _shareable(run)
        size = sum(b.nbytes for b in buffers)
        wanted = math.ceil(CACHE_FACTOR * gpu.l2_bytes / size) if plan.cold and size else 1
        affordable = int(memory / max(1, size))
        self.flushes = plan.cold and (wanted > MAX_SETS or affordable < 2)
        count = 1 if self.flushes else max(2 if plan.cold else 1, min(wanted, affordable, MAX_SETS))
        with staged("allocate"):
            try:
                self._allocate(buffers, count, run.poison_seed)
            except BaseException:
                self.close()
                raise

    def _allocate(self, buffers: list[WireBuffer], count: int, seed: int) -> None:
        for number in range(count):
            made: dict[str, Memory] = {}
            self.sets.append(made)
            for buffer in buffers:
                if buffer.texture is not None:
                    made[buffer.name] = make_texture(self._gpu, buffer, buffer.texture)
                    made[buffer.name].fill(buffer.initial(seed))
                    continue
                made[buffer.name] = PlainBuffer(buffer)
                if not number:
                    fill_from(made[buffer.name], seed)
                elif buffer.nbytes:  # device to device: the host's copy would travel once per set
                    cuda.memcpy_dtod(made[buffer.name].address, self.sets[0][buffer.name].address, buffer.nbytes)
        for buffer in buffers:
            if buffer.writable and buffer.data is not None:
                self._pristine[buffer.name] = PlainBuffer(buffer)
                fill_from(self._pristine[buffer.name], seed)

    @property
    def restores(self) -> bool:
        """Whether some buffer is both read and written."""
        return bool(self._pristine)

    def restore(self, count: int) -> None:
        """Queue copies that give the first ``count`` sets the contents of what is read and written back."""
        for chosen in self.sets[:count]:
            for name, held in self._pristine.items():
                cuda.memcpy_dtod_async(chosen[name].address, held.address, held.buffer.nbytes, self._gpu.stream)

    def clear(self) -> None:
        """Poison what the first set has of buffers that begin without contents and are written."""
        for held in self.sets[0].values():
            if not held.buffer.writable or held.buffer.data is not None:
                continue
            if held.buffer.texture is not None:
                held.fill(held.buffer.initial(self._seed))
            else:
                fill_from(held, self._seed)

    def close(self) -> None:
        """Free everything."""
        for held in (*self._pristine.values(), *(h for s in self.sets for h in s.values())):
            held.free()


class BufferPool:
    """The sets of all trials of one measurement.

    Where no outputs are asked for, trials with equal buffers share their sets: what a trial leaves in them is restored
    before the next execution, of whichever trial, as between two executions of one.
    """

    def __init__(self, gpu: Gpu, runs: list[WireRun], plan: TimingPlan) -> None:
        self._gpu = gpu
        self._plan = plan
        keys = [self._key(run) for run in runs]
        with staged("allocate"):
            self._share = 0.6 * gpu.free_bytes() / max(1, len(set(keys)))  # the same, whatever the first ones take
        self._made: dict[Hashable, BufferSets] = {}

    def _key(self, run: WireRun) -> Hashable:
        if self._plan.outputs:
            return id(run)
        described = (
            # Arrays with the same contents are one object, see decode_runs.
            (b.name, b.dtype, b.nbytes, b.writable, b.texture, None if b.data is None else id(b.data))
            for b in _shareable(run)
        )
        return (tuple(described), run.poison_seed)

    def sets(self, run: WireRun) -> BufferSets:
        """The sets for ``run``."""
        key = self._key(run)
        if key not in self._made:
            self._made[key] = BufferSets(self._gpu, run, self._plan, self._share)
        return self._made[key]

    def close(self) -> None:
        """Free everything."""
        for made in self._made.values():
            made.close()


def _shareable(run: WireRun) -> list[WireBuffer]:
    return [b for b in run.buffers if not b.symbol]

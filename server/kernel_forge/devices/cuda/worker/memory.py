"""Device memory for one execution, laid out so that a wrong access shows.

A buffer ends where its mapping ends: the next address faults in hardware. In front of it, up to the mapping's
granularity, lie guard bytes that are checked after the run. Its alignment is 16 bytes, as in the emulator: more
than any vector access needs, less than what would hide an access past the end.
"""

import numpy as np
import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import Array, WireBuffer
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.domain.launch import poison
from kernel_forge.domain.measurement import sampled

ALIGNMENT = 16
BAND = 4096
GUARD_BYTES = (0xA7, 0x5D, 0xC3)
_CHUNK = 1 << 20


class Memory:
    """Where a buffer lies on the device; ``address`` is its first byte."""

    def __init__(self, buffer: WireBuffer, address: int) -> None:
        self.buffer = buffer
        self.address = address

    def fill(self, data: Array) -> None:
        """Set the contents."""
        if self.buffer.nbytes:
            cuda.memcpy_htod(self.address, np.ascontiguousarray(data))

    def contents(self) -> Array:
        """The contents now, as a flat array."""
        data = np.empty(self.buffer.nbytes // self.buffer.dtype.itemsize, self.buffer.dtype.numpy)
        if data.nbytes:
            cuda.memcpy_dtoh(data.view(np.uint8), self.address)
        return data

    def sample(self, most: int) -> Array:
        """The elements that :func:`~kernel_forge.domain.measurement.sampled` chooses, now."""
        size = self.buffer.dtype.itemsize
        chosen = sampled(self.buffer.nbytes // size, most)
        if chosen.step == 1:
            return self.contents()
        first = self.address + chosen.start * size
        data = np.empty(len(range(chosen.start, self.buffer.nbytes // size, chosen.step)), self.buffer.dtype.numpy)
        copy = cuda.Memcpy2D()
        copy.set_src_device(first)
        copy.set_dst_host(data.view(np.uint8))
        copy.src_pitch, copy.dst_pitch = chosen.step * size, size
        copy.width_in_bytes, copy.height = size, len(data)
        copy(aligned=False)
        return data

    def damage(self) -> int | None:
        """Byte offset from the buffer's start of a byte outside it that was changed; None where nothing is known."""
        return None

    def free(self) -> None:
        """Give the memory back."""


class GuardedBuffer(Memory):
    """A buffer with unmapped memory behind it and guard bytes before it (and in the slack of the alignment)."""

    def __init__(self, gpu: Gpu, buffer: WireBuffer, seed: int) -> None:
        self.gpu = gpu
        grain = gpu.library.granularity(gpu.ordinal)
        body = -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        self._mapped = max(grain, -(-(body + BAND) // grain) * grain)
        self._range_size = self._mapped + 2 * grain
        self._range = gpu.library.reserve(self._range_size)
        self._start = self._range + grain
        try:
            gpu.library.map_memory(self._start, self._mapped, gpu.ordinal)
        except CudaError:
            gpu.library.free_range(self._range, self._range_size)
            raise
        super().__init__(buffer, self._start + self._mapped - body)
        self._slack = body - buffer.nbytes
        # One byte in all guards: no value that a kernel writes by chance for more than one byte in 256.
        self._guard = GUARD_BYTES[seed % len(GUARD_BYTES)]
        cuda.memset_d8(self._start, self._guard, self._mapped - body)
        if self._slack:
            cuda.memset_d8(self.address + buffer.nbytes, self._guard, self._slack)

    def damage(self) -> int | None:
        """Byte offset from the buffer's start of the guard byte nearest to it that was changed; None when all are
        intact."""
        before = self._changed(self._start, self._mapped - self._slack - self.buffer.nbytes)
        if len(before):
            return self._start + int(before[-1]) - self.address
        after = self._changed(self.address + self.buffer.nbytes, self._slack)
        return self.buffer.nbytes + int(after[0]) if len(after) else None

    def _changed(self, address: int, nbytes: int) -> Array:
        if not nbytes:
            return np.empty(0, np.intp)
        found = _page_locked(nbytes)
        cuda.memcpy_dtoh(found, address)
        changed = found != self._guard
        return np.flatnonzero(changed) if changed.any() else np.empty(0, np.intp)

    def free(self) -> None:
        """Give the memory back."""
        self.gpu.library.unmap_memory(self._start, self._mapped)
        self.gpu.library.free_range(self._range, self._range_size)


class PlainBuffer(Memory):
    """A buffer of exactly its size from the ordinary allocator: what a sanitizer can watch."""

    def __init__(self, buffer: WireBuffer) -> None:
        self._allocation = cuda.mem_alloc(max(1, buffer.nbytes))
        super().__init__(buffer, int(self._allocation))

    def free(self) -> None:
        """Give the memory back."""
        self._allocation.free()


def page_locked_copy(data: memoryview) -> memoryview:
    """A copy that goes to the device at full speed, in ordinary memory where there is none of that kind left."""
    try:
        copy: Array = cuda.pagelocked_empty(len(data), np.uint8)
    except cuda.Error:
        copy = np.empty(len(data), np.uint8)
    copy[:] = np.frombuffer(data, np.uint8)
    return copy.data


def _page_locked(nbytes: int) -> Array:
    """Host memory that is read into at full speed; the same one at every call."""
    if not _scratch or len(_scratch[0]) < nbytes:
        _scratch[:] = [cuda.pagelocked_empty(nbytes, np.uint8)]
    return _scratch[0][:nbytes]


_scratch: list[Array] = []


def fill_from(held: Memory, seed: int) -> None:
    """Set what the run begins from. Poison, all elements of which are equal, is multiplied on the device."""
    buffer = held.buffer
    if buffer.data is not None or buffer.nbytes <= _CHUNK:
        held.fill(buffer.initial(seed))
        return
    cuda.memcpy_htod(held.address, poison(buffer.dtype, _CHUNK // buffer.dtype.itemsize, seed).view(np.uint8))
    filled = _CHUNK
    while filled < buffer.nbytes:
        more = min(filled, buffer.nbytes - filled)
        cuda.memcpy_dtod(held.address + filled, held.address, more)
        filled += more

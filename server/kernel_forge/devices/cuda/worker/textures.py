"""Textures for one execution: their texels in a CUDA array or in linear memory, and the object that reads them."""

import contextlib

import numpy as np
import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import Array, WireBuffer
from kernel_forge.devices.cuda.worker import texture_library as textures
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.memory import Memory
from kernel_forge.domain.measurement import sampled
from kernel_forge.domain.texture import Memory as Where
from kernel_forge.domain.texture import Texture


class TextureMemory(Memory):
    """A texture: ``address`` is its object, which is what a launch passes."""

    def __init__(self, buffer: WireBuffer, texture: Texture, handle: int) -> None:
        self.texture = texture
        super().__init__(buffer, handle)

    def sample(self, most: int) -> Array:
        """As of any memory, from all of the texels: they lie in no order that is ours."""
        texels = self.contents()
        return texels[sampled(len(texels), most)]


class ArrayTexture(TextureMemory):
    """A texture that reads a CUDA array."""

    def __init__(self, gpu: Gpu, buffer: WireBuffer, texture: Texture) -> None:
        self._library = gpu.library
        self._array = textures.make_array(gpu.library, texture, buffer.dtype)
        try:
            handle = textures.texture_of_array(gpu.library, self._array, texture, buffer.dtype)
        except CudaError:
            textures.free_array(gpu.library, self._array)
            raise
        super().__init__(buffer, texture, handle)

    def fill(self, data: Array) -> None:
        """Set the texels."""
        held = np.ascontiguousarray(data)
        textures.fill_array(self._library, self._array, self.texture, self.buffer.dtype, held.ctypes.data)

    def contents(self) -> Array:
        """The texels now, as a flat array."""
        data = np.empty(self.buffer.nbytes // self.buffer.dtype.itemsize, self.buffer.dtype.numpy)
        textures.read_array(self._library, self._array, self.texture, self.buffer.dtype, data.ctypes.data)
        return data

    def free(self) -> None:
        """Give object and array back."""
        textures.free_texture(self._library, self.address)
        textures.free_array(self._library, self._array)


class LinearTexture(TextureMemory):
    """A texture that reads device memory, for ``tex1Dfetch``: from the ordinary allocator, which aligns it."""

    def __init__(self, gpu: Gpu, buffer: WireBuffer, texture: Texture) -> None:
        self._library = gpu.library
        self._allocation = cuda.mem_alloc(buffer.nbytes)
        try:
            handle = textures.texture_of_memory(gpu.library, int(self._allocation), texture, buffer.dtype)
        except CudaError:
            with contextlib.suppress(cuda.Error):
                self._allocation.free()
            raise
        super().__init__(buffer, texture, handle)

    def fill(self, data: Array) -> None:
        """Set the texels."""
        cuda.memcpy_htod(self._allocation, np.ascontiguousarray(data))

    def contents(self) -> Array:
        """The texels now, as a flat array."""
        data = np.empty(self.buffer.nbytes // self.buffer.dtype.itemsize, self.buffer.dtype.numpy)
        cuda.memcpy_dtoh(data, self._allocation)
        return data

    def free(self) -> None:
        """Give object and memory back."""
        textures.free_texture(self._library, self.address)
        self._allocation.free()


def make_texture(gpu: Gpu, buffer: WireBuffer, texture: Texture) -> TextureMemory:
    """The texture of ``buffer``, not filled yet."""
    made = LinearTexture if texture.sampling.memory is Where.LINEAR else ArrayTexture
    return made(gpu, buffer, texture)

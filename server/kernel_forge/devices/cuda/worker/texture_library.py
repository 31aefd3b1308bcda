"""The part of the CUDA driver API that makes CUDA arrays and texture objects, through :class:`DriverLibrary`.

The structures are those of cuda.h (``CUDA_ARRAY3D_DESCRIPTOR_v2``, ``CUDA_MEMCPY3D_v2``, ``CUDA_RESOURCE_DESC_v1``,
``CUDA_TEXTURE_DESC_v1``); a test has their sizes and offsets.
"""

import ctypes
from collections.abc import Mapping
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

from kernel_forge.devices.cuda.worker.driver_library import DriverLibrary
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.texture import Address, Filter, Read, Sampling, Texture

FORMATS: Mapping[DType, int] = {
    DType.UINT8: 0x01,
    DType.UINT16: 0x02,
    DType.UINT32: 0x03,
    DType.INT8: 0x08,
    DType.INT16: 0x09,
    DType.INT32: 0x0A,
    DType.FLOAT32: 0x20,
}
ADDRESS_MODES: Mapping[Address, int] = {Address.WRAP: 0, Address.CLAMP: 1, Address.MIRROR: 2, Address.BORDER: 3}
FILTER_MODES: Mapping[Filter, int] = {Filter.POINT: 0, Filter.LINEAR: 1}
READ_AS_INTEGER, NORMALIZED_COORDINATES = 0x01, 0x02
_ARRAY_RESOURCE, _LINEAR_RESOURCE = 0, 2
_HOST, _ARRAY = 1, 3


class ArrayDescriptor(ctypes.Structure):
    """Extents in texels; a dimension that is not there is 0."""

    _fields_ = (
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    )


class Copy(ctypes.Structure):
    """A copy between host memory and an array: every extent is at least 1, ``width`` in bytes."""

    _fields_ = (
        *((f"source_{d}", c_size_t) for d in ("x", "y", "z", "level")),
        ("source_type", c_int),
        ("source_host", c_void_p),
        ("source_device", c_uint64),
        ("source_array", c_void_p),
        ("reserved0", c_void_p),
        ("source_pitch", c_size_t),
        ("source_height", c_size_t),
        *((f"target_{d}", c_size_t) for d in ("x", "y", "z", "level")),
        ("target_type", c_int),
        ("target_host", c_void_p),
        ("target_device", c_uint64),
        ("target_array", c_void_p),
        ("reserved1", c_void_p),
        ("target_pitch", c_size_t),
        ("target_height", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    )


class _Linear(ctypes.Structure):
    _fields_ = (("address", c_uint64), ("format", c_int), ("channels", c_uint), ("nbytes", c_size_t))


class _Resource(ctypes.Union):
    _fields_ = (("array", c_void_p), ("linear", _Linear), ("reserved", c_int * 32))


class ResourceDescriptor(ctypes.Structure):
    """Where the texels of a texture lie."""

    _fields_ = (("kind", c_int), ("resource", _Resource), ("flags", c_uint))


class TextureDescriptor(ctypes.Structure):
    """How a texture is read."""

    _fields_ = (
        ("address_modes", c_int * 3),
        ("filter_mode", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("level_filter", c_int),
        ("level_bias", c_float),
        ("least_level", c_float),
        ("most_level", c_float),
        ("border", c_float * 4),
        ("reserved", c_int * 12),
    )


def array_descriptor(texture: Texture, dtype: DType) -> ArrayDescriptor:
    """What ``cuArray3DCreate`` needs for a texture."""
    z, y, x = (0,) * (3 - len(texture.extents)) + texture.extents
    return ArrayDescriptor(x, y, z, FORMATS[dtype], texture.lanes, 0)


def texture_descriptor(sampling: Sampling, dtype: DType, dimensions: int) -> TextureDescriptor:
    """What ``cuTexObjectCreate`` needs of how a texture is read; the border is zero."""
    descriptor = TextureDescriptor()
    # A border in a dimension that a texture does not have counts for half of every filtered fetch (seen on an H200).
    modes = [sampling.address] * dimensions + [Address.CLAMP] * (3 - dimensions)
    descriptor.address_modes[0:3] = [ADDRESS_MODES[m] for m in modes]
    descriptor.filter_mode = FILTER_MODES[sampling.filter]
    as_integer = sampling.read is Read.ELEMENT and not dtype.is_float
    descriptor.flags = as_integer * READ_AS_INTEGER | sampling.normalized * NORMALIZED_COORDINATES
    return descriptor


def make_array(library: DriverLibrary, texture: Texture, dtype: DType) -> int:
    """A CUDA array for the texels of ``texture``."""
    array = c_void_p()
    library.call("cuArray3DCreate_v2", byref(array), byref(array_descriptor(texture, dtype)))
    return array.value or 0


def fill_array(library: DriverLibrary, array: int, texture: Texture, dtype: DType, host: int) -> None:
    """Copy all texels, x fastest, from ``host``, an address of this process."""
    copy = _whole(texture, dtype)
    copy.source_type, copy.source_host = _HOST, host
    copy.source_pitch, copy.source_height = copy.width, copy.height
    copy.target_type, copy.target_array = _ARRAY, array
    library.call("cuMemcpy3D_v2", byref(copy))


def read_array(library: DriverLibrary, array: int, texture: Texture, dtype: DType, host: int) -> None:
    """Copy all texels back."""
    copy = _whole(texture, dtype)
    copy.source_type, copy.source_array = _ARRAY, array
    copy.target_type, copy.target_host = _HOST, host
    copy.target_pitch, copy.target_height = copy.width, copy.height
    library.call("cuMemcpy3D_v2", byref(copy))


def _whole(texture: Texture, dtype: DType) -> Copy:
    z, y, x = (1,) * (3 - len(texture.extents)) + texture.extents
    copy = Copy()
    copy.width, copy.height, copy.depth = x * texture.lanes * dtype.itemsize, y, z
    return copy


def free_array(library: DriverLibrary, array: int) -> None:
    """Free a CUDA array."""
    library.call("cuArrayDestroy", c_void_p(array))


def texture_of_array(library: DriverLibrary, array: int, texture: Texture, dtype: DType) -> int:
    """A texture object that reads a CUDA array."""
    resource = ResourceDescriptor()
    resource.kind, resource.resource.array = _ARRAY_RESOURCE, array
    return _texture(library, resource, texture, dtype)


def texture_of_memory(library: DriverLibrary, address: int, texture: Texture, dtype: DType) -> int:
    """A texture object that reads device memory from ``address``, which ``cuMemAlloc`` gave: it must be aligned."""
    resource = ResourceDescriptor()
    resource.kind = _LINEAR_RESOURCE
    linear = resource.resource.linear
    linear.address, linear.format, linear.channels = address, FORMATS[dtype], texture.lanes
    linear.nbytes = texture.extents[0] * texture.lanes * dtype.itemsize
    return _texture(library, resource, texture, dtype)


def _texture(library: DriverLibrary, resource: ResourceDescriptor, texture: Texture, dtype: DType) -> int:
    made = c_uint64()
    descriptor = texture_descriptor(texture.sampling, dtype, len(texture.extents))
    library.call("cuTexObjectCreate", byref(made), byref(resource), byref(descriptor), None)
    return made.value


def free_texture(library: DriverLibrary, texture: int) -> None:
    """Free a texture object; what it reads stays."""
    library.call("cuTexObjectDestroy", c_uint64(texture))

"""Structures and calls for textures. Sizes and offsets are what gcc gives for cuda.h of CUDA 13.0 on x86-64."""

import ctypes
from typing import Any

import numpy as np
import pytest

from kernel_forge.devices.cuda.worker import texture_library as library
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Sampling, Texture


class Played:
    """Plays :class:`DriverLibrary`: notes the calls with copies of the structures they were given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []

    def call(self, name: str, *args: Any) -> None:
        structures = [a._obj if hasattr(a, "_obj") else a for a in args]
        if name in ("cuArray3DCreate_v2", "cuTexObjectCreate"):
            structures[0].value = 0x50 + len(self.calls)
        copied = [
            type(s).from_buffer_copy(s) if isinstance(s, ctypes.Structure) else getattr(s, "value", s)
            for s in structures
        ]
        self.calls.append((name, copied))


@pytest.mark.parametrize(
    ("structure", "size", "offsets"),
    [
        (
            library.ArrayDescriptor,
            40,
            {"width": 0, "height": 8, "depth": 16, "format": 24, "channels": 28, "flags": 32},
        ),
        (
            library.Copy,
            200,
            {
                "source_x": 0, "source_type": 32, "source_host": 40, "source_device": 48, "source_array": 56,
                "reserved0": 64, "source_pitch": 72, "source_height": 80, "target_x": 88, "target_type": 120,
                "target_host": 128, "target_device": 136, "target_array": 144, "reserved1": 152, "target_pitch": 160,
                "target_height": 168, "width": 176, "height": 184, "depth": 192,
            },
        ),
        (library.ResourceDescriptor, 144, {"kind": 0, "resource": 8, "flags": 136}),
        (
            library.TextureDescriptor,
            104,
            {
                "address_modes": 0, "filter_mode": 12, "flags": 16, "anisotropy": 20, "level_filter": 24,
                "level_bias": 28, "border": 40, "reserved": 56,
            },
        ),
        (library._Linear, 24, {"address": 0, "format": 8, "channels": 12, "nbytes": 16}),
    ],
)  # fmt: skip
def test_layouts(structure: Any, size: int, offsets: dict[str, int]) -> None:
    assert ctypes.sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name in offsets} == offsets


@pytest.mark.parametrize(("extents", "expected"), [((7,), (7, 0, 0)), ((5, 7), (7, 5, 0)), ((3, 5, 7), (7, 5, 3))])
def test_an_array_leaves_out_dimensions_that_are_not_there(extents: tuple[int, ...], expected: tuple[int, ...]) -> None:
    made = library.array_descriptor(Texture(extents, 4), DType.UINT16)
    assert (made.width, made.height, made.depth) == expected
    assert (made.format, made.channels, made.flags) == (0x02, 4, 0)


@pytest.mark.parametrize(
    ("sampling", "dtype", "flags"),
    [
        (Sampling(), DType.FLOAT32, 0),
        (Sampling(), DType.INT32, 1),
        (Sampling(read=Read.NORMALIZED), DType.UINT8, 0),
        (Sampling(normalized=True), DType.UINT8, 3),
        (Sampling(normalized=True), DType.FLOAT32, 2),
    ],
)
def test_flags_of_a_texture(sampling: Sampling, dtype: DType, flags: int) -> None:
    # CU_TRSF_READ_AS_INTEGER is 1, CU_TRSF_NORMALIZED_COORDINATES 2.
    assert library.texture_descriptor(sampling, dtype, 2).flags == flags


def test_modes_of_a_texture() -> None:
    made = library.texture_descriptor(Sampling(Filter.LINEAR, Address.BORDER), DType.FLOAT32, 2)
    # The third dimension is clamped, as it is none of the texture's.
    assert list(made.address_modes) == [3, 3, 1] and made.filter_mode == 1
    assert list(made.border) == [0, 0, 0, 0] and list(made.reserved) == [0] * 12


def test_a_texture_of_an_array() -> None:
    driver: Any = Played()
    texture = Texture((5, 7), 2)
    texels = np.zeros(70, np.float32)
    array = library.make_array(driver, texture, DType.FLOAT32)
    library.fill_array(driver, array, texture, DType.FLOAT32, texels.ctypes.data)
    handle = library.texture_of_array(driver, array, texture, DType.FLOAT32)
    library.free_texture(driver, handle)
    library.free_array(driver, array)
    names = [name for name, _ in driver.calls]
    assert names == ["cuArray3DCreate_v2", "cuMemcpy3D_v2", "cuTexObjectCreate", "cuTexObjectDestroy", "cuArrayDestroy"]
    (copy,) = driver.calls[1][1]
    # A row is 7 texels of two floats; host memory is type 1, an array type 3.
    assert (copy.width, copy.height, copy.depth) == (56, 5, 1)
    assert (copy.source_type, copy.source_host, copy.source_pitch, copy.source_height) == (1, texels.ctypes.data, 56, 5)
    assert (copy.target_type, copy.target_array) == (3, array)
    _, resource, _, view = driver.calls[2][1]
    assert (resource.kind, resource.resource.array, resource.flags, view) == (0, array, 0, None)
    assert driver.calls[3][1] == [handle] and driver.calls[4][1] == [array]


def test_a_texture_of_linear_memory() -> None:
    driver: Any = Played()
    texture = Texture((100,), 4, Sampling(memory=Memory.LINEAR))
    library.texture_of_memory(driver, 0x7F00, texture, DType.INT16)
    _, resource, descriptor, _ = driver.calls[0][1]
    linear = resource.resource.linear
    assert (resource.kind, linear.address, linear.format, linear.channels, linear.nbytes) == (2, 0x7F00, 9, 4, 800)
    assert descriptor.flags == 1

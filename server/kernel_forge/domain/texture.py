"""How a kernel reads a texture: what its texels are taken for and what lies between and beyond them.

The words are CUDA's (CUDA C++ Programming Guide, texture memory and texture fetching).
"""

from dataclasses import dataclass
from enum import Enum

from kernel_forge.domain.dtypes import DType


class Filter(Enum):
    """What a coordinate between texels gives: the texel it lies in, or a blend of the nearest ones."""

    POINT = "point"
    LINEAR = "linear"


class Address(Enum):
    """What a coordinate outside the texture gives: the edge, zero, or the texture repeated or mirrored."""

    CLAMP = "clamp"
    BORDER = "border"
    WRAP = "wrap"
    MIRROR = "mirror"


class Read(Enum):
    """What a texel is to the kernel: its element, or an integer scaled to a float from 0 (or -1) to 1."""

    ELEMENT = "element"
    NORMALIZED = "normalized"


class Memory(Enum):
    """Where the texels lie: in a CUDA array (``tex1D``, ``tex2D``, ``tex3D``) or in linear memory (``tex1Dfetch``)."""

    ARRAY = "array"
    LINEAR = "linear"


SCALED = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.UINT16})
"""Elements that can be read as normalized floats."""
ELEMENTS = SCALED | {DType.INT32, DType.UINT32, DType.FLOAT32}
"""Elements that a texture can have."""
LANES = (1, 2, 4)
MAX_EXTENTS = {1: (131072,), 2: (65536, 131072), 3: (16384, 16384, 16384)}
"""Largest extents of an array by the number of dimensions, outermost first, on every GPU since Pascal."""
MAX_LINEAR = 1 << 27
"""Most texels in linear memory on every GPU."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How fetches read a texture.

    Attributes:
        filter: linear only where fetches give floats.
        address: for every dimension alike; wrap and mirror only with normalized coordinates.
        normalized: whether coordinates run from 0 to 1 over a dimension instead of from 0 to its extent.
        read: normalized only for integers of 8 and 16 bits.
        memory: linear memory has one dimension, neither filter nor address.
    """

    filter: Filter = Filter.POINT
    address: Address = Address.CLAMP
    normalized: bool = False
    read: Read = Read.ELEMENT
    memory: Memory = Memory.ARRAY

    def gives(self, dtype: DType) -> DType:
        """What a fetch from texels of ``dtype`` elements gives."""
        return DType.FLOAT32 if self.read is Read.NORMALIZED else dtype


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture with numbers: ``extents`` in texels, outermost first (x is the last), ``lanes`` elements a texel."""

    extents: tuple[int, ...]
    lanes: int = 1
    sampling: Sampling = Sampling()

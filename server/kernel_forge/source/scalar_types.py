"""From a C++ type's spelling to an element type and the number of lanes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernel_forge.domain.dtypes import DType

_SCALARS: Mapping[str, DType] = {
    "bool": DType.BOOL,
    "char": DType.INT8,
    "short": DType.INT16,
    "int": DType.INT32,
    "long": DType.INT64,  # LP64, as on Linux and in device code compiled for it
    "long long": DType.INT64,
    "signed char": DType.INT8,
    "unsigned char": DType.UINT8,
    "unsigned short": DType.UINT16,
    "unsigned int": DType.UINT32,
    "unsigned long": DType.UINT64,
    "unsigned long long": DType.UINT64,
    "float": DType.FLOAT32,
    "double": DType.FLOAT64,
    "half": DType.FLOAT16,
    "__half": DType.FLOAT16,
    "__half_raw": DType.FLOAT16,
    "_Float16": DType.FLOAT16,
    "nv_half": DType.FLOAT16,
    "__nv_bfloat16": DType.BFLOAT16,
    "nv_bfloat16": DType.BFLOAT16,
    "__nv_bfloat16_raw": DType.BFLOAT16,
    "__bf16": DType.BFLOAT16,
    "size_t": DType.UINT64,
    "ssize_t": DType.INT64,
    "ptrdiff_t": DType.INT64,
    "intptr_t": DType.INT64,
    "uintptr_t": DType.UINT64,
    "intmax_t": DType.INT64,
    "uintmax_t": DType.UINT64,
    "clock_t": DType.INT64,
    "cufftReal": DType.FLOAT32,
    "cufftDoubleReal": DType.FLOAT64,
    "uchar": DType.UINT8,
    "uint": DType.UINT32,
    "ushort": DType.UINT16,
    "ulong": DType.UINT64,
    "u_char": DType.UINT8,
    "u_int": DType.UINT32,
    **{f"{sign}int{bits}_t": DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_VECTORS: Mapping[str, tuple[DType, int]] = {
    **{
        f"{name}{lanes}": (dtype, lanes)
        for lanes in (1, 2, 3, 4)
        for name, dtype in (
            ("char", DType.INT8),
            ("uchar", DType.UINT8),
            ("short", DType.INT16),
            ("ushort", DType.UINT16),
            ("int", DType.INT32),
            ("uint", DType.UINT32),
            ("long", DType.INT64),
            ("ulong", DType.UINT64),
            ("longlong", DType.INT64),
            ("ulonglong", DType.UINT64),
            ("float", DType.FLOAT32),
            ("double", DType.FLOAT64),
        )
    },
    **dict.fromkeys(("half2", "__half2", "nv_half2", "__half2_raw"), (DType.FLOAT16, 2)),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), (DType.BFLOAT16, 2)),
    "dim3": (DType.UINT32, 3),
    "cuFloatComplex": (DType.FLOAT32, 2),
    "cuComplex": (DType.FLOAT32, 2),
    "cuDoubleComplex": (DType.FLOAT64, 2),
    "cufftComplex": (DType.FLOAT32, 2),
    "cufftDoubleComplex": (DType.FLOAT64, 2),
}
_SIGN_WORDS = ("signed", "unsigned", "__signed__")
_SIZE_WORDS = ("char", "short", "int", "long", "__int64")
_IGNORED = frozenset(("const", "volatile", "typename", "struct", "std", "cuda", "mutable", "register"))
_WORD = re.compile(r"\w+|<|\S")
MAX_ALIASES = 32
"""Longest chain of aliases that is followed (a cycle ends there too)."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """What one element is, aliases resolved.

    Attributes:
        spelling: the type's own name in the end, one spelling per type.
        dtype: None where there is no counterpart.
        lanes: scalars per element.
        pointers: how many ``*`` the aliases hid.
        is_const: whether an alias added ``const`` to the element.
    """

    spelling: str
    dtype: DType | None
    lanes: int = 1
    pointers: int = 0
    is_const: bool = False


def element_type(spelling: str, aliases: Mapping[str, str]) -> ElementType:
    """The element type of ``spelling`` through the file's aliases.

    ``const``, ``volatile``, ``std::`` and a leading ``::`` do not matter.
    """
    pointers = 0
    is_const = False
    name = canonical(spelling)
    for _ in range(MAX_ALIASES):
        if name in _SCALARS:
            return ElementType(name, _SCALARS[name], 1, pointers, is_const)
        if name in _VECTORS:
            dtype, lanes = _VECTORS[name]
            return ElementType(name, dtype, lanes, pointers, is_const)
        if name not in aliases:
            break
        target = aliases[name]
        pointers += target.count("*")
        is_const = is_const or "const" in _WORD.findall(target.partition("*")[0])
        name = canonical(target.replace("*", " "))
    return ElementType(name, None, 1, pointers, is_const)


@lru_cache(maxsize=4096)
def canonical(spelling: str) -> str:
    """One spelling per type: ``long unsigned int const`` becomes ``unsigned long``."""
    words = [word for word in _WORD.findall(spelling) if word not in _IGNORED and word != ":"]
    if not any(word in _SIGN_WORDS or word in ("short", "long") for word in words):
        return " ".join(words)
    if any(word not in _SIGN_WORDS and word not in _SIZE_WORDS for word in words):
        return " ".join(words)
    if "char" in words:
        return "unsigned char" if "unsigned" in words else "signed char"
    sign = "unsigned " if "unsigned" in words else ""
    if "short" in words:
        return f"{sign}short"
    if words.count("long") >= 2 or "__int64" in words:
        return f"{sign}long long"
    return f"{sign}{'long' if 'long' in words else 'int'}"

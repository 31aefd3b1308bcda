"""What a tunable may be called, and what values it may have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_forge.spec.problems import BlockText

NO_VALUE = "a tunable's value is a number, true or false"
_KEYWORDS = frozenset(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete do
    double else enum explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not nullptr operator or private protected public register return short signed sizeof static static_assert
    static_cast const_cast dynamic_cast reinterpret_cast struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile while xor
    blockDim blockIdx gridDim threadIdx warpSize where""".split()
)
"""Words of CUDA C++, which no macro and no template parameter can be called; ``where`` is the table's own."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Names that tunables cannot have, as others have them: of sizes, of arguments and parameters, of kernels."""

    sizes: tuple[str, ...]
    arguments: tuple[str, ...]
    kernels: tuple[str, ...]


def is_name_free(block: BlockText, name: str, taken: Taken) -> bool:
    """Whether a tunable can have ``name``; if not, that is noted."""
    other = "give the tunable another name"
    if not (name.isidentifier() and name.isascii()):
        why = f'"{name}" is no name that C++ code can have; {other}'
    elif name in _KEYWORDS:
        why = f"{name} is a word of CUDA C++; {other}"
    elif name in taken.sizes:
        why = f"{name} is a size as well; {other}"
    elif name in taken.arguments:
        new = name.upper() if name != name.upper() else f"{name}_VALUE"
        why = f'{name} is an argument of the kernel as well; {other}, and pass that: [args] {name} = "{new}"'
    elif name in taken.kernels:
        why = f"{name} is a kernel as well; {other}"
    else:
        return True
    block.add("KF112", why, ("tune", name), key=True)
    return False


def usable_values(block: BlockText, name: str, written: Sequence[object]) -> tuple[int | float | bool, ...] | None:
    """The values of a tunable; None where one cannot be used, or there is none, which is noted."""
    values: list[int | float | bool] = []
    is_usable = True
    for place, value in enumerate(written):
        path = ("tune", name, place)
        if not isinstance(value, int | float):
            block.add("KF112", f"{name}: {NO_VALUE}", path)
        elif not math.isfinite(value):
            block.add("KF112", f"{name}: {value} is no value that code can have", path)
        elif value in values:
            same = next(v for v in values if v == value)
            shown = _text(value) if _text(same) == _text(value) else f"{_text(same)}, which {_text(value)} is,"
            block.add("KF112", f"{name} has the value {shown} twice; leave one out", path)
        else:
            values.append(value)
            continue
        is_usable = False
    return tuple(values) if is_usable and values else None


def _text(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

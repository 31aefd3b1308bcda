"""Gaps of a drafted block: marked places that the code does not settle and a person must fill in."""

from collections.abc import Iterator
from typing import Any

from kernel_forge.spec.toml_document import Path

REFERENCE = "<fill in the reference>"
SHAPE = "<fill in the shape>"
VALUE = "<fill in the value>"
TYPE = "<fill in the type>"
CONTENTS = "<fill in the contents>"
GRID = "<fill in the grid>"
BLOCK = "<fill in the block>"
SHARED = "<fill in the bytes>"
MARK = "<fill in "


def template_gap(name: str) -> str:
    """The gap of a template argument."""
    return f"{MARK}{name}>"


def find_gaps(data: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every gap in a block's values with what is to be said of it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from find_gaps(value, (*path, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from find_gaps(value, (*path, i))
    elif isinstance(data, str) and MARK in data:
        yield path, _message(path, data)


def _message(path: Path, text: str) -> str:
    names = [str(p) for p in path if isinstance(p, str)]
    match names:
        case ["reference", *output]:
            of = output[0] if output else "the output"
            return f'fill in the reference: a NumPy expression for {of}, "file.py:function" or "kernel:name"'
        case ["kernel"] | ["launch", "kernel"]:
            return f"fill in the template argument: {text} stands for it"
        case ["args", name, "shape"]:
            return f'fill in the shape of {name}: its extents in scalars, outermost first, such as ["rows", "cols"]'
        case ["args", name, "dtype"]:
            return f"fill in the type of {name}'s elements: float, half, int32, ..."
        case ["args", name, "init"]:
            return f'fill in the contents of {name}, such as {{ kind = "integers", low = 0, high = 64 }}'
        case ["args", name]:
            return f"fill in the value of {name}: a number or an expression over the sizes"
        case ["launch", "shared"]:
            return "fill in shared: bytes of dynamic shared memory"
        case ["launch", key]:
            return f"fill in the {key} of the launch, such as {key} = {'256' if key == 'block' else 'cdiv(n, 256)'!r}"
        case _:
            return "fill in this gap"

"""What can be written at a place in a spec block, and what it means: for hover and completion."""

from dataclasses import dataclass

from kernel_forge.domain.expression import FUNCTIONS
from kernel_forge.domain.text import Position
from kernel_forge.source import Kernel
from kernel_forge.spec.block_model import INIT_NAMES, ROLES, model_at

_HEADERS = {"args": "args", "launch": "launch", "tune": "tune", "tolerance": "tolerance"}


@dataclass(frozen=True, slots=True)
class Completion:
    """A word with its explanation; ``text`` is what is inserted."""

    label: str
    text: str
    detail: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a position in the TOML is: the table around it, the key on its line, and whether after the ``=``."""

    table: tuple[str, ...]
    key: str
    in_value: bool
    word: str


def place_at(toml: str, position: Position) -> Place:
    """The place of ``position``, also in text that is not TOML yet."""
    lines = toml.split("\n")
    table: tuple[str, ...] = ()
    for line in lines[: position.line + 1]:
        stripped = line.strip()
        if stripped.startswith("[") and stripped.endswith("]") and "=" not in stripped:
            table = tuple(part.strip() for part in stripped.strip("[]").split("."))
    text = lines[position.line] if position.line < len(lines) else ""
    column = min(position.column, len(text))
    key, equals, _ = text[:column].partition("=")
    start = column
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    end = column
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return Place(table, key.strip(), bool(equals), text[start:end])


def describe(toml: str, position: Position) -> str | None:
    """What the word at ``position`` means, in Markdown."""
    place = place_at(toml, position)
    if place.key.startswith("[") and not place.in_value:
        text = describe_key((place.word,))
        return f"**{place.word}**: {text}" if text is not None else None
    for path in ((*place.table, place.word), (*place.table, place.key, place.word)):
        text = describe_key(path)
        if text is not None:
            return f"**{place.word}**: {text}"
    if place.table == ("args",) and place.key and place.in_value:
        text = describe_key(("args", place.key, place.word)) or describe_key(("args", place.key, "texture", place.word))
        return f"**{place.word}**: {text}" if text is not None else None
    if place.word in FUNCTIONS and place.in_value:
        return f"**{place.word}**: function for shapes, launches and constraints"
    return None


def describe_key(path: tuple[str, ...]) -> str | None:
    """The description of the key at ``path``, such as ``("launch", "grid")``."""
    model = model_at(path[:-1])
    field = model.model_fields.get(path[-1]) if model is not None and path else None
    return field.description if field is not None else None


def complete(toml: str, position: Position, kernels: tuple[Kernel, ...]) -> tuple[Completion, ...]:
    """What fits at ``position``."""
    place = place_at(toml, position)
    if place.in_value:
        return _values(place, kernels, toml)
    if place.table == ("args",):
        return _arguments(kernels, toml)
    model = model_at(place.table)
    if model is None:
        return ()
    keys = [
        Completion(name, f"{name} = ", field.description or "")
        for name, field in model.model_fields.items()
        if name not in _HEADERS or not place.table
    ]
    if not place.table:
        keys = [k for k in keys if k.label not in _HEADERS]
        keys += [Completion(f"[{name}]", f"[{name}]", describe_key((name,)) or "") for name in _HEADERS]
    return tuple(keys)


def _arguments(kernels: tuple[Kernel, ...], toml: str) -> tuple[Completion, ...]:
    found = []
    for kernel in _named(kernels, toml):
        for param in kernel.params:
            text = f'{param.name} = {{ shape = ["n"] }}' if param.is_pointer else f"{param.name} = 1"
            if param.is_texture:
                text = f'{param.name} = {{ shape = ["h", "w"], dtype = "float" }}'
            found.append(Completion(param.name, text, param.type_text))
    return tuple(found)


def _named(kernels: tuple[Kernel, ...], toml: str) -> list[Kernel]:
    named = [k for k in kernels if f'"{k.name}' in toml]
    return named or list(kernels)


def _values(place: Place, kernels: tuple[Kernel, ...], toml: str) -> tuple[Completion, ...]:
    if place.key == "kernel":
        return tuple(Completion(k.name, k.name, "kernel of this file") for k in kernels)
    if place.table == ("args",):
        keys = [
            Completion(n, f"{n} = ", describe_key(("args", "x", n)) or "")
            for n in ("shape", "role", "init", "value", "texture")
        ]
        roles = [Completion(r, r, "role") for r in ROLES]
        return (*keys, *roles, *(Completion(i, i, "init") for i in INIT_NAMES))
    params = [Completion(p.name, p.name, p.type_text) for k in _named(kernels, toml) for p in k.params]
    if place.key == "reference":
        return tuple(params)
    functions = [Completion(f, f, "function for shapes, launches and constraints") for f in FUNCTIONS]
    return (*params, *functions)

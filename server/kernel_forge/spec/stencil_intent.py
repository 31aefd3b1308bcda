"""Reading stencils over the inside of an array off a body; see :mod:`.intent` for what is asked of a reader."""

import re

from kernel_forge.spec.body_reading import translate
from kernel_forge.spec.brackets import closing
from kernel_forge.spec.index_polynomial import Polynomial
from kernel_forge.spec.intent import Reading, Signature, coordinates, cover
from kernel_forge.spec.kernel_code import KernelCode, accesses
from kernel_forge.spec.numpy_expression import python_name

Axes = dict[str, tuple[Polynomial, str]]
"""Axis of the grid -> (place along it, extent)."""


def read_stencil(code: KernelCode, signature: Signature) -> Reading | None:
    """out[i] = f(in[i - 1], in[i], in[i + 1], ...) on the inside; the rim stays as it was."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or len(signature.sizes) not in (1, 2) or code.loops:
        return None
    output, source = signature.outputs[0], signature.inputs[0]
    if len(code.stores) != 1 or code.stores[0].place.array != output or code.stores[0].operator:
        return None
    store = code.stores[0]
    there = code.index(store.place.indices[0])
    if there is None or "__shared__" in code.text:
        return None
    if len(signature.sizes) == 1:
        axes: Axes = {"x": (there, signature.sizes[0])}
        stride = None
    else:
        split = coordinates(code, there, signature.sizes)
        if split is None:
            return None
        stride = split[2]
        axes = {"y": (split[0], next(s for s in signature.sizes if s != stride)), "x": (split[1], stride)}
    rims = _rims(code, axes)
    if rims is None:
        return None
    value = code.expand(store.value)
    slices: list[str] = []
    while (access := next(accesses(value, source), None)) is not None:
        place = code.index(access.indices[0])
        if place is None:
            return None
        away, steps = place.plus(there, -1), {}
        if stride is not None:
            row, away = away.split(stride)
            steps["y"] = row.constant
        steps["x"] = away.constant
        made = [_slice(rims[a], s) for a in axes if (s := steps[a]) is not None and abs(s) <= rims[a]]
        if len(made) != len(axes):
            return None
        value = f"{value[: access.start]}slice{len(slices)}_{value[access.end :]}"
        slices.append(f"{python_name(source)}[{', '.join(made)}]")
    expression = translate(value, "threadIdx", []) if slices and output not in re.findall(r"\w+", value) else None
    if expression is None:
        return None
    for i, text in enumerate(slices):
        expression = expression.replace(f"slice{i}_", text)
    return _reading(code, expression, output, source, axes, rims)


def _slice(rim: int, step: int) -> str:
    return f"{rim + step or ''}:{step - rim or ''}"


def _rims(code: KernelCode, axes: Axes) -> dict[str, int] | None:
    """How many elements at either end of each axis are left out, where the conditions say that and nothing else."""
    found: dict[tuple[str, str], int] = {}
    text = code.text
    if "?" in text or re.search(r"\b(?:else|while|do|switch|goto)\b", text):
        return None
    for match in re.finditer(r"\bif\s*(?=\()", text):
        end = closing(text, match.end())
        if end is None:
            return None
        leaves = re.match(r"\s*\{?\s*return\b", text[end + 1 :]) is not None
        for part in re.split(r"\|\|" if leaves else "&&", text[match.end() + 1 : end]):
            sides = re.fullmatch(r"\(?([^<>=!&|]+)(<=|>=|<|>)([^<>=!&|]+?)\)?", part.strip())
            one, two = (code.index(sides[1]), code.index(sides[3])) if sides is not None else (None, None)
            if sides is None or one is None or two is None:
                return None
            low, high = (one, two) if "<" in sides[2] else (two, one)
            is_strict = "=" not in sides[2]
            if leaves:
                low, high, is_strict = high, low, not is_strict
            room = high.plus(low, -1).plus(Polynomial.of([((), 1 if is_strict else 0)]), -1)  # what must be >= 0
            for axis, (place, size) in axes.items():
                below = room.plus(place, -1).constant
                above = room.plus(place).plus(Polynomial.of([((size,), 1)]), -1).constant
                if below is not None:
                    found[axis, "low"] = -below
                elif above is not None:
                    found[axis, "high"] = -1 - above
                else:
                    continue
                break
            else:
                return None
    rims = {a: found[a, "low"] for a in axes if found.get((a, "low")) == found.get((a, "high"), -1)}
    return rims if len(rims) == len(axes) and all(r >= 1 for r in rims.values()) else None


def _reading(
    code: KernelCode, expression: str, output: str, source: str, axes: Axes, rims: dict[str, int]
) -> Reading | None:
    extents = {axis: size for axis, (_, size) in axes.items()}
    grid = cover({axis: place for axis, (place, _) in axes.items()}, extents, code)
    if grid is None:
        return None
    name, shape = python_name(output), tuple(extents.values())
    if len(axes) == 1:
        rim = rims["x"]
        value = f"np.concatenate([{name}[:{rim}], {expression}, {name}[-{rim}:]])"
    else:
        inner = ", ".join(f"{extents[a]} - {2 * rims[a]}" for a in axes)
        width = ", ".join(f"({rims[a]}, {rims[a]})" for a in axes)
        value = f"np.where(np.pad(np.ones(({inner})), ({width})) > 0, np.pad({expression}, ({width})), {name})"
    where = tuple(f"{extents[a]} >= {2 * rims[a]}" for a in axes)
    return Reading({output: value}, {source: shape, output: shape}, grid, {output: "inout"}, where=where)

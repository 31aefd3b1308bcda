"""What a kernel is plainly meant to compute, read off its body: products of matrices and transposes.

Each reader recognises one well-known computation and checks all that distinguishes it from its relatives: the layout
by the strides, the sizes by the strides and loops, the operation by everything that touches the accumulator. What is
not sure gives None. (:mod:`.row_intent` has reductions and what is built on them, :mod:`.scatter_intent` atomics,
scans and stencils.)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.spec.brackets import factors
from kernel_forge.spec.index_polynomial import Polynomial, is_thread_index
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.numpy_expression import python_name

_FREE_CALLS = frozenset({"__syncthreads", "__syncwarp", "fmaf", "fma", "__fmaf_rn", "min", "dim3", "__ldg"})
_ZERO = r"(?:\(\s*\w+\s*\)\s*)?0(?:\.0*)?f?|\w+\(0(?:\.0*)?f?\)"


@dataclass(frozen=True)
class Reading:
    """What a draft can say.

    Attributes:
        references: output -> NumPy expression.
        shapes: pointer -> extents.
        axes: axis of the grid -> (extent to cover, threads that cover it: a name, a number, or None where free).
        roles, inits: where they are not the usual ones; ``inits`` as TOML.
        where: constraints on the sizes.
        largest: size -> the largest value that a case may give it.
    """

    references: Mapping[str, str]
    shapes: Mapping[str, tuple[str, ...]]
    axes: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    inits: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    largest: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Signature:
    """The parameters by what they seem to be."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    sizes: tuple[str, ...]
    floats: frozenset[str]  # pointers to floats
    unsigned_bytes: frozenset[str]
    values: tuple[str, ...] = ()  # scalars that are no sizes


def coordinates(
    code: KernelCode, index: Polynomial, sizes: tuple[str, ...]
) -> tuple[Polynomial, Polynomial, str] | None:
    """(row, column, stride) of an index ``row * stride + column``; None where it is not plainly that."""
    found = []
    for size in sizes:
        row, column = index.split(size)
        if row.terms and column.terms and size not in row.atoms:
            found.append((row, column, size))
    return found[0] if len(found) == 1 else None


def outer(code: KernelCode, index: Polynomial) -> Polynomial:
    """The part of an index that tells blocks apart."""
    return index.part(code.is_outer)


def flat_coordinates(code: KernelCode, place: str, sizes: tuple[str, ...]) -> tuple[Polynomial, Polynomial, str] | None:
    """Row and column of a store, also where they are a quotient and a remainder of its index."""
    index = code.index(place)
    if index is None:
        return None
    for size in sizes:
        row, column = (f"{what}({index}, 1 {size})" for what in ("quotient", "remainder"))
        text = {a for value in code.locals.values() if (p := code.index(value)) is not None for a in p.atoms}
        if row in text and column in text:
            return Polynomial.of([((row,), 1)]), Polynomial.of([((column,), 1)]), size
    return coordinates(code, index, sizes)


def read_product(code: KernelCode, signature: Signature) -> Reading | None:
    """C = A @ B, either or both transposed, with a scale and an addend where they are written as usual."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 2 or not code.calls() <= _FREE_CALLS:
        return None
    output = signature.outputs[0]
    stores = [s for s in code.stores if s.place.array == output]
    added = re.findall(r"(\w+)\s*\+=\s*([^;]*\][^;]*);", code.text)
    sums = [(n, *sides) for n, v in added if len(sides := factors(v)) == 2 and all(s.endswith("]") for s in sides)]
    if len(sums) != len(added):
        return None
    sums += re.findall(
        r"(\w+)\s*=\s*(?:fmaf?|__fmaf_rn)\s*\(\s*([^;,]+?\])\s*,\s*([^;,]+?\])\s*,\s*\1\s*\)\s*;", code.text
    )
    if len(stores) != 1 or stores[0].operator or len(sums) != 1 or len(stores[0].place.indices) != 1:
        return None
    total = sums[0][0]
    begun = [a for a in code.assignments(total) if not a.startswith("+=") and "fma" not in a]
    if len(begun) != 1 or not re.fullmatch(rf"=\s*(?:{_ZERO})", begun[0].strip()):
        return None
    place = flat_coordinates(code, stores[0].place.indices[0], signature.sizes)
    if place is None:
        return None
    row, column, stride = place
    texts, shapes, inner, rows_are = {}, {}, set(), set()
    for name in signature.inputs:
        operand = _operand(code, name, outer(code, row), outer(code, column), signature.sizes)
        if operand is None:
            return None
        first, second, size = operand
        kinds = {first, second}
        own = "rows" if kinds == {"rows", "terms"} else "columns" if kinds == {"columns", "terms"} else ""
        if not own or own in texts:
            return None
        straight = second == ("terms" if own == "rows" else "columns")
        texts[own] = python_name(name) + ("" if straight else ".T")
        shapes[name] = (first, second)
        if second == "terms":
            inner.add(size)
        elif second == "rows":
            rows_are.add(size)
        elif size != stride:
            return None
    names = _names(code, signature.sizes, stride, inner, rows_are)
    if names is None or not _adds_all(code, names["terms"]) or set(texts) != {"rows", "columns"}:
        return None
    value = _finished(stores[0].value, total, f"({texts['rows']} @ {texts['columns']})", output, signature.values, code)
    if value is None:
        return None
    places = {name: (names[a], names[b]) for name, (a, b) in shapes.items()} | {output: (names["rows"], stride)}
    axes = cover({"y": row, "x": column}, {"y": names["rows"], "x": stride}, code)
    return None if axes is None else Reading({output: value}, places, axes)


def _operand(
    code: KernelCode, name: str, rows: Polynomial, columns: Polynomial, sizes: tuple[str, ...]
) -> tuple[str, str, str] | None:
    """What the two dimensions of an operand run over (rows or columns of the result, or the terms), and its stride."""
    found = set()
    for access in code.loads(name):
        index = code.index(access.indices[0]) if len(access.indices) == 1 else None
        split = coordinates(code, index, sizes) if index is not None else None
        if split is None:
            return None
        kinds = []
        for part in split[:2]:
            own = outer(code, part)
            kinds.append("terms" if not own.terms else "rows" if own == rows else "columns" if own == columns else "")
        found.add((kinds[0], kinds[1], split[2]))
    return found.pop() if len(found) == 1 else None


def _names(
    code: KernelCode, sizes: tuple[str, ...], columns: str, inner: set[str], rows_are: set[str]
) -> dict[str, str] | None:
    """The sizes of rows, columns and terms; one size may be all three (square matrices)."""
    if len(inner) > 1 or len(rows_are) > 1:
        return None
    if len(sizes) == 1:
        return dict.fromkeys(("rows", "columns", "terms"), sizes[0])
    if len(sizes) != 3:
        return None
    terms, rows = next(iter(inner), None), next(iter(rows_are), None)
    left = [s for s in sizes if s not in (columns, terms, rows)]
    terms, rows = terms or (left.pop() if left and rows else None), rows or (left.pop() if left and terms else None)
    if terms is None or rows is None or len({rows, columns, terms}) != 3:
        return None
    return {"rows": rows, "columns": columns, "terms": terms}


def _adds_all(code: KernelCode, terms: str) -> bool:
    """Whether one loop goes over all terms, or over all tiles of them, and any other over a tile."""
    over = [loop for loop in code.loops if re.search(rf"\b{terms}\b", code.expand(loop.condition))]
    if len(over) != 1 or any(loop.start != "0" for loop in code.loops):
        return False
    bound = re.sub(r"[\s()]", "", code.expand(over[0].condition)).removeprefix(f"{over[0].name}<")
    tile = r"(?:[A-Za-z_]\w*|8|16|32|64|128)"
    tiles = rf"{terms}(?:\+[A-Za-z_]\w*-1|\+\d+)?/{tile}|[A-Za-z_]*(?i:div|ceil)[A-Za-z_]*{terms},\w+"
    return bound == terms or ("__shared__" in code.text and re.fullmatch(tiles, bound) is not None)


def _finished(
    value: str, total: str, product: str, output: str, values: tuple[str, ...], code: KernelCode
) -> str | None:
    """The stored value: the total, scaled, or added to a scaled old value."""
    text = re.sub(r"\s+", "", value)
    scale = "|".join(map(re.escape, values)) or "(?!)"
    old = rf"{re.escape(output)}\[[^\]]*\]"
    if text in (total, f"({total})"):
        return product[1:-1]
    match = re.fullmatch(
        rf"(?:({scale})\*{total}|{total}\*({scale}))(?:\+(?:({scale})\*{old}|{old}\*({scale})))?", text
    )
    if match is None:
        return None
    first, second = match[1] or match[2], match[3] or match[4]
    return f"{first} * {product}" + (f" + {second} * {output}" if second else "")


def cover(
    places: Mapping[str, Polynomial], extents: Mapping[str, str], code: KernelCode
) -> dict[str, tuple[str, str | None]] | None:
    """How a grid covers extents: by which axis, with how many threads a block; None where that is not plain."""
    found: dict[str, tuple[str, str | None]] = {}
    for key, place in places.items():
        text = str(place)
        inside = re.fullmatch(r"1 (quotient|remainder)\((.*), 1 \w+\)", text)
        if inside is not None:
            found["x"] = (" * ".join(dict.fromkeys(extents.values())), None)
            if len(set(extents.values())) == 1:
                found["x"] = (" * ".join(extents.values()), None)
            continue
        for loop in code.loops:  # for (row = blockIdx.x; ...; row += gridDim.x)
            start = code.index(loop.start)
            if str(place) == f"1 {loop.name}" and start is not None:
                place = start
        axis = {a.split(".")[1] for a in place.atoms if a.startswith("blockIdx.")}
        terms = [m for m, _ in place.terms if any(a.startswith("blockIdx.") for a in m)]
        factors = [f for m, f in place.terms if any(a.startswith("blockIdx.") for a in m)]
        if len(axis) != 1 or len(terms) != 1:
            return None
        name = axis.pop()
        if not is_thread_index(place, name) and str(place) != f"1 blockIdx.{name}":
            return None
        others = [a for a in terms[0] if not a.startswith("blockIdx.")]
        if name in found or len(others) > 1 or (others and factors[0] != 1):
            return None
        wide = others[0] if others else str(factors[0])
        found[name] = (extents[key], None if wide.startswith("blockDim") else wide)
    return found


def read_transpose(code: KernelCode, signature: Signature) -> Reading | None:
    """out[c][r] = in[r][c], directly or through a tile of shared memory."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or len(signature.sizes) not in (1, 2):
        return None
    output, source = signature.outputs[0], signature.inputs[0]
    if not code.calls() <= _FREE_CALLS or re.search(r"[-+*/]=|\?", re.sub(r"for\s*\([^)]*\)", "", code.text)):
        return None
    stores = [s for s in code.stores if s.place.array == output]
    loads = code.loads(source)
    if len(stores) != 1 or len(loads) != 1 or stores[0].operator:
        return None
    value = code.expand(stores[0].value).strip("() ")
    if not is_access(value, source):  # through a tile
        tile = re.fullmatch(r"(\w+)\s*\[.*\]", value)
        fills = [s for s in code.stores if tile is not None and s.place.array == tile[1]]
        if tile is None or tile[1] == source or len(fills) != 1 or not is_access(code.expand(fills[0].value), source):
            return None
        if "__shared__" not in code.text:
            return None
    there, here = (code.index(a.indices[0]) for a in (stores[0].place, loads[0]))
    if there is None or here is None:
        return None
    to, of = coordinates(code, there, signature.sizes), coordinates(code, here, signature.sizes)
    if to is None or of is None:
        return None
    if len(signature.sizes) == 2 and to[2] == of[2]:
        return None
    turned = outer(code, to[0]) == outer(code, of[1]) and outer(code, to[1]) == outer(code, of[0])
    if not turned or outer(code, to[0]) == outer(code, to[1]) or not outer(code, to[0]).terms:
        return None
    rows, columns = (to[2], of[2])
    axes = cover({"y": of[0], "x": of[1]}, {"y": rows, "x": columns}, code)
    if axes is None:
        return None
    return Reading({output: f"{python_name(source)}.T"}, {source: (rows, columns), output: (columns, rows)}, axes)


def is_access(value: str, array: str) -> bool:
    """Whether ``value`` is one access to ``array`` and nothing else."""
    text = value.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return re.fullmatch(rf"{re.escape(array)}\s*\[[^\]]*\]", text) is not None

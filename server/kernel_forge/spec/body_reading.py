"""Reading a NumPy reference off a kernel body, where the body is plain enough. Nothing is guessed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.spec.index_polynomial import is_thread_index, polynomial

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INDEX = re.compile(
    r"\b(?:const\s+)?(?:int|unsigned|size_t|long|auto|u?int\d+_t|unsigned int)\s+(\w+)\s*=\s*"
    r"([^;]*blockIdx\.x[^;]*threadIdx\.x[^;]*"
    r"|[^;]*threadIdx\.x[^;]*blockIdx\.x[^;]*);"
)
_FUNCTIONS = {
    "expf": "np.exp", "exp": "np.exp", "__expf": "np.exp", "logf": "np.log", "log": "np.log", "__logf": "np.log",
    "sqrtf": "np.sqrt", "sqrt": "np.sqrt", "fabsf": "np.abs", "fabs": "np.abs", "abs": "np.abs", "tanhf": "np.tanh",
    "tanh": "np.tanh", "sinf": "np.sin", "sin": "np.sin", "cosf": "np.cos", "cos": "np.cos", "fmaxf": "np.maximum",
    "fmax": "np.maximum", "max": "np.maximum", "fminf": "np.minimum", "fmin": "np.minimum", "min": "np.minimum",
    "powf": "np.power", "pow": "np.power", "floorf": "np.floor", "ceilf": "np.ceil", "log1pf": "np.log1p",
    "expm1f": "np.expm1", "__ldg": "",
}  # fmt: skip
_ALLOWED = re.compile(r"^[\w\s.+\-*/(),?:<>=!&|]*$")


@dataclass(frozen=True, slots=True)
class RowReading:
    """``layout`` is ``rows`` (one result per row) or ``total`` (one result)."""

    expression: str
    layout: str


@dataclass(frozen=True, slots=True)
class GridReading:
    """An elementwise kernel over ``rows`` (y) and ``cols`` (x), with the shape of every pointer it names."""

    expression: str
    shapes: Mapping[str, tuple[str, ...]]
    rows: str
    cols: str


def read_elementwise(body: str, output: str, pointers: list[str]) -> str | None:
    """The expression of ``output[i] = f(x[i], ...)`` guarded by a bound, or None for anything more."""
    code = _COMMENT.sub(" ", body)
    code = re.sub(
        r"\bfor\s*\(([^;]+;)\s*(\w+\s*<\s*\w+)\s*;\s*\w+\s*\+=\s*([\w.\s*]+)\)",
        lambda m: f"{m[1]} if ({m[2]})" if _is_whole_grid(m[3].strip(), body) else m[0],
        code,
        count=1,
    )
    index = _INDEX.search(code)
    if index is None or re.search(r"\b(for|while|__shared__|__sync\w*|atomic\w*|__shfl\w*|return\s+\w)\b", code):
        return None
    i = index.group(1)
    if not is_thread_index(polynomial(index.group(2)), "x"):
        return None  # a stride or an offset: not every element is the thread's own
    stores = re.findall(r"\b(\w+)\s*\[\s*([^\]]+)\s*\]\s*([-+*/]?)=(?!=)\s*([^;]+);", code)
    if len(stores) != 1 or stores[0][0] != output or stores[0][1].strip() != i or not _only_bounds(code, i):
        return None
    _, _, operator, value = stores[0]
    value = _with_locals(value, code, i)
    if value is None:
        return None
    if operator:
        value = f"{output}[{i}] {operator} ({value})"
    return translate(value, i, pointers)


def _is_whole_grid(step: str, body: str) -> bool:
    """Whether a loop's step is the number of threads in the grid, directly or by a local variable."""
    named = re.search(rf"\b{re.escape(step)}\s*=\s*([^;]*);", body)
    factors = sorted(part.strip() for part in (named[1] if named is not None else step).split("*"))
    return factors == ["blockDim.x", "gridDim.x"]


def _only_bounds(code: str, *indices: str) -> bool:
    """Whether every ``if`` only compares indices with sizes: a store under any other condition is no whole output."""
    conditions = re.findall(r"\bif\s*\(((?:[^()]|\([^()]*\))*)\)\s*\{?\s*(return\b)?", code)
    known = "|".join(map(re.escape, indices))
    extent = r"[A-Za-z_][A-Za-z_\s*]*"
    bounds = {
        (m[1], m[2]) for m in re.finditer(rf"\b({known})\s*(?:<|>=)\s*({extent})", " ".join(c for c, _ in conditions))
    }
    if len({name for name, _ in bounds}) != len(bounds):
        return False  # the smaller of two bounds: not the whole of an array
    inside = rf"\(?\s*(?:(?:{known})\s*<\s*{extent}|{extent}>\s*(?:{known}))\s*\)?"
    outside = rf"\(?\s*(?:(?:{known})\s*>=\s*{extent}|{extent}<=\s*(?:{known}))\s*\)?"
    return (
        len(re.findall(r"\bif\b", code)) == len(conditions)
        and all(
            re.fullmatch(outside if leaves else inside, part.strip())
            for text, leaves in conditions
            for part in re.split(r"\|\|" if leaves else "&&", text)
        )
        and not re.search(r"\belse\b|\bswitch\b", code)
    )


def _with_locals(value: str, code: str, *indices: str) -> str | None:
    """``value`` with local float variables put in; None where one is assigned more than once."""
    pattern = r"\b(?:const\s+)?(?:float|double|auto|int)\s+(\w+)\s*=\s*([^;]+);"
    defined = {name: text for name, text in re.findall(pattern, code) if name not in indices}
    for _ in range(8):
        used = [n for n in defined if re.search(rf"\b{n}\b", value)]
        if not used:
            return value
        for name in used:
            if len(re.findall(rf"\b{name}\s*[-+*/]?=(?!=)", code)) != 1:
                return None
            value = re.sub(rf"\b{name}\b", f"({defined[name]})", value)
    return None


def translate(text: str, index: str, pointers: list[str]) -> str | None:
    """C arithmetic on elements at ``index`` as a NumPy expression; None where C and NumPy may differ."""
    for name in pointers:
        text = re.sub(rf"\b{re.escape(name)}\s*\[\s*{index}\s*\]", name, text)
    if "[" in text or re.search(rf"\b{index}\b", text) or not _ALLOWED.match(text):
        return None
    text = re.sub(r"\(\s*(?:float|double)\s*\)", "", text)
    if re.search(r"\(\s*(?:int|unsigned|long|bool|char|half|size_t)\b", text):
        return None  # a cast that changes the value
    text = re.sub(r"\b(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[fFuUlL]+\b", r"\1", text)
    text = re.sub(r"(\d)\.(?!\d)", r"\1.0", text)
    for name in re.findall(r"\b([A-Za-z_]\w*)\s*\(", text):
        if name not in _FUNCTIONS:
            return None
    text = re.sub(r"\b([A-Za-z_]\w*)\s*\(", lambda m: f"{_FUNCTIONS[m.group(1)]}(", text)
    if "?" in text:
        match = re.fullmatch(r"([^?:]+)\?([^?:]+):([^?:]+)", _bare(text))
        if match is None or not all(_is_balanced(part) for part in match.groups()):
            return None
        condition, yes, no = (part.strip() for part in match.groups())
        text = f"np.where({condition}, {yes}, {no})"
    if "&" in text or "|" in text or "!" in text.replace("!=", ""):
        return None
    return " ".join(text.split())


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _bare(text: str) -> str:
    """``text`` without brackets around the whole of it."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _is_balanced(text[1:-1]):
        text = text[1:-1].strip()
    return text


def read_grid(body: str, output: str, pointers: list[str]) -> GridReading | None:
    """``output[row * cols + col] = f(x[row * cols + col], bias[col], ...)`` over a two-dimensional grid."""
    code = _COMMENT.sub(" ", body)
    if re.search(r"\b(for|while|__shared__|__sync\w*|atomic\w*|__shfl\w*|return\s+\w)\b", code):
        return None
    places = {}
    for axis in "xy":
        found = re.findall(rf"(\w+)\s*=\s*[^;]*blockIdx\.{axis}[^;]*threadIdx\.{axis}[^;]*;", code)
        found += re.findall(rf"(\w+)\s*=\s*threadIdx\.{axis}[^;]*blockIdx\.{axis}[^;]*;", code)
        if len(found) != 1:
            return None
        places[axis] = found[0]
        written = re.search(rf"\b{found[0]}\s*=\s*([^;,]*{axis}[^;,]*)[;,]", code)
        if written is None or not is_thread_index(polynomial(written[1]), axis):
            return None
    col, row = places["x"], places["y"]
    if not _only_bounds(code, row, col):
        return None
    extents = {n: re.findall(rf"\b{n}\s*(?:<|>=)\s*(\w+)\s*(?:[)&|])", code) for n in (row, col)}
    if any(len(e) != 1 for e in extents.values()):
        return None
    rows, cols = extents[row][0], extents[col][0]
    stores = re.findall(r"\b(\w+)\s*\[\s*([^\]]+)\s*\]\s*([-+*/]?)=(?!=)\s*([^;]+);", code)
    if len(stores) != 1 or stores[0][0] != output:
        return None
    value = _with_locals(stores[0][3], code, row, col)
    if value is None:
        return None
    flat = rf"\(*\s*(?:\b{row}\s*\*\s*{cols}\s*\+\s*{col}|{col}\s*\+\s*{row}\s*\*\s*{cols})\s*\)*"
    place = _with_locals(stores[0][1], code, row, col)
    if place is None or not re.fullmatch(flat, place.strip()):
        return None
    if stores[0][2]:
        value = f"{output}[{row} * {cols} + {col}] {stores[0][2]} ({value})"
    shapes: dict[str, tuple[str, ...]] = {output: (rows, cols)}
    for name in pointers:
        for text in set(re.findall(rf"\b{re.escape(name)}\s*\[([^\]]*)\]", value)):
            index = _bare(text)
            is_flat = re.fullmatch(flat, index) is not None
            shape = (rows, cols) if is_flat else {col: (cols,), row: (rows,)}.get(index)
            if shape is None or shapes.setdefault(name, shape) != shape:
                return None
            new = f"{name}[:, None]" if index == row else name
            value = re.sub(rf"\b{re.escape(name)}\s*\[{re.escape(text)}\]", new.replace("[:, None]", "__COLUMN"), value)
    if re.search(rf"\b(?:{row}|{col})\b", value):
        return None
    translated = translate(value, row, [])
    return None if translated is None else GridReading(translated.replace("__COLUMN", "[:, None]"), shapes, rows, cols)


def read_row_reduction(body: str, output: str, pointers: list[str]) -> RowReading | None:
    """A sum over one input, per row or in total, where nothing but additions touches it."""
    code = _COMMENT.sub(" ", body)
    adds = re.findall(r"\b(\w+)\s*\+=\s*(\w+)\s*\[([^\]]+)\]\s*(?:\*\s*(\w+)\s*\[([^\]]+)\]\s*)?;", code)
    loads = [a for a in adds if a[1] in pointers and a[1] != output]
    if len(loads) != 1 or re.search(r"[-*/]=|\bmax|\bmin|exp|sqrt|log|\?", code.replace("*=", "*=")):
        return None
    accumulator, source, place, second, second_place = loads[0]
    if second and "".join(second_place.split()) != "".join(place.split()):
        return None
    term = source if not second else f"{source} * {second}"
    if second and second not in pointers:
        return None
    first = re.search(rf"\b(?:float|double|int)\s+{accumulator}\s*=\s*0(?:\.0*)?f?\s*;", code)
    if first is None or len(re.findall(rf"\b{accumulator}\s*=(?!=)", code)) != 1:
        return None
    stores = re.findall(rf"\b{re.escape(output)}\s*\[\s*([^\]]+?)\s*\]\s*=(?!=)\s*([^;]+?)\s*;", code)
    if len(stores) == 1 and re.fullmatch(r"\w+(?:\s*\[\s*0\s*\])?", stores[0][1]):
        row = stores[0][0]
        if re.fullmatch(r"\w+|blockIdx\.x", row) and row != "0":
            flat = rf"{re.escape(row)}\s*\*\s*(\w+)\s*\+\s*(\w+)"
            match = re.fullmatch(flat, place.strip())
            if match is not None and re.search(rf"\b{match[2]}\s*<\s*{match[1]}\b", code):
                return RowReading(f"np.sum({term}, axis=1)", "rows")
        elif row == "0" and "blockIdx" not in code and re.search(rf"\b{re.escape(place.strip())}\s*<\s*\w+\s*;", code):
            return RowReading(f"np.sum({term}).reshape(1)", "total")
    if re.search(rf"\batomicAdd\s*\(\s*{re.escape(output)}\s*,", code):
        return None  # starts from what is there: whether that is zero, the code does not say
    return None

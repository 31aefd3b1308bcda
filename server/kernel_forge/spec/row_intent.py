"""Reading reductions along rows, and softmax, off a kernel's body; see :mod:`.intent` for what is asked of a reader."""

import re

from kernel_forge.spec.brackets import closing
from kernel_forge.spec.index_polynomial import Polynomial
from kernel_forge.spec.intent import Reading, Signature, cover, is_access
from kernel_forge.spec.kernel_code import KernelCode, accesses
from kernel_forge.spec.numpy_expression import python_name

_QUIET = frozenset({"__syncthreads", "__syncwarp", "__shfl_down_sync", "__shfl_xor_sync", "__shfl_sync", "__ldg"})
_ADDING = re.compile(r"(?i)^(?!.*max)(?!.*min)\w*(?:sum|add)\w*$")
_LARGEST = re.compile(r"(?i)^(?!.*sum)(?!.*min)\w*max\w*$")
_SMALLEST = re.compile(r"(?i)^(?!.*sum)(?!.*max)\w*min\w*$")
_OPERATIONS = {"sum": _ADDING, "max": _LARGEST, "min": _SMALLEST}
_LOWEST = (
    r"-?\s*(?:INFINITY|FLT_MAX|DBL_MAX|HUGE_VALF?|CUDART_INF_F?|1e(?:3[0-8]|2\d|10)f?"
    r"|std::numeric_limits<float>::\w+\(\))"
)
_HEADER = re.compile(r"\bfor\s*\([^;]*;[^;]*;(?:[^()]|\([^()]*\))*\)")
_LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")


def _row_of(code: KernelCode, text: str, sizes: tuple[str, ...]) -> tuple[Polynomial, Polynomial, str] | None:
    """(row, column, columns) of an index ``row * columns + column`` whose column is the same in every block."""
    index = code.index(text)
    if index is None:
        return None
    found = []
    for size in sizes:
        row, column = index.split(size)
        if row.terms and size not in row.atoms and not column.part(code.is_outer).terms:
            found.append((row, column, size))
    return found[0] if len(found) == 1 else None


def read_row_reduction(code: KernelCode, signature: Signature) -> Reading | None:
    """y[row] = the sum, mean, largest or smallest of a row, or the root or a scale of its sum of squares."""
    if len(signature.outputs) != 1 or len(signature.sizes) != 2 or not 1 <= len(signature.inputs) <= 2:
        return None
    output = signature.outputs[0]
    stores = [s for s in code.stores if s.place.array == output]
    if len(stores) != 1 or stores[0].operator or len(stores[0].place.indices) != 1:
        return None
    source = signature.inputs[0]
    rows = {
        r for a in code.loads(source) if len(a.indices) == 1 for r in [_row_of(code, a.indices[0], signature.sizes)]
    }
    if None in rows or not rows or len({(r[0], r[2]) for r in rows if r is not None}) != 1:
        return None
    row, _, columns = next(r for r in rows if r is not None)
    places = [r[1] for r in rows if r is not None]
    if code.index(stores[0].place.indices[0]) != row or not _whole_rows(code, columns, places):
        return None
    operation = _operation(code)
    term = _term(code, operation, source, signature, columns) if operation else None
    if operation is None or term is None:
        return None
    vector = signature.inputs[1] if len(signature.inputs) == 2 else None
    if vector is not None and vector not in term:
        return None
    term = re.sub(rf"\b{source}\b", python_name(source), term)
    reduced = term if vector else f"np.{operation}({term}, axis=1)"
    value = _stored(code, stores[0].value, reduced, columns, operation)
    axes = cover({"x": row}, {"x": _other(signature.sizes, columns)}, code)
    if value is None or axes is None:
        return None
    height = _other(signature.sizes, columns)
    shapes = {source: (height, columns), output: (height,)} | ({vector: (columns,)} if vector else {})
    where = () if operation == "sum" else (f"{columns} > 0",)
    return Reading({output: value}, shapes, axes, where=where)


def _other(sizes: tuple[str, ...], one: str) -> str:
    return next(s for s in sizes if s != one)


def _whole_rows(code: KernelCode, columns: str, places: list[Polynomial]) -> bool:
    """Whether loops go over whole rows: from 0 or the thread's own place to the number of columns, nothing shifted.

    A loop may begin at 1 where the first element is what the result begins with.
    """
    whole = set()
    for loop in code.loops:
        start = code.index(loop.start)
        bound = re.fullmatch(rf"{loop.name}\s*<\s*(\w+)", loop.condition.strip("() "))
        if start is None or bound is None or code.expand(bound[1]).strip("()") != columns:
            continue
        is_single = loop.step.replace(" ", "") in (f"{loop.name}++", f"++{loop.name}")
        begun = start.constant == 1 and any(not place.terms for place in places)
        own = str(start) in ("1 threadIdx.x", "1 threadIdx.y", "1 remainder(1 threadIdx.x, 32)")
        if (is_single and (start.constant == 0 or begun)) or (own and not is_single):
            whole.add(f"1 {loop.name}")
        else:
            return False
    return bool(whole) and all(not place.terms or str(place) in whole for place in places)


def _operation(code: KernelCode) -> str | None:
    """The one reduction that everything in the kernel serves."""
    text = code.text
    body = _HEADER.sub(" ", text)
    calls = code.calls() - _QUIET - {"sqrtf", "sqrt", "fabsf", "fabs", "abs", "float", "rsqrtf"}
    added = re.search(r"\+=|\w\s*=\s*(\w+)\s*\+", re.sub(r"\b(?:int|unsigned|size_t|const\s+int)\s+[^;]*;", " ", body))
    compared = re.search(r"\bif\s*\([^;{}]*[<>][^;{}]*\)\s*\{?\s*(\w+)\s*=\s*", body) is not None
    found = {n for n, names in _OPERATIONS.items() if any(names.match(c) for c in calls)}
    if not all(any(names.match(c) for names in _OPERATIONS.values()) for c in calls):
        return None
    if added:
        found.add("sum")
    if not found and compared:
        return None  # which way it goes, a comparison written out does not say plainly enough
    return found.pop() if len(found) == 1 else None


def _term(code: KernelCode, operation: str, source: str, signature: Signature, columns: str) -> str | None:
    """What is reduced: x, |x|, x * x, or x times a vector along the row (then the whole product)."""
    terms = []
    if operation == "sum":
        for name, value in re.findall(r"(\w+)\s*\+=\s*([^;]+);", _HEADER.sub(" ", code.text)):
            if any(array in code.expand(value) for array in signature.inputs):
                terms.append((name, value))
    else:
        pattern = rf"(\w+)\s*=\s*f?{operation}f?\s*\(\s*([^;]+)\)\s*;"
        for name, inside in re.findall(pattern, code.text):
            sides = re.fullmatch(rf"{name}\s*,\s*(.+)|(.+),\s*{name}\s*", inside.strip())
            if sides is None:
                continue
            value = sides[1] or sides[2]
            if any(array in code.expand(value) for array in signature.inputs):
                terms.append((name, value))
    if len(terms) != 1:
        return None
    name, value = terms[0]
    if not _is_clean(code, name, operation, source):
        return None
    text = re.sub(r"\s+", "", code.expand(value))
    text = re.sub(r"\((?:float|double)\)", "", text)
    load = rf"\(?{re.escape(source)}\[[^\]]*\]\)?"
    if re.fullmatch(load, text):
        return source
    if re.fullmatch(rf"(?:fabsf?|abs)\({load}\)", text):
        return f"np.abs({source})"
    square = re.fullmatch(rf"({load})\*({load})", text)
    if square is not None and square[1].strip("()") == square[2].strip("()"):
        return f"{source} * {source}"
    if operation == "sum" and len(signature.inputs) == 2:
        vector = signature.inputs[1]
        pair = re.fullmatch(rf"({load})\*\(?{vector}\[([^\]]*)\]\)?|\(?{vector}\[([^\]]*)\]\)?\*({load})", text)
        if pair is not None:
            at = code.index(pair[2] or pair[3])
            place = next(iter(accesses(pair[1] or pair[4], source))).indices[0]
            row = _row_of(code, place, signature.sizes)
            if row is not None and at == row[1]:
                return f"{source} @ {vector}"
    return None


def _is_clean(code: KernelCode, total: str, operation: str, source: str) -> bool:
    """Whether nothing but its start and the reduction changes the total."""
    for assignment in code.assignments(total):
        text = assignment.strip()
        if text.startswith("+="):
            if operation != "sum":
                return False
            continue
        if not text.startswith("=") or text.startswith("=="):
            return False
        value = text[1:].strip()
        start = r"(?:\(\s*\w+\s*\)\s*)?0(?:\.0*)?f?" if operation == "sum" else _LOWEST
        if re.fullmatch(start, value) or (operation != "sum" and is_access(code.expand(value), source)):
            continue
        call = re.match(r"([A-Za-z_]\w*)\s*\(", value)
        if call is not None and _OPERATIONS[operation].match(call[1]) and value.endswith(")"):
            given = re.sub(r"\[[^\]]*\]|__shfl\w+\s*\([^()]*\)", "", value)
            if not re.search(r"(?<![\w.])\d|[-+*/]", given):
                continue
            return False
        outside = re.sub(r"\[[^\]]*\]|\([^()]*\)", "", value)
        if operation != "sum" and re.search(r"(?<![\w.])\d", re.sub(_LOWEST, "", outside)):
            return False
        if re.fullmatch(r"[\w\s?:]*", re.sub(_LOWEST, "0", outside).replace("0.0f", "0").replace("0.f", "0")):
            continue  # what another thread has reduced
        return False
    return re.search(r"[-*/]=", _HEADER.sub(" ", code.text)) is None


def _stored(code: KernelCode, value: str, reduced: str, columns: str, operation: str) -> str | None:
    text = re.sub(r"\s+", "", value)
    text = re.sub(r"\((?:float|double)\)|static_cast<(?:float|double)>", "", text).replace(f"({columns})", columns)
    part = r"(\w+(?:\[0\])?)"
    plain = re.fullmatch(part, text)
    if plain is not None:
        name = plain[1].partition("[")[0]
        if name in code.locals and not re.fullmatch(r"\w+\[0\]|\w+", code.locals[name].replace(" ", "")):
            inner = re.sub(r"\s+", "", code.locals[name])
            call = re.match(r"([A-Za-z_]\w*)\(", inner)
            return reduced if call is not None and _OPERATIONS[operation].match(call[1]) else None
        return reduced if name not in code.pointers else None
    if operation == "sum" and re.fullmatch(rf"{part}/{columns}", text):
        return reduced.replace("np.sum(", "np.mean(", 1) if reduced.startswith("np.sum(") else None
    if operation == "sum" and re.fullmatch(rf"sqrtf?\({part}\)", text):
        return f"np.sqrt({reduced})"
    return None


def read_softmax(code: KernelCode, signature: Signature) -> Reading | None:
    """y = exp(x - max) / sum of those, along rows."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or len(signature.sizes) != 2 or signature.values:
        return None
    output, source = signature.outputs[0], signature.inputs[0]
    places = [a.indices[0] for a in (*code.loads(source), *accesses(code.text, output)) if len(a.indices) == 1]
    rows = [_row_of(code, place, signature.sizes) for place in places]
    if not rows or any(r is None for r in rows) or len({(str(r[0]), r[2]) for r in rows if r is not None}) != 1:
        return None
    row, _, columns = next(r for r in rows if r is not None)
    calls = code.calls() - _QUIET - {"float"}
    exps = calls & {"expf", "exp", "__expf"}
    if len(exps) != 1 or not all(c in exps or _ADDING.match(c) or _LARGEST.match(c) for c in calls):
        return None
    if not any(_LARGEST.match(c) for c in calls) or not _whole_rows(
        code, columns, [r[1] for r in rows if r is not None]
    ):
        return None
    numbers = [n for n in _LITERAL.findall(code.text) if float(n) not in (0.0, 1.0) and float(n) < 1e9]
    if numbers:
        return None
    for inside in re.findall(rf"\b{next(iter(exps))}\s*\(([^;]*?)\)\s*(?:[;/*]|\))", code.text):
        text = re.sub(r"\s+|[()]", "", re.sub(rf"{source}\s*\[([^\]]*)\]", f"{source}[]", code.expand(inside)))
        if not re.fullmatch(rf"{source}\[\]-\w+(?:\[0\])?", text):
            return None
    if not _adds_powers(code, next(iter(exps)), output):
        return None
    finals = [s for s in code.stores if s.place.array == output]
    if not finals or not _is_normalised(code, finals[-1].operator, finals[-1].value):
        return None
    height = _other(signature.sizes, columns)
    axes = cover({"x": row}, {"x": height}, code)
    if axes is None:
        return None
    x = python_name(source)
    power = f"np.exp({x} - np.max({x}, axis=1, keepdims=True))"
    value = f"{power} / np.sum({power}, axis=1, keepdims=True)"
    return Reading(
        {output: value}, {source: (height, columns), output: (height, columns)}, axes, where=(f"{columns} > 0",)
    )


def _adds_powers(code: KernelCode, exp: str, output: str) -> bool:
    """Whether each sum begins with 0 and adds powers, or what other threads have added."""
    body = _HEADER.sub(" ", code.text)
    totals = re.findall(r"(?<![\w.\]])([A-Za-z_]\w*)\s*\+=\s*([^;]+);", body)
    if not totals:
        return False
    for name, value in totals:
        text = re.sub(r"\s+", "", code.expand(value))
        while text.startswith("(") and closing(text, 0) == len(text) - 1:
            text = text[1:-1]
        opening = text.find("(")
        is_power = text.startswith(f"{exp}(") and closing(text, opening) == len(text) - 1
        is_passed = text.startswith("__shfl") and closing(text, opening) == len(text) - 1
        if not (is_power or is_passed or re.fullmatch(r"\w+\[[^\]]*\]", text)):
            return False
        starts = [a.strip("= ") for a in code.assignments(name) if not a.startswith("+=")]
        if not all(re.fullmatch(r"0(?:\.0*)?f?", s) or re.match(r"[A-Za-z_]\w*\s*[(\[]", s) for s in starts):
            return False
    return bool(output)


def _is_normalised(code: KernelCode, operator: str, value: str) -> bool:
    """Whether the last value stored is divided by something, or multiplied by its reciprocal."""
    text = re.sub(r"\s+", "", value)
    factor = re.search(r"\*(\w+)$|^(\w+)\*", text) if not operator else re.fullmatch(r"()(\w+)", text)
    if operator == "/" or re.search(r"/\w+(?:\[0\])?$", text):
        return operator in ("", "/")
    name = factor[1] or factor[2] if factor is not None else ""
    inverse = re.sub(r"\s+", "", code.locals.get(name, ""))
    return operator in ("", "*") and re.fullmatch(r"1(?:\.0*)?f?/\w+(?:\[0\])?", inverse) is not None

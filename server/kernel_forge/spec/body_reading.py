"""Reading a NumPy reference off a kernel body, where the body is plain enough. Nothing is guessed."""

import re
from dataclasses import dataclass

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


def read_elementwise(body: str, output: str, pointers: list[str]) -> str | None:
    """The expression of ``output[i] = f(x[i], ...)`` guarded by a bound, or None for anything more."""
    code = _COMMENT.sub(" ", body)
    index = _INDEX.search(code)
    if index is None or re.search(r"\b(for|while|__shared__|__sync\w*|atomic\w*|__shfl\w*|return\s+\w)\b", code):
        return None
    i = index.group(1)
    stores = re.findall(r"\b(\w+)\s*\[\s*([^\]]+)\s*\]\s*([-+*/]?)=(?!=)\s*([^;]+);", code)
    if len(stores) != 1 or stores[0][0] != output or stores[0][1].strip() != i or not _only_bounds(code, i):
        return None
    _, _, operator, value = stores[0]
    value = _with_locals(value, code, i)
    if value is None:
        return None
    if operator:
        value = f"{output}[{i}] {operator} ({value})"
    return _translate(value, i, pointers)


def _only_bounds(code: str, *indices: str) -> bool:
    """Whether every ``if`` only compares indices with sizes: a store under any other condition is no whole output."""
    conditions = re.findall(r"\bif\s*\(((?:[^()]|\([^()]*\))*)\)", code)
    known = "|".join(map(re.escape, indices))
    bound = rf"\(?\s*(?:(?:{known})\s*(?:<|>=)\s*[\w\s*+]+|[\w\s*+]+(?:>|<=)\s*(?:{known}))\s*\)?"
    return (
        len(re.findall(r"\bif\b", code)) == len(conditions)
        and all(re.fullmatch(bound, part.strip()) for text in conditions for part in re.split(r"&&|\|\|", text))
        and not re.search(r"\belse\b|\bswitch\b", code)
    )


def _with_locals(value: str, code: str, index: str) -> str | None:
    """``value`` with local float variables put in; None where one is assigned more than once."""
    pattern = r"\b(?:const\s+)?(?:float|double|auto|int)\s+(\w+)\s*=\s*([^;]+);"
    defined = {name: text for name, text in re.findall(pattern, code) if name != index}
    for _ in range(8):
        used = [n for n in defined if re.search(rf"\b{n}\b", value)]
        if not used:
            return value
        for name in used:
            if len(re.findall(rf"\b{name}\s*[-+*/]?=(?!=)", code)) != 1:
                return None
            value = re.sub(rf"\b{name}\b", f"({defined[name]})", value)
    return None


def _translate(text: str, index: str, pointers: list[str]) -> str | None:
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
        match = re.fullmatch(r"\s*\(?([^?:]+)\?([^?:]+):([^?:]+?)\)?\s*", text)
        if match is None or "&&" in text or "||" in text:
            return None
        condition, yes, no = (part.strip() for part in match.groups())
        text = f"np.where({condition}, {yes}, {no})"
    if "&" in text or "|" in text or "!" in text.replace("!=", ""):
        return None
    return " ".join(text.split())


def read_row_reduction(body: str, output: str, pointers: list[str]) -> RowReading | None:
    """A sum over one input, per row or in total, where nothing but additions touches it."""
    code = _COMMENT.sub(" ", body)
    adds = re.findall(r"\b(\w+)\s*\+=\s*(\w+)\s*\[([^\]]+)\]\s*(?:\*\s*(\w+)\s*\[([^\]]+)\]\s*)?;", code)
    loads = [a for a in adds if a[1] in pointers and a[1] != output]
    if len(loads) != 1 or re.search(r"[-*/]=|\bmax|\bmin|exp|sqrt|log|\?", code.replace("*=", "*=")):
        return None
    accumulator, source, _, second, _ = loads[0]
    term = source if not second else f"{source} * {second}"
    if second and second not in pointers:
        return None
    first = re.search(rf"\b(?:float|double|int)\s+{accumulator}\s*=\s*0(?:\.0*)?f?\s*;", code)
    if first is None:
        return None
    if re.search(rf"\b{re.escape(output)}\s*\[\s*(?:row|blockIdx\.x|r)\s*\]\s*=", code):
        return RowReading(f"np.sum({term}, axis=1)", "rows")
    if re.search(rf"\batomicAdd\s*\(\s*{re.escape(output)}\s*,", code):
        return None  # starts from what is there: whether that is zero, the code does not say
    return None

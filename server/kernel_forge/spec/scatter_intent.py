"""Reading atomics, scans and stencils off a kernel's body; see :mod:`.intent` for what is asked of a reader."""

import re

from kernel_forge.spec.intent import Reading, Signature, is_access
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.numpy_expression import python_name

_QUIET = frozenset({"__syncthreads", "__syncwarp", "atomicAdd", "__ldg", "min"})


def _whole_range(code: KernelCode, size: str, index: str) -> bool:
    """Whether ``index`` takes every value below ``size``: one thread each, or a grid-stride loop."""
    named = [loop for loop in code.loops if loop.name == index]
    if named:
        over = (loop for loop in named if re.fullmatch(rf"{index}\s*<\s*{size}", loop.condition))
        return any("blockIdx" in code.expand(loop.start) for loop in over)
    start = code.locals.get(index, "")
    guarded = re.search(rf"\bif\s*\(\s*{index}\s*(?:<|>=)\s*{size}\s*\)|\b{index}\s*<\s*{size}\s*\)?\s*\?", code.text)
    return "blockIdx" in start and "threadIdx" in start and guarded is not None


def _index_of(code: KernelCode, source: str) -> str | None:
    """The variable that indexes every access to ``source``."""
    found = {a.indices[0] for a in code.loads(source)}
    return found.pop() if len(found) == 1 and all(n.isidentifier() for n in found) else None


def read_atomic_sum(code: KernelCode, signature: Signature) -> Reading | None:
    """out[0] += the sum of x."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or len(signature.sizes) != 1 or signature.values:
        return None
    output, source, size = signature.outputs[0], signature.inputs[0], signature.sizes[0]
    added = re.findall(
        rf"\batomicAdd\s*\(\s*(?:{output}|&\s*{output}\s*\[\s*0\s*\])\s*,\s*([^;]*?)\s*\)\s*;", code.text
    )
    index = _index_of(code, source)
    if len(added) != 1 or index is None or not _whole_range(code, size, index) or code.text.count("atomicAdd") != 1:
        return None
    sums = re.compile(r"(?i)^(?!.*max)(?!.*min)\w*(?:sum|add)\w*$")
    quiet = _QUIET | {"__shfl_down_sync", "__shfl_xor_sync"}
    if not all(c in quiet or sums.match(c) for c in code.calls()):
        return None
    body = re.sub(r"\bfor\s*\([^;]*;[^;]*;(?:[^()]|\([^()]*\))*\)", " ", code.text)
    if re.search(r"[-*/%]=", body):
        return None
    value = added[0]
    if is_access(code.expand(value), source):
        return _summed(output, source, size)
    name = re.fullmatch(r"(\w+)(?:\s*\[\s*0\s*\])?", value)
    terms = re.findall(r"\w+\s*\+=\s*([^;]+);", body)
    loaded = [t for t in terms if is_access(code.expand(t), source)]
    direct = re.findall(rf"(?:\w|\])\s*=(?!=)\s*([^;=]*\b{source}\s*\[[^;]*);", body)
    given = [d for d in direct if _is_guarded_load(code, d, source, index, size)]
    if name is None or len(direct) != len(given) or len(loaded) + len(given) != 1:
        return None
    indices = r"\b(?:int|unsigned|size_t|const\s+int|auto)\s+[^;]*;|\[[^\]]*\]|\([^()]*\)"
    if re.search(r"=\s*[^;]*[*/][^;]*;", re.sub(indices, " ", body)):
        return None  # more than a sum
    return _summed(output, source, size)


def _is_guarded_load(code: KernelCode, value: str, source: str, index: str, size: str) -> bool:
    """``x[i]``, or ``i < n ? x[i] : 0``."""
    match = re.fullmatch(rf"\(?\s*{index}\s*<\s*{size}\s*\)?\s*\?\s*([^:]*):\s*0(?:\.0*)?f?", value.strip().strip("()"))
    return is_access(match[1] if match is not None else value, source)


def _summed(output: str, source: str, size: str) -> Reading:
    return Reading(
        {output: f"{python_name(output)} + np.sum({python_name(source)})"},
        {source: (size,), output: ("1",)},
        {"x": (size, None)},
        {output: "inout"},
    )


def read_histogram(code: KernelCode, signature: Signature) -> Reading | None:
    """bins[x[i]] += 1, directly or by way of counts in shared memory."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or not signature.sizes or signature.values:
        return None
    output, source = signature.outputs[0], signature.inputs[0]
    if source in signature.floats or output in signature.floats or not code.calls() <= _QUIET:
        return None
    index = _index_of(code, source)
    size = next((s for s in signature.sizes if index is not None and _whole_range(code, s, index)), None)
    counted = re.findall(r"\batomicAdd\s*\(\s*&\s*(\w+)\s*\[([^;]*)\]\s*,\s*1u?\s*\)\s*;", code.text)
    if size is None or len(counted) != 1 or not is_access(_uncast(code.expand(counted[0][1])), source):
        return None
    table = counted[0][0]
    others = [s for s in signature.sizes if s != size]
    if table == output:
        if code.text.count("atomicAdd") != 1 or code.stores:
            return None
        bins = others[0] if len(others) == 1 else "256" if source in signature.unsigned_bytes and not others else None
    else:
        bins = _private(code, table, output, others)
    if bins is None:
        return None
    counts = f"{python_name(output)} + np.bincount({python_name(source)}, minlength={bins})"
    inits = (
        {}
        if bins == "256" and source in signature.unsigned_bytes
        else {
            source: f'{{ kind = "integers", low = 0, high = {bins if bins.isdigit() else chr(34) + bins + chr(34)} }}'
        }
    )
    where = () if bins.isdigit() else (f"{bins} > 0",)
    shapes = {source: (size,), output: (bins,)}
    return Reading({output: counts}, shapes, {"x": (size, None)}, {output: "inout"}, inits, where)


def _uncast(text: str) -> str:
    return re.sub(r"\(\s*(?:int|unsigned|unsigned int)\s*\)", "", text)


def _private(code: KernelCode, table: str, output: str, sizes: list[str]) -> str | None:
    """The number of bins where a shared table is cleared, counted in and added to the output, bin by bin."""
    declared = re.search(rf"__shared__\s+[\w\s]+?\b{table}\s*\[\s*(\w+)\s*\]", code.text)
    flush = re.findall(
        rf"\batomicAdd\s*\(\s*&\s*{output}\s*\[\s*([\w.]+)\s*\]\s*,\s*{table}\s*\[\s*([\w.]+)\s*\]\s*\)", code.text
    )
    clears = [s for s in code.stores if s.place.array == table]
    if declared is None or len(flush) != 1 or flush[0][0] != flush[0][1] or code.text.count("atomicAdd") != 2:
        return None
    if len(clears) != 1 or clears[0].value not in ("0", "0u") or len(code.stores) != 1:
        return None
    bins = declared[1]
    bounds = re.findall(rf"\b{re.escape(flush[0][0])}\s*<\s*(\w+)", code.text)
    if sizes and all(b == sizes[0] for b in bounds) and bounds:
        return None  # a table of fixed extent for any number of bins: where they end, the code does not say
    return bins if not sizes and bins in bounds else None


def read_serial_scan(code: KernelCode, signature: Signature) -> Reading | None:
    """y = running sums of x, by one thread, or by doubling steps in one block."""
    if len(signature.outputs) != 1 or len(signature.inputs) != 1 or len(signature.sizes) != 1 or signature.values:
        return None
    output, source, size = signature.outputs[0], signature.inputs[0], signature.sizes[0]
    if not code.calls() <= _QUIET - {"atomicAdd"}:
        return None
    stores = [s for s in code.stores if s.place.array == output]
    if len(stores) != 1 or stores[0].operator:
        return None
    serial = _one_thread(code, output, source, size)
    if serial is not None:
        return serial
    if "blockIdx" in code.text:
        return None
    doubling = [loop for loop in code.loops if loop.start == "1"]
    steps = re.search(r"<<=\s*1|\*=\s*2", code.text) is not None
    thread = next((n for n, v in code.locals.items() if v.strip() == "threadIdx.x"), "threadIdx.x")
    t = re.escape(thread)
    shared = re.search(r"__shared__\s+\w+\s+(\w+)\s*\[\s*(\w+)\s*\]", code.text)
    if len(doubling) != 1 or not steps or shared is None or len(code.loops) != 1:
        return None
    array, step = shared[1], doubling[0].name
    ahead = re.search(rf"\b{t}\s*>=\s*{step}\b", code.text)
    taken = re.search(rf"{array}\s*\[\s*{t}\s*-\s*{step}\s*\]", code.text)
    fills = [s for s in code.stores if s.place.array == array and _is_guarded_load(code, s.value, source, t, size)]
    adds = [s for s in code.stores if s.place.array == array and s.operator == "+"]
    whole = re.fullmatch(rf"{array}\s*\[\s*{t}\s*\]", stores[0].value) and stores[0].place.indices == (thread,)
    if ahead is None or taken is None or len(fills) != 1 or len(adds) != 1 or not whole:
        return None
    if len([s for s in code.stores if s.place.array == array]) != 2 or re.search(
        r"[-*/%]=", code.text.replace("*= 2", "")
    ):
        return None
    return Reading(
        {output: f"np.cumsum({python_name(source)})"},
        {source: (size,), output: (size,)},
        {"block": (shared[2], None)},
        where=(f"{size} <= {shared[2]}",),
        largest={size: shared[2]},
    )


def _one_thread(code: KernelCode, output: str, source: str, size: str) -> Reading | None:
    """``for (i) { sum += x[i]; y[i] = sum; }`` by the first thread alone."""
    if len(code.loops) != 1 or code.loops[0].start != "0":
        return None
    i = code.loops[0].name
    body = re.search(r"\)\s*\{([^{}]*)\}", code.text[code.text.index("for") :])
    statements = [s.strip() for s in body[1].split(";") if s.strip()] if body is not None else []
    adds = re.fullmatch(rf"(\w+)\s*\+=\s*{source}\s*\[\s*{i}\s*\]", statements[0]) if len(statements) == 2 else None
    if adds is None or not re.fullmatch(rf"{output}\s*\[\s*{i}\s*\]\s*=\s*{adds[1]}", statements[1]):
        return None
    rest = [a for a in code.assignments(adds[1]) if not a.startswith("+=")]
    if len(rest) != 1 or not re.fullmatch(r"=\s*0(?:\.0*)?f?", rest[0].strip()):
        return None
    if not re.fullmatch(rf"{i}\s*<\s*{size}", code.loops[0].condition):
        return None
    conditions = re.findall(r"\bif\s*\(([^{};]*)\)\s*(?:\{|return)", code.text)
    alone = r"(?:threadIdx|blockIdx)\.x\s*(?:==|!=|>)\s*0"
    if not all(re.fullmatch(rf"\s*{alone}(?:\s*(?:&&|\|\|)\s*{alone})*\s*", c) for c in conditions):
        return None
    return Reading(
        {output: f"np.cumsum({python_name(source)})"}, {source: (size,), output: (size,)}, {"block": ("1", None)}
    )

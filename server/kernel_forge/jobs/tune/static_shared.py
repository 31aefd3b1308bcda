"""The static shared memory of a kernel before it is compiled: read off its ``__shared__`` arrays."""

import re
from collections.abc import Iterator, Mapping

from kernel_forge.domain.expression import Expression
from kernel_forge.domain.spec import KernelSpec, LaunchSpec
from kernel_forge.source import Kernel, SourceFile
from kernel_forge.source.scalar_types import element_type
from kernel_forge.spec.brackets import split_arguments
from kernel_forge.spec.cpp_expressions import translate

_EXTENTS = re.compile(r"\s*((?:\[[^\]\[]*\]\s*)+)")
_TYPE = re.compile(
    r"__shared__\s+(?:alignas\s*\([^)]*\)\s*|__align__\s*\([^)]*\)\s*)?(?P<type>[\w:\s]+?)\s*\w+\s*(?:\[|;|,|=)"
)
_MOST_STEPS = 4


def static_shared(source: SourceFile, spec: KernelSpec, launch: LaunchSpec) -> tuple[Expression, ...]:
    """Bytes of each ``__shared__`` array of the launched kernel, over sizes and tunables.

    An array whose type or extents are no plain arithmetic of them is left out: the sum is what is surely needed.
    """
    name, _, arguments = launch.kernel.partition("<")
    kernel = next((k for k in source.kernels if k.name == name.split("::")[-1].strip()), None)
    if kernel is None:
        return ()
    names = _names(source, kernel, arguments)
    # A template parameter that is a type stands for its argument as an alias does.
    aliases = {**source.aliases, **{n: text.strip("()") for n, text in names.items()}}
    known = {t.name for t in spec.tunables}
    found = []
    for array in source.shared:
        if array.kernel != kernel.name or array.dynamic:
            continue
        at = source.offset(array.range.end)
        before = source.text.rfind("__shared__", 0, at)
        declared = _TYPE.match(source.text, before) if before >= 0 else None
        extents = _EXTENTS.match(source.text, at)
        element = None if declared is None else element_type(declared["type"], aliases)
        if element is None or element.dtype is None or element.pointers:
            continue
        size = str(element.dtype.itemsize * element.lanes)
        inside = re.findall(r"\[([^\]]*)\]", extents[1]) if extents is not None else []
        expression = _resolved(" * ".join([size, *(f"({text})" for text in inside)]), names, known)
        if expression is not None:
            found.append(expression)
    return tuple(found)


def surely_static(source: SourceFile, spec: KernelSpec, launch: LaunchSpec) -> Expression | None:
    """The sum of :func:`static_shared` where it depends on a tunable and the compiler leaves none of it out for sure.

    None where some of it may be dead: in a block or a directive of its own, or where a condition of constants chooses.
    """
    sizes = static_shared(source, spec, launch)
    name, _, arguments = launch.kernel.partition("<")
    kernel = next((k for k in source.kernels if k.name == name.split("::")[-1].strip()), None)
    if kernel is None or kernel.body_range is None or not any(e.names for e in sizes):
        return None
    start, end = source.offset(kernel.body_range.start), source.offset(kernel.body_range.end)
    body = source.text[start:end]
    constants = {*_names(source, kernel, arguments), *(t.name for t in spec.tunables), "sizeof", "true", "false"}
    if re.search(r"^\s*#\s*(?:if|el)", body, re.MULTILINE) or any(
        set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", condition)) <= constants for condition in _conditions(body)
    ):
        return None
    for array in source.shared:
        before = source.text[start : source.offset(array.range.start)] if array.kernel == kernel.name else "{"
        is_used = len(re.findall(rf"\b{re.escape(array.name)}\b", body)) > 1
        if array.kernel == kernel.name and not array.dynamic and (_depth(before) != 1 or not is_used):
            return None
    return Expression.parse(" + ".join(f"({each.text})" for each in sizes))


def _conditions(body: str) -> Iterator[str]:
    """What stands in the parentheses of each ``if``, and before each ``?``."""
    for match in re.finditer(r"\bif\s*(?:constexpr\s*)?\(", body):
        depth, at = 1, match.end()
        while depth and at < len(body):
            depth += {"(": 1, ")": -1}.get(body[at], 0)
            at += 1
        yield body[match.end() : at - 1]
    yield from re.findall(r"[=(,;{]([^=(,;{}?]*)\?", body)


def _depth(text: str) -> int:
    """How many braces are open at the end."""
    return text.count("{") - text.count("}")


def _names(source: SourceFile, kernel: Kernel, arguments: str) -> Mapping[str, str]:
    """What the names in a kernel stand for: macros, constants, and its template parameters."""
    names = {m.name: f"({m.value})" for m in source.macros} | {c.name: f"({c.value})" for c in source.constants}
    given = split_arguments(arguments.rpartition(">")[0])
    names |= {p.name: f"({text.strip()})" for p, text in zip(kernel.template_params, given, strict=False)}
    return names


def _resolved(text: str, names: Mapping[str, str], known: set[str]) -> Expression | None:
    for _ in range(_MOST_STEPS):
        expression = translate(text, {n: v for n, v in names.items() if n not in known})
        if expression is None or expression.names <= known:
            return expression
        text = expression.text
    return None

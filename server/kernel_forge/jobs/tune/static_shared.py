"""The static shared memory of a kernel before it is compiled: read off its ``__shared__`` arrays."""

import re
from collections.abc import Mapping

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

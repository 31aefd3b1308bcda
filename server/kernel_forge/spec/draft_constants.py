"""The kernel's instance, and its body as indices are read: constants put in, vectors spelt as their scalars."""

import re
from collections.abc import Mapping

from kernel_forge.source import Constant, Kernel, LaunchSite, Macro, SourceFile
from kernel_forge.spec import gaps
from kernel_forge.spec.brackets import split_arguments
from kernel_forge.spec.cpp_expressions import host_constant

_ARITHMETIC = re.compile(r"[\w\s+*/()-]+")
_LANES = {"2": 2, "3": 3, "4": 4, "8": 8}
_VECTOR = r"(?:const\s+)?(?:u?(?:char|int|short|long)|float|double|half|__half|__nv_bfloat16|__nv_bfloat16)([234])"
_CAST = rf"(?:reinterpret_cast\s*<\s*{_VECTOR}\s*(?:const\s*)?\*\s*>|\(\s*{_VECTOR}\s*\*\s*\))"
_BY_LANE = r"__nv_bfloat162|half2|__half2"


def kernel_text(source: SourceFile, kernel: Kernel) -> str:
    """The kernel with its template arguments: those of a launch in the file, its defaults, or gaps."""
    params = kernel.template_params
    if not params:
        return kernel.name
    site = next((s for s in source.launches if s.kernel.split("::")[-1] == kernel.name and s.template_args), None)
    given = list(site.template_args) if site is not None else []
    written = []
    for i, param in enumerate(params):
        text = given[i] if i < len(given) else param.default
        value = _argument(text, param.kind == "type", source, site) if text is not None else None
        written.append(value or ("float" if param.kind == "type" else gaps.template_gap(param.name)))
    return f"{kernel.name}<{', '.join(written)}>"


def _argument(text: str, is_type: bool, source: SourceFile, site: LaunchSite | None) -> str | None:
    """A template argument as it means the same outside of the function that launches; None where it does not."""
    words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))
    known = {m.name for m in source.macros} | {c.name for c in source.constants} | {"true", "false", "sizeof"}
    if is_type:
        return None if site is not None and _is_template_parameter(text, site, source) else text
    if words <= known:
        return text
    value = host_constant(text, site, source) if site is not None else None
    return str(value) if value is not None else None


def _is_template_parameter(text: str, site: LaunchSite, source: SourceFile) -> bool:
    """Whether a type is one that the launching function has as its own template parameter: ``T``."""
    before = source.text[: source.offset(site.range.start)]
    return re.search(rf"\b(?:typename|class)\s+{re.escape(text)}\b", before) is not None


def known_constants(source: SourceFile, kernel: Kernel, instance: str, tunables: list[Macro]) -> Mapping[str, str]:
    """Name -> value of macros, constants and template parameters that are not tunables."""
    kept = {m.name for m in tunables} | {p.name for p in kernel.params}
    constants: tuple[Macro | Constant, ...] = (*source.macros, *source.constants)
    values = {c.name: c.value for c in constants}
    inside = instance.partition("<")[2].rpartition(">")[0]
    names = [p.name for p in kernel.template_params if p.kind != "type"]
    values |= {
        p.name: a
        for p, a in zip(kernel.template_params, split_arguments(inside), strict=False)
        if p.name in names and gaps.MARK not in a
    }
    return {
        name: value.strip() if re.fullmatch(r"\w+", value.strip()) else f"({value.strip()})"
        for name, value in values.items()
        if name not in kept and value.strip() and _ARITHMETIC.fullmatch(value.strip())
    }


def constants_in(text: str, values: Mapping[str, str]) -> str:
    """``text`` with constants replaced by their values, those in the values included."""
    for _ in range(4):
        new = re.sub(r"(?<![\w.])[A-Za-z_]\w*\b", lambda m: values.get(m.group(), m.group()), text)
        if new == text:
            break
        text = new
    return re.sub(r"\((\d+)\)", r"\1", text) if "sizeof" not in text else text


def plain_body(body: str, pointers: list[str]) -> str:
    """``body`` with accesses through vector types spelt as the last scalar they touch, and shifts as quotients."""
    text = re.sub(r"(?<=[=(,\[])(\s*[\w.]+)\s*>>\s*(\d+)(?=\s*[;,)\]])", lambda m: f"{m[1]} / {1 << int(m[2])}", body)
    text = re.sub(r"(?<=[=(,\[])(\s*[\w.]+)\s*&\s*(\d+)(?=\s*[;,)\]])", _masked, text)
    text = re.sub(r"\b(const\s+)?auto\s*\*\s*(\w+)\s*=", r"float* \2 =", text)
    for pointer in pointers:
        text = _without_vector_aliases(text, pointer)
        text = _without_vector_casts(text, pointer)
    return text


def _masked(match: re.Match[str]) -> str:
    mask = int(match[2])
    return f"{match[1]} % {mask + 1}" if mask & (mask + 1) == 0 else match[0]


def _lanes(match: re.Match[str]) -> int:
    return _LANES[next(g for g in match.groups() if g is not None and g in _LANES)]


def _without_vector_aliases(text: str, pointer: str) -> str:
    """``const float4* x4 = reinterpret_cast<const float4*>(x);`` put in where ``x4`` is used."""
    declared = rf"(?:const\s+)?\w+\s*\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=\s*{_CAST}\s*\(?\s*{pointer}\s*\)?\s*;"
    match = re.search(declared, text)
    if match is None:
        return text
    lanes = next(int(g) for g in match.groups()[1:] if g is not None)
    text = text[: match.start()] + text[match.end() :]
    return re.sub(
        rf"(?<![\w.]){match[1]}\s*\[((?:[^\[\]]|\[[^\]]*\])*)\]", rf"{pointer}[{lanes} * (\1) + {lanes - 1}]", text
    )


def _without_vector_casts(text: str, pointer: str) -> str:
    """``reinterpret_cast<float4*>(x)[i]`` and ``*reinterpret_cast<float4*>(&x[i])`` as accesses to ``x``."""
    inside = r"((?:[^\[\]]|\[[^\]]*\])*)"

    def by_vector(match: re.Match[str]) -> str:
        lanes, index = _lanes(match), match.groups()[-1]
        return f"{pointer}[{lanes} * ({index}) + {lanes - 1}]"

    def at_element(match: re.Match[str]) -> str:
        lanes, index = _lanes(match), match.groups()[-1]
        return f"{pointer}[({index}) + {lanes - 1}]"

    text = re.sub(rf"\(?\s*{_CAST}\s*\(?\s*{pointer}\s*\)+\s*\[{inside}\]", by_vector, text)
    text = re.sub(rf"\*\s*{_CAST}\s*\(\s*&\s*{pointer}\s*\[{inside}\]\s*\)", at_element, text)
    text = re.sub(rf"{_CAST}\s*\(\s*&\s*{pointer}\s*\[{inside}\]\s*\)\s*\[\s*0\s*\]", at_element, text)
    return re.sub(rf"\*\s*{_CAST}\s*\(\s*{pointer}\s*\+\s*((?:[^()]|\([^()]*\))*)\)", at_element, text)

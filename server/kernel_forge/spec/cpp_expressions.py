"""Plain C++ arithmetic of launch sites as spec expressions, or nothing where it is not plain."""

import re
from collections.abc import Mapping

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.source import Constant, LaunchSite, Macro, SourceFile
from kernel_forge.source.scalar_types import element_type
from kernel_forge.spec.brackets import split_arguments

_CAST = re.compile(
    r"\(\s*(?:const\s+)?(?:unsigned|int|long|size_t|u?int\d+_t|unsigned int|unsigned long|long long|float|double)\s*\)"
    r"|\bstatic_cast\s*<[^<>]*>"
)
_SUFFIX = re.compile(r"\b(\d+(?:\.\d+)?)(?:[uUlL]+|[fF])\b")
_CEIL_NAMES = re.compile(r"\b(?:ceil_div|CEIL_DIV|div_up|DIV_UP|divUp|cdiv|iDivUp|ceilDiv|DIVUP|div_ceil)\b")
_MIN_MAX = re.compile(r"\b(?:std::)(min|max)\b")
_NAME = re.compile(r"\b[^\W\d]\w*\b")
_DIM3 = re.compile(r"^(?:dim3\s*)?[({](.*)[)}]$", re.DOTALL)
_TYPES = r"(?:static|const|constexpr|unsigned|long|int|size_t|auto|u?int\d+_t)"
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*([^()]+?)\s*\)")
_MEMBER = re.compile(r"\b([A-Za-z_]\w*)\.([xyz])\b")
MAX_DEPTH = 6


def _bytes(match: re.Match[str]) -> str:
    element = element_type(match[1], {})
    return match[0] if element.dtype is None else str(element.dtype.itemsize * element.lanes)


def translate(text: str, names: Mapping[str, str]) -> Expression | None:
    """``text`` as an expression with ``names`` replaced; None where it is more than arithmetic."""
    code = _SUFFIX.sub(r"\1", _CAST.sub("", _SIZEOF.sub(_bytes, text))).strip()
    code = _MIN_MAX.sub(r"\1", _CEIL_NAMES.sub("cdiv", code)).replace("&&", " and ").replace("||", " or ")
    code = code.replace("::", ".")
    code = _NAME.sub(lambda m: names.get(m.group(), m.group()), code)
    try:
        return Expression.parse(code)
    except ExpressionError:
        return None


def dimensions(text: str, site: LaunchSite, source: SourceFile, names: Mapping[str, str]) -> list[Expression] | None:
    """The extents that a launch's grid or block text stands for: a number, ``dim3(...)``, or a local variable."""
    resolved = _resolve(text.strip(), site, source, MAX_DEPTH)
    match = _DIM3.match(resolved)
    parts = split_arguments(match.group(1)) if match is not None and resolved.startswith(("dim3", "{")) else [resolved]
    found = []
    for part in parts:
        expression = with_locals(part, site, source, names)
        if expression is None:
            return None
        found.append(expression)
    while len(found) > 1 and found[-1].text.strip() == "1":
        found.pop()
    return found


def with_locals(
    text: str, site: LaunchSite, source: SourceFile, names: Mapping[str, str], depth: int = MAX_DEPTH
) -> Expression | None:
    """``text`` translated, with local variables of the launching function replaced by what they hold."""
    text = _MEMBER.sub(lambda m: _member(m, site, source), text)
    expression = translate(text, names)
    if expression is None or depth == 0:
        return expression
    code = text
    for name in sorted(_NAME.findall(code)):
        if name in names:
            continue
        value = _local(name, site, source)
        if value is not None and translate(value, names) is not None:
            code = re.sub(rf"\b{name}\b", f"({value})", code)
    return expression if code == text else with_locals(code, site, source, names, depth - 1)


def _member(match: re.Match[str], site: LaunchSite, source: SourceFile) -> str:
    """``threads.x`` of a local ``dim3`` as what it was given."""
    made = _DIM3.match(_resolve(match[1], site, source, MAX_DEPTH))
    if made is None or match[1] == made[0]:
        return match[0]
    parts = [*split_arguments(made[1]), "1", "1"]
    return f"({parts['xyz'.index(match[2])]})"


def _resolve(text: str, site: LaunchSite, source: SourceFile, depth: int) -> str:
    """A name of a local ``dim3`` replaced by its initialiser."""
    if depth == 0 or not re.fullmatch(r"[^\W\d]\w*", text):
        return text
    scope = _scope(site, source)
    match = re.search(rf"\bdim3\s+(?:\w+\s*[^;]*,\s*)?{text}\s*(?P<init>\([^;]*?\)|\{{[^;]*?\}})\s*[;,]", scope)
    if match is not None:
        return f"dim3{match['init']}"
    match = re.search(rf"\bdim3\s+{text}\s*=\s*(?P<init>[^;]+);", scope)
    if match is not None:
        return _resolve(match["init"].strip(), site, source, depth - 1)
    return text


def _local(name: str, site: LaunchSite, source: SourceFile) -> str | None:
    """The value of a local variable or of a defaulted constant that is given one once, where it is declared."""
    scope = _scope(site, source)
    found = [
        text
        for match in re.finditer(rf"\b(?:{_TYPES}\s+)+([^;{{}}()]*\b{name}\s*[=({{][^;]*);", scope)
        for part in split_arguments(match[1])
        if (text := _initial(part, name)) is not None
    ]
    changed = rf"(?<![\w.>]){name}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+\s*{name}\b|--\s*{name}\b|\b{name}\s*(?:\+\+|--)"
    changes = len(re.findall(changed, scope)) + len(re.findall(rf"(?<!&)&\s*{name}\b", scope))
    is_assigned = re.search(rf"\b{name}\s*=(?!=)", scope) is not None
    return found[0] if len(found) == 1 and changes <= is_assigned else None


def _initial(declarator: str, name: str) -> str | None:
    match = re.fullmatch(rf"{name}\s*(?:=\s*(.*)|\((.*)\)|\{{(.*)\}})", declarator.strip(), re.DOTALL)
    return next((g.strip() for g in match.groups() if g), None) if match is not None else None


def _scope(site: LaunchSite, source: SourceFile) -> str:
    """The text before the launch, nearest first in meaning: the function around it up to the launch."""
    end = source.offset(site.range.start)
    start = 0
    if site.in_function:
        found = list(re.finditer(rf"\b{re.escape(site.in_function)}\s*\(", source.text[:end]))
        start = found[-1].start() if found else 0
    return source.text[start:end]


def host_constant(text: str, site: LaunchSite, source: SourceFile) -> int | None:
    """The number that ``text`` is in the launching function; None where it is not the same every time."""
    constants: tuple[Macro | Constant, ...] = (*source.macros, *source.constants)
    names = {c.name: c.value for c in constants if c.value.strip().isdigit()}
    expression = with_locals(text, site, source, names)
    if expression is None or expression.names:
        return None
    try:
        return expression.evaluate_int({})
    except ExpressionError:
        return None

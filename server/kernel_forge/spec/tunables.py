"""The ``[tune]`` table: parameters, their values, and how they reach the code."""

import re

from kernel_forge.domain.finding import Fix, Related
from kernel_forge.domain.spec import Tunable
from kernel_forge.domain.text import Location, Position, Range, TextEdit, line_end
from kernel_forge.source import Constant, Macro, SourceFile
from kernel_forge.spec.block_model import Block
from kernel_forge.spec.literals import value_of
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.signature import Instance
from kernel_forge.spec.tunable_checks import Taken, is_name_free, usable_values


def read_tunables(
    block: BlockText,
    model: Block,
    source: SourceFile,
    instance: Instance,
    names: tuple[str, ...],
    taken: Taken,
) -> tuple[Tunable, ...]:
    """The tunables; a name or value that cannot be, or a macro that cannot be set from outside, is noted.

    ``taken`` are the names that others have.
    """
    macros = {m.name: m for m in source.macros}
    launches = (str(t.grid) + str(t.block) + str(t.shared) for t in model.launch)
    used = " ".join([*instance.template_args, *launches, *(str(arg.value) for arg in model.args.values())])
    found = []
    for name in names:
        path = ("tune", name)
        values = usable_values(block, name, model.tune[name])
        if not is_name_free(block, name, taken) or values is None:
            continue
        macro = macros.get(name)
        if macro is not None and not macro.guarded and name not in instance.template_args:
            _ask_for_guard(block, source, macro, path)
        fixed = _fixed(source, instance, name) if macro is None and name not in instance.template_args else None
        if fixed is not None:
            _ask_for_macro(block, source, fixed, path)
        elif macro is None and not re.search(rf"\b{re.escape(name)}\b", used) and not _mentions(source, name):
            block.add(
                "KF112",
                f"{name} is used nowhere: no macro, template argument or launch has it",
                path,
                key=True,
            )
        written = macro if macro is not None else fixed
        default = value_of(written.value) if written is not None else None
        found.append(Tunable(name, values, default if default in values else values[0], block.location_of(path)))
    return tuple(found)


def _ask_for_guard(block: BlockText, source: SourceFile, macro: Macro, path: tuple[str, ...]) -> None:
    start = Position(macro.range.start.line, 0)
    end = Position(macro.range.end.line + 1, 0)  # a comment may follow the value
    newline = line_end(source.text)
    indent = source.text[source.offset(start) : source.offset(macro.range.start)]
    ends_open = source.position(source.offset(end)) < end
    edits = (
        TextEdit(Range(start, start), f"{indent}#ifndef {macro.name}{newline}"),
        TextEdit(Range(end, end), f"{newline if ends_open else ''}{indent}#endif{newline}"),
    )
    fixes = (Fix(f"Guard #define {macro.name} with #ifndef", edits, preferred=True, path=source.path),)
    message = f"#define {macro.name} overrides every value from outside; put it between #ifndef {macro.name} and #endif"
    block.add("KF112", message, path, key=True, fixes=fixes)


def _fixed(source: SourceFile, instance: Instance, name: str) -> Constant | None:
    """The constant of that name, in the file or in the kernel, which nothing from outside can set."""
    constant = next((c for c in source.constants if c.name == name), None)
    body = instance.kernel.body_range
    if constant is not None or body is None:
        return constant
    start, end = source.offset(body.start), source.offset(body.end)
    match = re.search(_LOCAL.format(re.escape(name)), source.text[start:end])
    if match is None:
        return None
    place = Range(source.position(start + match.start()), source.position(start + match.end()))
    return Constant(name, match["value"].strip(), match["kind"], True, place, place)


def _ask_for_macro(block: BlockText, source: SourceFile, constant: Constant, path: tuple[str, ...]) -> None:
    """A constant overrides every value from outside; it can become a macro where nothing else is declared with it."""
    name, place = constant.name, constant.range
    start, end = Position(place.start.line, 0), Position(place.end.line + 1, 0)
    text = source.text[source.offset(start) : source.offset(end)]
    lead, rest = text[: place.start.column], source.text[source.offset(place.end) : source.offset(end)]
    own_line = not lead.strip() and (not rest.strip() or rest.lstrip().startswith("//"))
    qualified = re.search(rf"::\s*{re.escape(name)}\b", _without_blocks(source))
    fixes: tuple[Fix, ...] = ()
    if constant.is_alone and own_line and not qualified and value_of(constant.value) is not None:
        newline = line_end(source.text)
        lines = (f"#ifndef {name}", f"#define {name} {constant.value}{rest.rstrip()}", "#endif", "")
        edit = TextEdit(Range(start, end), newline.join(lead + line if line else line for line in lines))
        fixes = (Fix(f"Make {name} a macro", (edit,), preferred=True, path=source.path),)
    what = "an enumerator" if constant.kind == "enum" else f"a {constant.kind} variable"
    block.add(
        "KF112",
        f"{name} is {what}, which no value from outside can change; make it a macro between #ifndef {name} and #endif, "
        "or a template argument of the kernel",
        path,
        key=True,
        fixes=fixes,
        related=(Related(Location(source.path, constant.name_range), "declared here"),),
    )


_LOCAL = r"(?:static\s+)?\b(?P<kind>constexpr|const)\s+(?:\w+\s+)+{}\s*=(?P<value>[^;,]*);"


def _mentions(source: SourceFile, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", _without_blocks(source)) is not None


def _without_blocks(source: SourceFile) -> str:
    text = source.text
    for comment in reversed(source.blocks):
        start, end = source.offset(comment.range.start), source.offset(comment.range.end)
        text = text[:start] + text[end:]
    return text

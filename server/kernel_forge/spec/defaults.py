"""Making a configuration the default: the edits of the source, or of the spec block, that say so."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernel_forge.domain.expression import Number
from kernel_forge.domain.spec import Configuration, KernelSpec, Tunable
from kernel_forge.domain.text import Position, Range, TextEdit
from kernel_forge.source import Macro, SourceFile, parse
from kernel_forge.source.lines import LineIndex
from kernel_forge.spec.literals import spelled, value_of
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.reading import SpecReading, block_texts, read_specs

_TAIL = re.compile(r"(?:\s*,)?(?P<tail>[ \t]*(?:#.*)?)$")


@dataclass(frozen=True, slots=True)
class NewDefault:
    """The edits by path (of the CUDA file, of its sidecar); a file that stays as it is is not named.

    ``notes`` say what else the change reaches, and what of the default lies outside of these files.
    """

    edits: Mapping[str, tuple[TextEdit, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def make_default(
    spec: KernelSpec, source: SourceFile, configuration: Configuration, sidecar: tuple[str, str] | None = None
) -> NewDefault | str:
    """What makes ``configuration`` (some or all tunables) the default of ``spec``, or why that cannot be done.

    A tunable that a ``#define`` of the file gives a value gets it there; every other is the first of its list in the
    spec block. Nothing else of the texts changes, and after the edits the specs read as before but for the default.
    """
    edits: dict[str, list[TextEdit]] = {}
    notes: list[str] = []
    for name, value in configuration.items():
        tunable = next((t for t in spec.tunables if t.name == name), None)
        if tunable is None:
            return f"{spec.kernel} has no tunable {name}"
        if value not in tunable.values:
            return f"{name} = {value} is none of its values: {', '.join(map(str, tunable.values))}"
        macros = [m for m in source.macros if m.name == name]
        if macros:
            made = _in_macro(macros, value)
            path = source.path
        else:
            made = _in_list(spec, source, tunable, value, sidecar)
            path = spec.block_path
        if isinstance(made, str):
            return made
        if made:
            edits.setdefault(path, []).extend(made)
            notes.extend(_notes(spec, source, name, is_macro=bool(macros)))
    found = {path: tuple(sorted(of_path, key=lambda e: e.range.start)) for path, of_path in edits.items()}
    wrong = _problem_after(spec, source, configuration, sidecar, found)
    return wrong if wrong is not None else NewDefault(found, tuple(notes))


def edited(text: str, edits: Sequence[TextEdit]) -> str:
    """``text`` after ``edits``, which do not overlap and are all places of ``text``."""
    lines = LineIndex(text)
    for edit in sorted(edits, key=lambda e: e.range.start, reverse=True):
        text = text[: lines.offset(edit.range.start)] + edit.new_text + text[lines.offset(edit.range.end) :]
    return text


def _in_macro(macros: list[Macro], value: Number) -> list[TextEdit] | str:
    name = macros[0].name
    if len(macros) > 1:
        where = ", ".join(str(m.range.start.line + 1) for m in macros)
        return f"{name} is defined in several places (lines {where}); which of them holds is the preprocessor's affair"
    (macro,) = macros
    held = value_of(macro.value)
    if held is None:
        return f"#define {name} {macro.value} in line {macro.range.start.line + 1} is no number that can be replaced"
    if held == value:
        return []
    text = spelled(value, macro.value)
    if text is None:
        return f"{name} = {value} cannot be written as a number of C++"
    return [TextEdit(macro.value_range, text)]


def _in_list(
    spec: KernelSpec, source: SourceFile, tunable: Tunable, value: Number, sidecar: tuple[str, str] | None
) -> list[TextEdit] | str:
    path = ("tune", tunable.name)
    blocks, _ = block_texts(source, sidecar)
    block = next((b for b in blocks if b.is_written(path) and b.location_of(path) == tunable.location), None)
    if block is None:
        return f"the values of {tunable.name} are not found in the spec of {spec.kernel}"
    alike = [i for i, v in enumerate(tunable.values) if v == value]
    index = next((i for i in alike if type(tunable.values[i]) is type(value)), alike[0])
    places = [block.document.range_of((*block.prefix, *path, i)) for i in range(index + 1)]
    lines = [line.rstrip("\r") for line in block.toml.split("\n")]
    edits = _turned(block, lines, places)
    tails = [_tail(lines, place) for place in places]
    if all(tail is not None for tail in tails) and len({p.start.line for p in places}) == len(places):
        # One value a line: a comment behind one is about it, and goes along.
        edits += _turned(block, lines, [tail for tail in tails if tail is not None])
    return edits


def _turned(block: BlockText, lines: list[str], places: list[Range]) -> list[TextEdit]:
    """The last of the texts at ``places`` comes first, and the others move up by one."""
    texts = [lines[p.start.line][p.start.column : p.end.column] for p in places]
    moved = [texts[-1], *texts[:-1]]
    return [
        TextEdit(block.to_source(place), new)
        for place, old, new in zip(places, texts, moved, strict=True)
        if old != new
    ]


def _tail(lines: list[str], place: Range) -> Range | None:
    """What stands behind a value and its comma, where it is a comment or nothing; None where more follows."""
    line, column = place.end.line, place.end.column
    match = _TAIL.fullmatch(lines[line][column:])
    if match is None:
        return None
    return Range(Position(line, column + match.start("tail")), Position(line, column + match.end("tail")))


def _notes(spec: KernelSpec, source: SourceFile, name: str, *, is_macro: bool) -> list[str]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    users = [
        k.name
        for k in source.kernels
        if word.search(source.text[source.offset(k.range.start) : source.offset(k.range.end)])
    ]
    if is_macro:
        own = {launch.kernel.partition("<")[0].split("::")[-1].strip() for launch in spec.launches}
        others = [user for user in dict.fromkeys(users) if user not in own]
        return [f"{name} is used by {', '.join(others)} too: verify again"] if others else []
    if name not in spec.macro_tunables:
        return [f"{name} is a template argument: launches in your own code name it themselves"]
    if users:
        return [f"no #define of this file gives {name} a value: your own build has to"]
    return [f"{name} is of the launch alone: launches in your own code choose it themselves"]


def _problem_after(
    spec: KernelSpec,
    source: SourceFile,
    configuration: Configuration,
    sidecar: tuple[str, str] | None,
    edits: Mapping[str, tuple[TextEdit, ...]],
) -> str | None:
    """Why the texts after ``edits`` do not say what they should."""
    text = edited(source.text, edits.get(source.path, ()))
    beside = sidecar if sidecar is None else (sidecar[0], edited(sidecar[1], edits.get(sidecar[0], ())))
    before, after = read_specs(source, sidecar), read_specs(parse(text, source.path), beside)
    changed = after.spec_of(spec.kernel)
    want = {**spec.default_configuration, **configuration}
    if changed is None or dict(changed.default_configuration) != want:
        return f"the default of {spec.kernel} cannot be read back after the change"
    macros = {m.name for m in source.macros}
    shared = {k: v for k, v in configuration.items() if k in macros and spec.default_configuration[k] != v}
    return _problem_of_others(spec, shared, before, after)


def _problem_of_others(spec: KernelSpec, shared: Configuration, before: SpecReading, after: SpecReading) -> str | None:
    """Why another kernel of the file cannot do with the new values of the macros that it has as well."""
    for other in before.specs:
        if other.kernel == spec.kernel:
            continue
        for tunable in other.tunables:
            value = shared.get(tunable.name, tunable.default)
            if value not in tunable.values:
                return f"{other.kernel} has {tunable.name} as well, and {value} is none of its values there"
        if after.spec_of(other.kernel) is None:
            new = [p.message for p in after.problems if p.message not in {q.message for q in before.problems}]
            return f"the spec of {other.kernel} does not admit the new default: {', '.join(new)}"
    return None

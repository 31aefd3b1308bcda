"""What a model's kernel may contain: everything else is refused before it is compiled.

The rules read what the compiler would read: line continuations joined, comments gone, macros expanded, both branches of
every ``#if``. They stand before verification, not in its place.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from kernel_forge.generate.assembly_rules import assembly_rules
from kernel_forge.generate.lexical_rules import Found, character_rules, directive_rules, token_rules
from kernel_forge.generate.refusal import Refusal, Rule
from kernel_forge.generate.structure_rules import structure_rules
from kernel_forge.source.expansion import ExpansionTooLarge, definitions, expand
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.structure import read_structure
from kernel_forge.source.translation import SourceToken, Translation, translate


def refusals(text: str, tunables: AbstractSet[str] = frozenset()) -> tuple[Refusal, ...]:
    """Everything in ``text`` that a model's kernel must not contain, in the order of the text; empty if nothing.

    ``tunables`` are the macros that are set from outside. Any text is read; nothing is raised.
    """
    lines = LineIndex(text)
    found = {
        Refusal(lines.range(start, end), rule.name, message) for rule, start, end, message in _found(text, tunables)
    }
    return tuple(sorted(found))


def _found(text: str, tunables: AbstractSet[str]) -> Iterator[Found]:
    characters = list(character_rules(text))
    yield from characters
    if any(rule is Rule.LIMIT for rule, *_ in characters):
        return
    translation = translate(text)
    macros = definitions(translation)
    lexical = [*token_rules(translation), *directive_rules(translation, macros, tunables)]
    yield from lexical
    # Where characters or macros have no one meaning, what they make cannot be read.
    if any(rule in (Rule.TEXT, Rule.LIMIT, Rule.MACRO) for rule, *_ in lexical):
        return
    yield from _linkage(translation)
    try:
        tokens = expand(translation.tokens, {macro.name: macro for macro in macros})
    except ExpansionTooLarge:
        yield Rule.LIMIT, 0, len(text), "the macros of this text make too much code; write functions instead"
        return
    structure = read_structure(tokens)
    yield from structure_rules(structure)
    yield from assembly_rules(tokens, structure.operand_depths)
    if not any(function.has_body and "__global__" in function.specifiers for function in structure.functions):
        yield Rule.SYNTAX, 0, len(text), "there is no __global__ function; write the kernel with its body"


def _linkage(translation: Translation) -> Iterator[Found]:
    macros = [line.tokens for line in translation.directives if line.name == "define"]
    for tokens in (translation.tokens, *macros):
        for index, token in enumerate(tokens):
            if token.text == "extern" and not _is_plain(tokens[index + 1 : index + 3]):
                yield Rule.LINKAGE, token.start, token.end, _LINKAGE
            elif token.text in ("register", "export", "module", "import") and token.kind == "word":
                yield Rule.LINKAGE, token.start, token.end, f"{token.text} is refused; leave it out"


_LINKAGE = 'extern is only for extern "C" __global__ and extern __shared__; leave it out'


def _is_plain(following: tuple[SourceToken, ...]) -> bool:
    texts = [token.text for token in following]
    return texts[:1] == ["__shared__"] or (texts[:1] == ['"C"'] and texts[1:] == ["__global__"])

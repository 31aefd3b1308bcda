"""Rules for inline PTX: its template is taken apart into instructions, each of which must be on the list."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernel_forge.generate.allowed import FREE_OF_MEMORY_SPACE, INSTRUCTIONS, MEMORY_INSTRUCTIONS
from kernel_forge.generate.lexical_rules import Found
from kernel_forge.generate.refusal import Rule
from kernel_forge.source.translation import SourceToken

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@!?%{0,2}[A-Za-z_]\w*\s+|@!?%\d+\s+)?([A-Za-z_]\w*)((?:(?:\.|::)\w+)*)(.*)", re.DOTALL)
_REGISTER = re.compile(r"%+([A-Za-z_$][\w$]*)")
# ``clock`` and ``%clock`` are different names, so only what is declared with the sign counts.
_DECLARED = re.compile(
    r"%+(?!(?:clock|globaltimer|smid|nsmid|warpid|laneid|gridid)(?:\b|_|64))([A-Za-z_$][\w$]*)(?:<\d+>)?"
)
_OPERAND = re.compile(r"(?<!%)%(\d+)")
_ADDRESS = re.compile(r"\[\s*([^\],{]*?)\s*(?:[+-][^\],]*)?\s*[\],{]")


@dataclass
class _Assembly:
    """One ``asm`` statement: its template and, in order, constraint and offset of the value of each operand."""

    start: int
    end: int
    template: str
    operands: list[tuple[str, int]] = field(default_factory=list)


def assembly_rules(tokens: Sequence[SourceToken], depths: Mapping[int, int | None]) -> Iterator[Found]:
    """``tokens`` have their macros expanded; ``depths`` are the pointers of each operand by its first offset."""
    for index, token in enumerate(tokens):
        if token.text not in ("asm", "__asm__"):
            continue
        read = _read(tokens, index)
        if read is None:
            yield (
                Rule.ASSEMBLY,
                token.start,
                token.end,
                'asm without a template of string literals; write asm("..." : ...)',
            )
            continue
        for message in _messages(read, depths):
            yield Rule.ASSEMBLY, read.start, read.end, message


def _read(tokens: Sequence[SourceToken], index: int) -> _Assembly | None:
    at = index + 1
    while at < len(tokens) and tokens[at].text in ("volatile", "__volatile__"):
        at += 1
    if at + 1 >= len(tokens) or tokens[at].text != "(":
        return None
    first = at = at + 1
    text = ""
    while at < len(tokens) and tokens[at].kind == "string":
        part = _literal(tokens[at].text)
        if part is None:
            return None
        text += part
        at += 1
    if at == first or at >= len(tokens) or tokens[at].text not in (":", "::", ")"):
        return None
    read = _Assembly(tokens[first].start, tokens[at - 1].end, text)
    depth = 1
    while at < len(tokens) and depth:
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        is_operand = depth == 1 and tokens[at].kind == "string" and at + 2 < len(tokens) and tokens[at + 1].text == "("
        if is_operand:
            read.operands.append((tokens[at].text.strip('"'), tokens[at + 2].start))
        at += 1
    return read


def _literal(text: str) -> str | None:
    if not text.startswith('"') or re.search(r"\\[^nt]", text):
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None


def _messages(read: _Assembly, depths: Mapping[int, int | None]) -> Iterator[str]:
    text = _COMMENT.sub(" ", read.template)
    statements = [part.strip() for part in re.split(r"[;{}](?![^\[]*\])|\n", _join_lists(text))]
    declared = {
        name
        for part in statements
        if part.startswith(".reg")
        for name in _DECLARED.findall(re.sub(r"^\.reg\s+(?:\.\w+\s*)+", "", part))
    }
    for part in statements:
        if not part or part.startswith(".reg"):
            continue
        yield from _instruction(part, read, declared, depths)


def _join_lists(text: str) -> str:
    """Vector operands ``{a, b}`` in round brackets: a brace that is left opens or closes a scope."""
    return re.sub(r"\{([^{};]*)\}(?=\s*[,;\]])|(?<=[,\[])\s*\{([^{};]*)\}", lambda m: f"({m[1] or m[2] or ''})", text)


def _instruction(part: str, read: _Assembly, declared: set[str], depths: Mapping[int, int | None]) -> Iterator[str]:
    match = _INSTRUCTION.fullmatch(part)
    if match is None or match[1] not in INSTRUCTIONS:
        name = match[1] if match is not None else part[:30]
        yield f"PTX {name!r} is not on the list of instructions; use an intrinsic, or mma, ldmatrix, cp.async, shfl"
        return
    opcode, suffixes, rest = match[1], match[2], match[3]
    for register in _REGISTER.findall(rest):
        if register not in declared:
            yield f"%{register} is a special register; use threadIdx, blockIdx and the operands of the asm"
    is_memory = opcode in MEMORY_INSTRUCTIONS
    if opcode == "st" and ".const" in suffixes:
        yield "st to constant memory; write to an argument"
    for number in map(int, _OPERAND.findall(rest)):
        offset = read.operands[number][1] if number < len(read.operands) else -1
        depth = depths.get(offset)
        if depth and not is_memory:
            yield f"{opcode} computes with the address in %{number}; index the pointer in C++"
    if is_memory and opcode not in FREE_OF_MEMORY_SPACE:
        yield from _addresses(rest, suffixes, read, depths)


def _addresses(rest: str, suffixes: str, read: _Assembly, depths: Mapping[int, int | None]) -> Iterator[str]:
    is_shared = ".shared" in suffixes and ".global" not in suffixes
    for address in _ADDRESS.findall(rest):
        operand = _OPERAND.fullmatch(address)
        if operand is None:
            if not is_shared:
                yield f"the address [{address}] is no operand; pass the pointer itself as an operand"
            continue
        number = int(operand[1])
        constraint, offset = read.operands[number] if number < len(read.operands) else ("", -1)
        is_mixed = ".shared" in suffixes and constraint == "r"
        if not depths.get(offset) and not is_shared and not is_mixed:
            yield f"%{number} is no pointer that can be followed; pass a pointer argument, indexed in C++"

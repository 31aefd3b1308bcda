"""Rules for characters, tokens and preprocessor lines: what no macro, comment or line continuation can hide."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from kernel_forge.generate.allowed import (
    HEADERS,
    KEYWORDS,
    NAMES_OF_CUDA,
    is_known_reserved,
    is_reserved,
    is_runtime_api,
)
from kernel_forge.generate.refusal import Rule
from kernel_forge.source.expansion import MacroDefinition
from kernel_forge.source.translation import Directive, SourceToken, Translation

Found = tuple[Rule, int, int, str]
"""Rule, offsets (start, end) in the text, message."""
MAX_CHARACTERS = 200_000
MAX_TOKENS = 50_000
MAX_NESTING = 100
MAX_DIRECTIVES = 2_000

_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile(r"[^\S \t\r\n]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_LOOSE_SPLICE = re.compile(r"\\[ \t]+(?=\r?\n)")
_DIGRAPHS = ("<%", "%>", "<:", ":>", "%:")
_OUTPUT = frozenset("printf fprintf vprintf sprintf snprintf puts putchar fputs fwrite perror cout cerr".split())
_STOP = frozenset("assert abort exit trap brkpt raise terminate quick_exit".split())
_TIME = frozenset(
    "clock clock64 globaltimer nanosleep chrono system_clock steady_clock high_resolution_clock time".split()
)
_TIME |= {"__clock", "__clock64", "__globaltimer", "__nanosleep", "__nv_clock"}
_HEAP = frozenset("malloc calloc realloc free alloca operator_new new".split())
_HOST = frozenset("fopen system getenv dlopen dlsym mmap pthread_create fork signal main".split())
_CALLS = frozenset("virtual typeid dynamic_cast thread_local throw try catch longjmp setjmp function".split())
_ADDRESS = frozenset("uintptr_t intptr_t bit_cast launder const_cast".split())
_CONDITION_NAMES = frozenset("defined __CUDA_ARCH__ __CUDACC__ __cplusplus true false and or not".split())
_ATTRIBUTES = frozenset("nodiscard maybe_unused fallthrough likely unlikely".split())


def character_rules(text: str) -> Iterator[Found]:
    """Characters that make a text mean something else than it looks like."""
    if len(text) > MAX_CHARACTERS:
        yield (
            Rule.LIMIT,
            MAX_CHARACTERS,
            len(text),
            f"{len(text)} characters; write a kernel of at most {MAX_CHARACTERS}",
        )
        return
    for match in _TRIGRAPH.finditer(text):
        yield Rule.TEXT, *match.span(), f"{match.group()} is a trigraph; write the character that is meant"
    for match in _CONTROL.finditer(text):
        yield Rule.TEXT, *match.span(), f"character U+{ord(match.group()):04X}; write a blank, or a line end (LF)"
    for match in _LOOSE_SPLICE.finditer(text):
        yield Rule.TEXT, *match.span(), "blanks between a backslash and the end of its line; remove them"
    for at, character in enumerate(text):
        if character > "\x7f" and unicodedata.category(character) in ("Cf", "Cs", "Co", "Cc", "Cn", "Zl", "Zp"):
            yield Rule.TEXT, at, at + 1, f"character U+{ord(character):04X} cannot be seen; remove it"


def token_rules(translation: Translation) -> Iterator[Found]:
    """Tokens that no kernel needs, wherever they stand: in code, in a macro, in either branch of an ``#if``."""
    lines = [line.tokens for line in translation.directives if line.name not in ("include", "pragma", "error", "line")]
    total = len(translation.tokens) + sum(map(len, lines))
    if total > MAX_TOKENS or len(translation.directives) > MAX_DIRECTIVES:
        last = translation.tokens[-1] if translation.tokens else translation.directives[-1].tokens[-1]
        yield Rule.LIMIT, last.start, last.end, f"{total} tokens; write a kernel of at most {MAX_TOKENS}"
        return
    yield from _nesting(translation.tokens)
    for tokens in (translation.tokens, *lines):
        for index, token in enumerate(tokens):
            yield from _token(tokens, index, token)


def _nesting(tokens: Sequence[SourceToken]) -> Iterator[Found]:
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth > MAX_NESTING:
            yield (
                Rule.LIMIT,
                token.start,
                token.end,
                f"brackets nested deeper than {MAX_NESTING}; use variables or functions",
            )
            return


def _token(tokens: Sequence[SourceToken], index: int, token: SourceToken) -> Iterator[Found]:
    place = (token.start, token.end)
    before = tokens[index - 1].text if index else ""
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if token.kind == "word":
        yield from _word(token, before, after, tokens[max(0, index - 2)].text if index > 1 else "")
    elif token.kind == "other":
        yield Rule.TEXT, *place, f"{token.text!r} is no character of C++ code; use ASCII names and operators"
    elif token.kind == "raw":
        yield Rule.TEXT, *place, "a raw string; write an ordinary string literal"
    elif token.kind == "open":
        yield Rule.TEXT, *place, "a comment that does not end; close it with */"
    elif token.text in _DIGRAPHS:
        yield Rule.TEXT, *place, f"{token.text} is a digraph; write the bracket or # that is meant"
    elif token.text in ("<<<", ">>>"):
        yield Rule.LAUNCH, *place, "a kernel launch; leave it out, the kernel is launched as its spec says"
    elif token.text in ("->*", ".*"):
        yield Rule.CALL, *place, f"{token.text} reads through a pointer to a member; name the member"
    elif token.text == "[" and after == "[":
        yield from _attribute(tokens, index)
    elif token.kind == "string" and "\\u" in token.text.lower():
        yield Rule.TEXT, *place, "a universal character name; write ASCII"


def _word(token: SourceToken, before: str, after: str, second: str) -> Iterator[Found]:
    name, place = token.text, (token.start, token.end)
    if name in _OUTPUT:
        yield Rule.OUTPUT, *place, f"{name} prints; leave it out, results go to the output argument"
    elif name in _STOP or name in ("__trap", "__brkpt", "__assert_fail", "__assertfail"):
        yield Rule.STOP, *place, f"{name} ends the run; guard the case with if, or leave the check out"
    elif name in _TIME and not (name == "time" and after != "("):
        yield Rule.TIME, *place, f"{name} reads or spends time; leave it out"
    elif name in _HEAP or (name == "delete" and before != "="):
        yield (
            Rule.ALLOCATION,
            *place,
            f"{name}: device code allocates nothing; use registers, shared memory or an argument",
        )
    elif name in _HOST or is_runtime_api(name):
        yield (
            Rule.HOST_CODE,
            *place,
            f"{name} belongs to the host; leave it out, write the kernel and its device functions only",
        )
    elif name in ("__host__", "__managed__"):
        rule = Rule.HOST_CODE if name == "__host__" else Rule.STATE
        yield (
            rule,
            *place,
            f"{name}: leave it out; only __global__ and __device__ functions, __constant__ and __shared__ data",
        )
    elif name in _ADDRESS:
        yield (
            Rule.ADDRESS,
            *place,
            f"{name} turns addresses into values or drops const; index the pointer argument instead",
        )
    elif name in _CALLS:
        yield (
            Rule.CALL,
            *place,
            f"{name} makes calls that cannot be followed; call functions by name, or use a template",
        )
    elif (
        name == "std" and not (before == "::" and second == "cuda") and not (before == "namespace" and second == "cuda")
    ):
        yield Rule.LIBRARY, *place, "std is the host's library; use CUDA's own functions, or cuda::std"
    elif name in ("__attribute__", "__attribute", "__declspec"):
        yield Rule.ATTRIBUTE, *place, f"{name} is refused; use __align__, alignas, __restrict__ or __launch_bounds__"
    elif name in ("_Pragma", "__pragma"):
        yield Rule.PRAGMA, *place, f"{name} is refused; write #pragma unroll on a line of its own"
    elif is_reserved(name) and not is_known_reserved(name):
        yield (
            Rule.RESERVED,
            *place,
            f"{name} is not among the names of CUDA that a kernel may use; use a documented intrinsic",
        )


def _attribute(tokens: Sequence[SourceToken], index: int) -> Iterator[Found]:
    inside = tokens[index + 2].text if index + 2 < len(tokens) else ""
    close = tokens[index + 3].text if index + 3 < len(tokens) else ""
    if inside not in _ATTRIBUTES or close != "]":
        last = tokens[min(index + 2, len(tokens) - 1)]
        message = f"[[{inside}]] is refused; only {', '.join(sorted(_ATTRIBUTES))} are allowed"
        yield Rule.ATTRIBUTE, tokens[index].start, last.end, message


def directive_rules(
    translation: Translation, macros: Sequence[MacroDefinition], given: AbstractSet[str]
) -> Iterator[Found]:
    """Preprocessor lines. ``given`` are the macros that are set from outside (the tunables)."""
    known = {macro.name for macro in macros} | given | _CONDITION_NAMES
    for line in translation.directives:
        if line.name == "include":
            yield from _include(line)
        elif line.name == "pragma":
            if not line.tokens or line.tokens[0].text not in ("unroll", "once"):
                yield Rule.PRAGMA, line.start, line.end, "only #pragma unroll is allowed; leave this one out"
        elif line.name in ("if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"):
            for token in line.tokens:
                if token.kind == "word" and token.text not in known:
                    message = (
                        f"{token.text} is not defined in this text; test only its own macros, tunables or __CUDA_ARCH__"
                    )
                    yield Rule.CONDITION, token.start, token.end, message
        elif line.name not in ("define", "else", "endif"):
            message = f"#{line.name} is refused; leave it out"
            yield Rule.MACRO if line.name == "undef" else Rule.DIRECTIVE, line.start, line.end, message
    yield from _definitions(translation, macros)


def _include(line: Directive) -> Iterator[Found]:
    written = line.rest.strip()
    name = written[1:-1] if written[:1] + written[-1:] in ("<>", '""') else None
    if name is None:
        yield Rule.INCLUDE, line.start, line.end, "an include must name its header as <name>, with nothing after it"
    elif name not in HEADERS:
        message = (
            f"{name} is not among the allowed headers; leave it out, or use e.g. cuda_fp16.h, mma.h, cuda/pipeline"
        )
        yield Rule.INCLUDE, line.start, line.end, message


def _definitions(translation: Translation, macros: Sequence[MacroDefinition]) -> Iterator[Found]:
    read = {macro.directive.start for macro in macros}
    for line in translation.directives:
        if line.name == "define" and line.start not in read:
            yield (
                Rule.MACRO,
                line.start,
                line.end,
                "this #define cannot be read; write #define NAME value or NAME(a, b) value",
            )
    bodies: dict[str, tuple[object, ...]] = {}
    for macro in macros:
        name = macro.directive.tokens[0]
        meaning = (macro.params, tuple(token.text for token in macro.body))
        if macro.name in KEYWORDS or macro.name in NAMES_OF_CUDA or is_reserved(macro.name):
            yield Rule.MACRO, name.start, name.end, f"{macro.name} has a meaning in C++ or CUDA; choose another name"
        if bodies.setdefault(macro.name, meaning) != meaning:
            yield (
                Rule.MACRO,
                name.start,
                name.end,
                f"{macro.name} is defined twice; give each meaning a name of its own",
            )
        for token in macro.body:
            if token.text in ("#", "##"):
                message = f"{token.text} makes names or text that cannot be read here; write them out"
                yield Rule.MACRO, token.start, token.end, message

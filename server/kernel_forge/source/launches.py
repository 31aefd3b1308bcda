"""Launch sites: ``kernel<<<...>>>(...)`` and the runtime API's launch functions."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import LaunchSite
from kernel_forge.source.tokens import Token, closing, join, lex, split_commas
from kernel_forge.source.tree import SyntaxTree

_CALL = re.compile(r"cudaLaunch(?:CooperativeKernel|KernelExC?|Kernel)\b(?=\s*\()")
_CHEVRONS = re.compile("<<<")
_BOUNDARY = re.compile(r"[;{}]")
_MAX_CALL = 20_000
_MAX_CALLEE = 4_000


@dataclass(frozen=True, slots=True)
class _Launch:
    """What a launch's text says; offsets count in that text."""

    kernel: str
    template_args: tuple[str, ...]
    configuration: tuple[str, ...]
    args: tuple[str, ...]
    start: int
    end: int
    cooperative: bool = False


def read_launches(
    text: str, lines: LineIndex, tree: SyntaxTree, function_at: Callable[[int], str | None]
) -> Iterator[LaunchSite]:
    """Every launch in file order."""
    sites = [match.start() for pattern in (_CHEVRONS, _CALL) for match in pattern.finditer(text)]
    sites = sorted(at for at in sites if tree.is_code(lines.byte(at)))
    for at, following in pairwise([*sites, len(text)]):
        start = at if text[at] == "c" else _callee_start(text, at)
        # No launch holds another one, which also keeps the time linear.
        limit = min(following, at + _MAX_CALL)
        end = _BOUNDARY.search(text, at, limit)
        read = _read(text[start : end.start() if end else limit], at - start)
        if read is None and end is not None:  # the boundary was inside a lambda or an initialiser
            read = _read(text[start:limit], at - start)
        if read is None:
            continue
        grid, block, shared, stream = (*read.configuration, *[""] * 4)[:4]
        yield LaunchSite(
            kernel=read.kernel,
            template_args=read.template_args,
            grid=grid,
            block=block,
            shared=shared or None,
            stream=stream or None,
            args=read.args,
            range=lines.range(start + read.start, start + read.end),
            in_function=function_at(at),
            cooperative=read.cooperative,
        )


def _callee_start(text: str, at: int) -> int:
    """A place before the launch's callee: after the last statement boundary or preprocessor line."""
    floor = max(0, at - _MAX_CALLEE)
    return max(floor, *(text.rfind(mark, floor, at) + len(mark) for mark in (";", "{", "}", "<<<")))


@lru_cache(maxsize=8192)
def _read(text: str, at: int) -> _Launch | None:
    """Read the launch whose ``<<<`` or function name is at offset ``at``."""
    tokens = list(lex(text))
    index = next((i for i, token in enumerate(tokens) if token.start == at), None)
    if index is None:
        return None
    if tokens[index].text == "<<<":
        return _chevrons(tokens, index)
    return _call(tokens, index)


def _chevrons(tokens: Sequence[Token], at: int) -> _Launch | None:
    callee = _callee(tokens, at)
    inner_end = _chevrons_end(tokens, at + 1)
    if callee is None or inner_end is None or inner_end + 3 >= len(tokens):
        return None
    opening = inner_end + 3
    last = closing(tokens, opening) if tokens[opening].text == "(" else None
    if last is None:
        return None
    first, name, template_args = callee
    return _Launch(
        kernel=name,
        template_args=template_args,
        configuration=_texts(tokens[at + 1 : inner_end]),
        args=_texts(tokens[opening + 1 : last]),
        start=tokens[first].start,
        end=tokens[last].end,
    )


def _chevrons_end(tokens: Sequence[Token], index: int) -> int | None:
    """Index of the first of the three ``>`` that close a launch configuration."""
    while index + 2 < len(tokens):
        text = tokens[index].text
        if text in ("(", "[", "{"):
            inner = closing(tokens, index)
            if inner is None:
                return None
            index = inner
        elif text == ">" and tokens[index + 1].text == ">" and tokens[index + 2].text == ">":
            # ``f<g<2>>>>>(...)`` has more than three: the last three close the launch.
            while index + 3 < len(tokens) and tokens[index + 3].text == ">":
                index += 1
            return index
        index += 1
    return None


def _callee(tokens: Sequence[Token], end: int) -> tuple[int, str, tuple[str, ...]] | None:
    """First token's index, name and template arguments of the callee that ends before ``end``."""
    index = end - 1
    template_args: tuple[str, ...] = ()
    if index >= 0 and tokens[index].text == ">":
        opening = _opening_angle(tokens, index)
        if opening is None:
            return None
        template_args = _texts(tokens[opening + 1 : index])
        index = opening - 1
    if index >= 0 and tokens[index].text == ")":  # ``(kernel)<<<...>>>``
        return _parenthesised(tokens, index)
    if index < 0 or tokens[index].kind != "word":
        return None
    name = tokens[index].text
    while index >= 2 and tokens[index - 1].text in ("::", ".", "->") and tokens[index - 2].kind == "word":
        index -= 2
    return index, name, template_args


def _parenthesised(tokens: Sequence[Token], last: int) -> tuple[int, str, tuple[str, ...]] | None:
    depth = 0
    for index in range(last, -1, -1):
        depth += (tokens[index].text == ")") - (tokens[index].text == "(")
        if depth == 0:
            inner = _callee(tokens, last)
            return (index, inner[1], inner[2]) if inner else None
    return None


def _opening_angle(tokens: Sequence[Token], last: int) -> int | None:
    depth = 0
    brackets = 0
    for index in range(last, -1, -1):
        text = tokens[index].text
        brackets += (text in (")", "]", "}")) - (text in ("(", "[", "{"))
        if brackets < 0:
            return None
        if brackets == 0:
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return index
    return None


def _call(tokens: Sequence[Token], at: int) -> _Launch | None:
    """``cudaLaunchKernel(f, grid, block, args, shared, stream)`` and its relatives."""
    last = closing(tokens, at + 1)
    if last is None:
        return None
    parts = split_commas(tokens[at + 2 : last])
    is_extended = tokens[at].text.startswith("cudaLaunchKernelEx")
    target = parts[1 if is_extended else 0] if len(parts) > is_extended else []
    callee = _target(target)
    if callee is None:
        return None
    texts = [join(part) for part in parts]
    return _Launch(
        kernel=callee[0],
        template_args=callee[1],
        configuration=() if is_extended else (*texts[1:3], *texts[4:6]),
        args=tuple(texts[2:]) if tokens[at].text == "cudaLaunchKernelEx" else (),
        start=tokens[at].start,
        end=tokens[last].end,
        cooperative="Cooperative" in tokens[at].text,
    )


def _target(tokens: Sequence[Token]) -> tuple[str, tuple[str, ...]] | None:
    """The kernel in ``(const void*)ns::f<T>``, ``&f`` or ``reinterpret_cast<void*>(f)``."""
    end = len(tokens)
    while end and tokens[end - 1].text == ")" and _callee(tokens, end - 1) is not None:
        end -= 1
    callee = _callee(tokens, end)
    return (callee[1], callee[2]) if callee else None


def _texts(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(join(part) for part in split_commas(tokens))

"""What the assembler (ptxas) refuses though the language allows it: more memory than a GPU has for it.

Its other errors say nothing for certain: the code may need another GPU than the one it was asked for.
"""

import re
from collections.abc import Mapping

from kernel_forge.devices.compilers.messages import UserFile, token_range
from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location

_ASSEMBLER = re.compile(r"^ptxas (?:error|fatal)\b", re.MULTILINE)
_LIMIT = re.compile(
    r"^ptxas error\s*: (?:File|Entry function '(?P<entry>[^']+)') uses too much (?P<memory>[\w ]+?)"
    r" \(0x(?P<used>[0-9a-f]+) bytes, 0x(?P<most>[0-9a-f]+) max\)",
    re.MULTILINE,
)
_KERNEL = r"\b__global__\b[^;{{]*?\b(?P<name>{})\s*\("
_CONSTANT = re.compile(r"(?P<name>\b__constant__\b)")


def assembler_failed(log: str) -> bool:
    """Whether the assembler refused, so that what comes before it accepted."""
    return _ASSEMBLER.search(log) is not None


def over_limits(log: str, sources: Mapping[str, UserFile], origin: str) -> tuple[CompilerMessage, ...]:
    """An error for each limit that the assembler names, at the kernel or the first ``__constant__`` variable."""
    messages = []
    for match in _LIMIT.finditer(log):
        used, most = int(match["used"], 16), int(match["most"], 16)
        text = f"too much {match['memory']}: {used} bytes, a GPU has room for {most}"
        pattern = _CONSTANT if match["entry"] is None else re.compile(_KERNEL.format("|".join(_names(match["entry"]))))
        messages.append(CompilerMessage("error", text, _place(pattern, sources), origin))
    return tuple(messages)


def _names(linker_name: str) -> list[str]:
    """The identifiers in a linker's name: each stands after its length."""
    found = [re.escape(linker_name)]
    for digits in re.finditer(r"[1-9]\d*", linker_name):
        for start in range(digits.start(), digits.end()):
            length = int(linker_name[start : digits.end()])
            name = linker_name[digits.end() : digits.end() + length]
            if len(name) == length and name.isidentifier():
                found.append(name)
    return found


def _place(pattern: re.Pattern[str], sources: Mapping[str, UserFile]) -> Location | None:
    for file in sources.values():
        match = pattern.search(file.text)
        if match is not None:
            before = file.text[: match.start("name")]
            line = before.count("\n")
            return Location(file.path, token_range(file.text, line, len(before.rpartition("\n")[2].encode())))
    return None

"""Calls in device code that only a host has, found in the text where no CUDA compiler can judge."""

import re
from collections.abc import Mapping

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location, Position, Range

_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_NAMES = (
    "fopen freopen fdopen open creat system popen fork vfork execl execlp execle execv execvp execve socket unlink "
    "remove rename kill dlopen mmap syscall signal raise abort exit _exit getenv setenv pthread_create"
).split()
_CALL = re.compile(rf"(?<![\w.>])(?:::|std::)?({'|'.join(_NAMES)})\s*\(")
_NOT_A_TYPE = frozenset(("return", "else", "do", "case", "throw", "co_return"))


def host_calls(sources: Mapping[str, UserFile]) -> tuple[CompilerMessage, ...]:
    """An error for each call of a function that only a host has; a name that the user declares is the user's."""
    codes = {name: _NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), f.text) for name, f in sources.items()}
    own = {name for name in _NAMES if any(_declares(code, name) for code in codes.values())}
    found = []
    for file, code in codes.items():
        for match in _CALL.finditer(code):
            called = match.group(1)
            if called in own:
                continue
            line = code.count("\n", 0, match.start())
            column = match.start(1) - (code.rfind("\n", 0, match.start(1)) + 1)
            place = Range(Position(line, column), Position(line, column + len(called)))
            message = f"{called} cannot be called in device code"
            found.append(CompilerMessage("error", message, Location(sources[file].path, place), "Kernel Forge"))
    return tuple(found)


def _declares(code: str, name: str) -> bool:
    """Whether ``code`` has ``type name(``, ``type* name(...) {`` or a macro ``name``."""
    before = {m.group(1) for m in re.finditer(rf"\b(\w+)\s+{name}\s*\(", code)}
    pointer = re.search(rf"\w\s*[*&]\s*{name}\s*\([^()]*\)\s*\{{", code)
    macro = re.search(rf"#\s*define\s+{name}\b", code)
    return bool(before - _NOT_A_TYPE) or pointer is not None or macro is not None

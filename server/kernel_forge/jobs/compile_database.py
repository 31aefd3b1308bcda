"""How the user's own build compiles a file: include folders, macros and language standard of compile_commands.json.

The format is Clang's *JSON Compilation Database*; CMake writes one with ``CMAKE_EXPORT_COMPILE_COMMANDS=ON``.
Everything else in a command (architectures, warnings, optimisation) is not taken over: the device decides those. Nor is
``NDEBUG``: a verification is where assertions count; nor a standard before C++17, which the emulator's headers need.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "compile_commands.json"
_MOST_BYTES = 64 << 20
_MOST_RESPONSE_BYTES = 1 << 20
_MACRO = re.compile(r"[A-Za-z_]\w*(\([\w, .]*\))?")
_BREAK = re.compile(r"[\0\n\r\v\f]")
_INCLUDES = ("-I", "-isystem", "-iquote", "--include-path", "--system-include")
_WITH_VALUE = ("-std", "--std", "-D", "--define-macro", "-U", *_INCLUDES)
# What our compilers and NVIDIA's both take; they have neither GNU's extensions nor 23.
_STANDARDS = {"17": "17", "1z": "17", "20": "20", "2a": "20", "23": "20", "2b": "20"}
_RESPONSES = ("--options-file", "-optf")


@dataclass(frozen=True)
class CompileOptions:
    """What a command says; ``source`` is the database, None where there is none for the file.

    ``problem`` tells why a database that is there was not used.
    """

    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    source: str | None = None
    problem: str | None = None

    @property
    def note(self) -> str | None:
        """What a verdict must say of them."""
        taken = f"include folders, macros and language standard are those of {self.source}" if self.source else None
        return "; ".join(text for text in (taken, self.problem) if text) or None


def compile_options(path: str) -> CompileOptions:
    """The options of ``path`` in the nearest database: in its folder or one above it, or in a ``build`` folder there.

    The search ends at the root of a repository. A file that the database does not have (a header, a new file) has no
    options of its own, which ``problem`` tells.
    """
    try:
        return _read(Path(path))
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long or with a NUL, ...
        return CompileOptions(problem=f"{NAME} cannot be used: {error}")


def _read(file: Path) -> CompileOptions:
    found = next((d for d in _candidates(file.parent) if d.is_file()), None)
    if found is None:
        return CompileOptions()
    if found.stat().st_size > _MOST_BYTES:
        return CompileOptions(problem=f"{found} is larger than {_MOST_BYTES >> 20} MiB and was not read")
    try:
        entries = json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return CompileOptions(problem=f"{found} cannot be read: {error}")
    if not isinstance(entries, list):
        return CompileOptions(problem=f"{found} is no list of commands, so nothing was taken from it")
    entry = next((e for e in entries if _is_for(e, file)), None)
    if entry is None:
        return CompileOptions(problem=f"{found} has no entry for {file.name}, so nothing was taken from it")
    words = _words(entry)
    if words is None:
        return CompileOptions(problem=f"the command for {file.name} in {found} cannot be read")
    return _options(words, Path(str(entry.get("directory", found.parent))), str(found))


def _candidates(folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        yield place / NAME
        yield place / "build" / NAME
        if (place / ".git").exists():
            return


def _is_for(entry: object, file: Path) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return False
    named = Path(str(entry.get("directory", ""))) / entry["file"]
    return bool(named.name == file.name and named.resolve() == file.resolve())


def _words(entry: Mapping[str, Any]) -> list[str] | None:
    """The command of ``entry`` word by word."""
    arguments, command = entry.get("arguments"), entry.get("command")
    if isinstance(arguments, list) and all(isinstance(a, str) for a in arguments):
        return arguments
    try:
        return shlex.split(command) if isinstance(command, str) else None
    except ValueError:
        return None


def _options(words: Iterable[str], folder: Path, source: str) -> CompileOptions:
    include_dirs: list[str] = []
    defines: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    problems: list[str] = []
    rest = iter(_expanded(words, folder, problems))
    for word in rest:
        name, value = _option(word, rest)
        if name in _INCLUDES and value:
            include_dirs.append(str((folder / value).resolve()))
        elif name == "-D" and value:
            macro, equals, text = value.partition("=")
            if not _MACRO.fullmatch(macro) or _BREAK.search(text):
                problems.append(f"the macro {value[:60]!r} of {source} is none")
            elif macro != "NDEBUG":
                defines[macro] = text if equals else "1"
        elif name == "-U" and value:
            defines.pop(value, None)
        elif name == "-std" and value[-2:] in _STANDARDS:
            flags = (f"-std=c++{_STANDARDS[value[-2:]]}",)
    missing = next((d for d in include_dirs if not Path(d).is_dir()), None)
    if missing is not None:
        problems.append(f"the include folder {missing} of {source} does not exist")
    return CompileOptions(tuple(dict.fromkeys(include_dirs)), defines, flags, source, "; ".join(problems) or None)


def _expanded(words: Iterable[str], folder: Path, problems: list[str]) -> Iterator[str]:
    """The words with response files in their place; what cannot be read is added to ``problems``."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in _RESPONSES:
            yield word
            continue
        for file in (value if equals else next(rest, "")).split(","):
            try:
                yield from shlex.split(_response(folder / file))
            except (OSError, ValueError) as error:
                problems.append(f"the response file {file} was not read: {error}")


def _response(file: Path) -> str:
    if not file.is_file():  # a pipe would wait for somebody to write into it
        raise ValueError("it is no file")
    if file.stat().st_size > _MOST_RESPONSE_BYTES:
        raise ValueError(f"it is larger than {_MOST_RESPONSE_BYTES >> 20} MiB")
    return file.read_text(encoding="utf-8")


def _option(word: str, rest: Iterator[str]) -> tuple[str, str]:
    """Name and value of one option, whether they are one word or two."""
    if word in _WITH_VALUE:
        value = next(rest, "")
    elif word.partition("=")[0] in _WITH_VALUE:
        word, _, value = word.partition("=")
    elif word[:2] in ("-I", "-D", "-U"):
        word, value = word[:2], word[2:]
    else:
        return word, ""
    return {"--std": "-std", "--define-macro": "-D"}.get(word, word), value.removeprefix("=")

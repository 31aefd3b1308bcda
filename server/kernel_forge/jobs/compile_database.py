"""How the user's own build compiles a file: include folders, macros and language standard of compile_commands.json.

The format is Clang's *JSON Compilation Database*; CMake writes one with ``CMAKE_EXPORT_COMPILE_COMMANDS=ON``.
Everything else in a command (architectures, warnings, optimisation) is not taken over: the device decides those. Nor is
``NDEBUG``: a verification is where assertions count; nor a standard before C++17, which the emulator's headers need.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

NAME = "compile_commands.json"
_MOST_BYTES = 64 << 20
_INCLUDES = ("-I", "-isystem", "-iquote", "--include-path", "--system-include")
_WITH_VALUE = ("-std", "--std", "-D", "--define-macro", "-U", *_INCLUDES)
_STANDARDS = ("17", "1z", "20", "2a", "23", "2b")
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
    file = Path(path)
    found = next((d for d in _candidates(file.parent) if d.is_file()), None)
    if found is None:
        return CompileOptions()
    try:
        if found.stat().st_size > _MOST_BYTES:
            return CompileOptions(problem=f"{found} is larger than {_MOST_BYTES >> 20} MiB and was not read")
        entries = json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return CompileOptions(problem=f"{found} cannot be read: {error}")
    for entry in entries if isinstance(entries, list) else ():
        words = _words(entry, file)
        if words is not None:
            return _options(words, Path(str(entry.get("directory", found.parent))), str(found))
    return CompileOptions(problem=f"{found} has no entry for {file.name}, so nothing was taken from it")


def _candidates(folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        yield place / NAME
        yield place / "build" / NAME
        if (place / ".git").exists():
            return


def _words(entry: object, file: Path) -> list[str] | None:
    """The command of ``entry``, if it compiles ``file``."""
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return None
    named = Path(str(entry.get("directory", ""))) / entry["file"]
    if named.name != file.name or named.resolve() != file.resolve():
        return None
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
    rest = iter(_expanded(words, folder))
    for word in rest:
        name, value = _option(word, rest)
        if name in _INCLUDES and value:
            include_dirs.append(str((folder / value).resolve()))
        elif name == "-D" and value:
            macro, equals, text = value.partition("=")
            if macro != "NDEBUG":
                defines[macro] = text if equals else "1"
        elif name == "-U" and value:
            defines.pop(value, None)
        elif name == "-std" and value[-2:] in _STANDARDS:
            flags = (f"-std={value}",)
    missing = next((d for d in include_dirs if not Path(d).is_dir()), None)
    problem = None if missing is None else f"the include folder {missing} of {source} does not exist"
    return CompileOptions(tuple(dict.fromkeys(include_dirs)), defines, flags, source, problem)


def _expanded(words: Iterable[str], folder: Path) -> Iterator[str]:
    """The words with response files in their place."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _RESPONSES:
            try:
                yield from shlex.split((folder / (value if equals else next(rest, ""))).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
        else:
            yield word


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

"""Python of the user's: loading its files as modules, running them, and telling what they did wrong.

What runs here may raise anything, fork, leave its process, or change what all of the process uses. Whatever can be
seen afterwards is a :class:`ReferenceFailed`; for what ends the process, :data:`announce` tells beforehand who runs.
"""

import functools
import importlib.machinery
import importlib.util
import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.text import Location, Range
from kernel_forge.verify.limits import Expired, ReferenceFailed
from kernel_forge.verify.process_state import ProcessState

Announce = Callable[[str, Location | None], Callable[[], None]]
"""(what is about to run, its place) -> what to call when it has ended."""
announce: ContextVar[Announce] = ContextVar("announce", default=lambda _what, _place: lambda: None)
_names: set[str] = set()  # names in sys.modules that are files of users


class UserFiles:
    """The Python files that a source in ``folder`` names, each loaded once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[Path, ModuleType] = {}

    def function(self, path: str, name: str, location: Location | None = None) -> Callable[..., Any]:
        """A function of the file at ``path``; to call it is to run the user's code guarded.

        ``location`` is the place that names it, used where no line of the file is to blame.

        Raises:
            ReferenceFailed: no such file or function, or the file raises.
        """
        file = self._folder / path
        if file not in self._modules:
            self._modules[file] = _load(file, location)
        found = getattr(self._modules[file], name, None)
        if not callable(found):
            raise ReferenceFailed(f"{file} has no function {name}", location)
        return _guarded(found, name, file, location)


def _load(file: Path, location: Location | None) -> ModuleType:
    """The file as Python itself would import it, its folder first among those of modules."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would be waited for
            raise ReferenceFailed(f"{file} is not a regular file", location)
        text = file.read_bytes()
    except (OSError, ValueError) as error:
        raise ReferenceFailed(f"cannot read {file}: {getattr(error, 'strerror', None) or error}", location) from None
    with running(file.name, file, location):
        name = _module_name(file)
        loader = importlib.machinery.SourceFileLoader(name, str(file))
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        if spec is None:
            raise ReferenceFailed(f"{file} cannot be loaded", location)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and pickle look their module up there
        # Compiled from the text: a file saved twice in a second may have an outdated .pyc.
        exec(compile(text, str(file), "exec", dont_inherit=True), module.__dict__)
    return module


def _module_name(file: Path) -> str:
    """The file's own name, as its neighbours import it; another where a module of Python's or ours has that."""
    name = file.stem
    known = sys.modules.get(name)
    taken = known is not None and name not in _names
    if taken or name in sys.builtin_module_names or name in sys.stdlib_module_names:
        name = f"{name}_beside_kernel"
    _names.add(name)
    return name


def _guarded(function: Callable[..., Any], name: str, file: Path, location: Location | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with running(name, file, location):
            return function(*arguments, **named)

    call.__name__ = name  # a partial has none
    return call


@contextmanager
def running(what: str, file: Path, location: Location | None) -> Iterator[None]:
    """Run code of the user's: ``what`` of ``file``. Its folder is on the path, and what it breaks is restored.

    Raises:
        ReferenceFailed: it raised anything, or changed what the whole process uses.
    """
    ended = announce.get()(f"{what} of {file.name}" if what != file.name else what, location)
    state = ProcessState.now()
    folder = str(file.parent)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        with blame(what, location, file):
            yield
    finally:
        if os.getpid() != state.process:
            os._exit(0)  # a copy of us that the user's code forked off: the rest is not its job
        with suppress(ValueError):
            sys.path.remove(folder)
        changed = state.restore()
        ended()
    if changed:
        raise ReferenceFailed(f"{what} changes {changed}, which all of its process uses", location)


@contextmanager
def blame(what: str, location: Location | None, file: Path | None = None) -> Iterator[None]:
    """Whatever is raised inside was raised by ``what``, at the innermost line of ``file``, else at ``location``.

    Raises:
        ReferenceFailed: in place of anything but errors of ours.
    """
    try:
        yield
    except (UsageError, Expired, MemoryError):
        raise
    except BaseException as error:  # the user's code, and objects of its making, may raise anything
        place = _place(error, file) if file is not None else None
        raise ReferenceFailed(f"{what} raised {error_text(error)}", place or location) from None


def error_text(error: BaseException) -> str:
    """Type and message of an exception whose own methods may fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Expired:
        raise
    except BaseException:
        return f"{type(error).__name__} (its text cannot be made)"


def _place(error: BaseException, file: Path) -> Location | None:
    """The innermost line of ``file`` in the traceback."""
    if isinstance(error, SyntaxError) and error.lineno and error.filename == str(file):
        return Location(str(file), Range.of_line(error.lineno - 1))
    lines = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == str(file)]
    return Location(str(file), Range.of_line(lines[-1] - 1)) if lines else None

"""Under which circumstances a job runs its kernels, put together in the worker."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernel_forge.domain.record import Number, Platform, Subject
from kernel_forge.domain.spec import BufferArg, FunctionInit, FunctionReference, KernelSpec
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.requests import Circumstances, KernelRequest, Undertaking
from kernel_forge.ports import DeviceInfo
from kernel_forge.source import SourceFile

MOST_HEADERS = 200
_MOST_BYTES = 8 << 20
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_OF_THIS_MACHINE = ("cache", "workers", "worker")
_COMPILERS = ("compiler", "CUDA compiler, on this machine", "CUDA front end")


def platform_of(info: DeviceInfo, options: CompileOptions) -> Platform:
    """The device as it describes itself, with what its compiler is given."""
    facts = {name: value for name, value in info.facts.items() if name not in _OF_THIS_MACHINE}
    compilers = [facts[name] for name in _COMPILERS if name in facts]
    return Platform(
        info.name,
        info.basis,
        info.description,
        facts,
        "; ".join(compilers) or None,
        facts.get("driver cuda"),
        options.include_dirs,
        options.defines,
        options.flags,
    )


def subject_of(
    spec: KernelSpec, source: SourceFile, sidecar: tuple[str, str] | None, headers: Mapping[str, str]
) -> Subject:
    """What ``spec`` and ``source`` are, with the digests of the ``headers`` and of the spec's own Python files."""
    if spec.block_path == source.path:
        start, end = spec.block_range.start, spec.block_range.end
        text = source.text[source.offset(start) : source.offset(end)]
    else:
        text = sidecar[1] if sidecar is not None else ""
    files = dict(headers)
    for path in python_files(spec):
        found = _read(Path(source.path).parent / path)
        if found is not None:  # else the job says what is wrong with it
            files[found[0]] = hashlib.sha256(found[1]).hexdigest()
    return Subject(source.path, spec.kernel, digest_of(source.text), text, files)


def circumstances(
    request: KernelRequest,
    source: SourceFile,
    info: DeviceInfo,
    options: CompileOptions,
    kernels: Iterable[tuple[KernelSpec, Mapping[str, Number], int | None]],
) -> Circumstances:
    """Those of ``kernels``: each spec with its configuration and, where it is known already, its seed."""
    platform = platform_of(info, options)
    headers = local_headers(source.text, source.path, platform.include_dirs)
    undertakings = (
        Undertaking(subject_of(spec, source, request.sidecar, headers), dict(configuration), seed)
        for spec, configuration, seed in kernels
    )
    return Circumstances(platform, tuple(undertakings))


def local_headers(text: str, path: str, include_dirs: Sequence[str]) -> dict[str, str]:
    """SHA-256 of what ``text`` includes with quotes, and what that does, by path; at most :data:`MOST_HEADERS`.

    Which of them the preprocessor would really take is not asked: one too many only makes two runs less alike.
    """
    found: dict[str, str] = {}
    waiting = [(path, text)]
    while waiting:
        including, within = waiting.pop()
        for name in _QUOTED.findall(within):
            for folder in (Path(including).parent, *map(Path, include_dirs)):
                header = _read(folder / name)
                if header is not None:
                    if header[0] not in found and len(found) < MOST_HEADERS:
                        found[header[0]] = hashlib.sha256(header[1]).hexdigest()
                        waiting.append((header[0], header[1].decode("utf-8", "replace")))
                    break
    return found


def digest_of(text: str) -> str:
    """SHA-256 of a text as UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def python_files(spec: KernelSpec) -> Iterator[str]:
    """The Python files of the user's that verifying ``spec`` runs."""
    for reference in spec.references.values():
        if isinstance(reference, FunctionReference):
            yield reference.path
    for argument in spec.args:
        if isinstance(argument, BufferArg) and isinstance(argument.init, FunctionInit):
            yield argument.init.path


def _read(file: Path) -> tuple[str, bytes] | None:
    """The resolved path and the content of a regular file that can be read."""
    try:
        whole = file.resolve()
        if not whole.is_file() or whole.stat().st_size > _MOST_BYTES:
            return None
        return str(whole), whole.read_bytes()
    except (OSError, ValueError):
        return None

"""Compiling a request into an executable in the artifact cache."""

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernel_forge.devices.artifact_cache import ENTRY_FILE, META_FILE, ArtifactCache
from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.devices.compilers.supervision import Supervised
from kernel_forge.devices.emulator.rewrite import Translation, rewrite
from kernel_forge.devices.emulator.toolchain import OTHER_CACHE, BuildError, Toolchain, no_room, unusable_cache
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage

# Flags of nvcc that mean nothing to a host compiler; the rest is passed on where it is a language flag.
_PLACED = re.compile(r"^\S+:\d+:")
_PASSED_FLAG = re.compile(r"^(-D.+|-U.+|-std=\S+|--std=\S+)$")

DEFAULT_STANDARD = "c++17"


@dataclass(frozen=True, slots=True)
class Built:
    """A finished executable and the texts its messages and addresses speak of."""

    folder: Path
    from_cache: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The host compiler did not accept the code; ``messages`` may lie outside the user's files."""

    messages: tuple[CompilerMessage, ...]
    timed_out: bool = False

    @property
    def is_about_the_code(self) -> bool:
        """Whether every error has a place in the user's files."""
        return all(m.location is not None for m in self.messages if m.severity == "error")


def build(
    request: CompileRequest, tree: Translation, toolchain: Toolchain, cache: ArtifactCache, key: str
) -> Built | Refused:
    """Compile and link into the cache as ``key``; see :func:`artifact_key`.

    Raises:
        BuildError: the emulator's own parts do not build with this compiler.
    """
    try:
        folder = cache.build_folder()
    except OSError as error:
        raise unusable_cache(cache.root, error) from error
    try:
        refused = _compile(request, tree, toolchain, folder)
        if refused is not None and not refused.is_about_the_code and toolchain.mend():
            refused = _compile(request, tree, toolchain, folder)
        if refused is not None:
            return refused
        for name in [*tree.files, "kernel.o"]:
            (folder / name).unlink()
        sources = {name: [file.path, file.text] for name, file in tree.sources.items()}
        (folder / META_FILE).write_text(json.dumps(sources), encoding="utf-8")
        return Built(cache.adopt(key, folder), False)
    except OSError as error:
        raise unusable_cache(cache.root, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # adopted, it is no longer there


def _compile(
    request: CompileRequest,
    tree: Translation,
    toolchain: Toolchain,
    folder: Path,
) -> Refused | None:
    objects = toolchain.runtime_objects()
    flags = (*toolchain.prelude_flags(_standard(request)), *_include_flags(request))
    main = next(iter(tree.files))
    for name, text in tree.files.items():
        whole = _preamble(request) + text + _entry_code(request, tree) if name == main else text
        (folder / name).write_text(whole, encoding="utf-8", errors="surrogateescape")
    compiler = toolchain.compiler
    compile_command = [
        *compiler.command,
        *compiler.common_flags,
        *compiler.kernel_flags,
        f"-std={_standard(request)}",
        *flags,
        "-x",
        "c++",
        "-c",
        main,
        "-o",
        "kernel.o",
    ]
    link_command = [
        *compiler.command,
        "kernel.o",
        *(str(o) for o in objects),
        *(() if compiler.kind == "zig" else ("-no-pie",)),
        "-pthread",
        "-o",
        ENTRY_FILE,
    ]
    environment = {**toolchain.environment, "TMPDIR": str(folder), "HOME": str(folder)}
    commands = (compile_command, link_command)
    with Supervised(commands, time_limit=request.time_limit, folder=folder, environment=environment) as running:
        ended = running.wait()
    if ended.status == 0:
        return None
    if ended.status is None:
        return Refused((), timed_out=True)
    # The words of user code are no reason to think so: its messages name a place in it.
    full = next((m for line in ended.errors.splitlines() if (m := no_room(line)) and not _PLACED.match(line)), None)
    if full is not None:
        raise BuildError(f"the host compiler cannot write its output in {folder.parent}: {full}; {OTHER_CACHE}")
    messages = parse_messages(ended.errors, tree.sources, compiler.version)
    if not any(m.severity == "error" for m in messages):
        reason = next((x for x in ended.errors.splitlines() if x.strip()), "the compiler failed without a message")
        messages = (*messages, CompilerMessage("error", reason[:500], None, compiler.version))
    return Refused(messages)


def _standard(request: CompileRequest) -> str:
    return next((f.split("=", 1)[1] for f in _flags(request) if "std=" in f), DEFAULT_STANDARD)


def _include_flags(request: CompileRequest) -> list[str]:
    return [part for d in request.include_dirs for part in ("-I", d)]


def _preamble(request: CompileRequest) -> str:
    """Macros as text, not as ``-D``: gcc refuses its precompiled header where a macro it might use is set."""
    lines = ["#define main kf_user_main"]
    for flag in request.flags:
        if flag.startswith("-D"):
            name, _, value = flag[2:].partition("=")
            lines.append(f"#define {name} {value or '1'}")
        elif flag.startswith("-U"):
            lines.append(f"#undef {flag[2:]}")
    lines.extend(f"#define {name} {value}" for name, value in request.defines.items())
    return rewrite("\n".join(lines) + "\n", lambda *_: None).text


def _entry_code(request: CompileRequest, tree: Translation) -> str:
    """C++ that makes the kernels and symbols known to the runtime, on lines of its own file name."""
    settings = " ".join(dict.fromkeys(tree.settings))
    kernels = ", ".join(
        f"kf::kernel_entry<decltype(&{kernel}), &{kernel}, kf_enter>({json.dumps(kernel)})"
        for kernel in request.kernels
    )
    symbols = ", ".join(f"{{{json.dumps(name)}, (void*)&{name}, sizeof({name})}}" for name in request.symbols)
    return (
        f'\n#undef main\n#line 1 "<kernel entry>"\nstatic inline void kf_enter() {{ {settings} }}\n'
        f"extern const kf_kernel kf_kernels[] = {{{kernels}}};\n"
        f"extern const unsigned kf_kernel_count = {len(request.kernels)};\n"
        f"extern const kf_symbol kf_symbols[] = {{{symbols or '{nullptr, nullptr, 0}'}}};\n"
        f"extern const unsigned kf_symbol_count = {len(request.symbols)};\n"
    )


def _flags(request: CompileRequest) -> list[str]:
    """The user's flags that a host compiler can follow; the others are about code generation for a GPU."""
    return [flag.replace("--std=", "-std=") for flag in request.flags if _PASSED_FLAG.match(flag)]


def ignored_flags(request: CompileRequest) -> list[str]:
    """The user's flags that have no effect here."""
    return [flag for flag in request.flags if not _PASSED_FLAG.match(flag)]


def artifact_key(request: CompileRequest, tree: Translation, toolchain: Toolchain) -> str:
    """A digest of everything that an artifact and the opinion on its code depend on."""
    parts = [
        toolchain.key,
        json.dumps(tree.files),
        json.dumps(tree.device_files),
        json.dumps([file.path for file in tree.sources.values()]),
        json.dumps(tree.dropped),
        _entry_code(request, tree),
        json.dumps(dict(request.defines), sort_keys=True),
        json.dumps([request.flags, request.include_dirs, os.path.abspath(request.path)]),  # noqa: PTH100
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

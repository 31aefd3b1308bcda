"""Compiling a request into an executable in the artifact cache."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.devices.emulator.cache import ENTRY_FILE, ArtifactCache
from kernel_forge.devices.emulator.rewrite import ShadowTree
from kernel_forge.devices.emulator.toolchain import Toolchain, native_hash
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage

META_FILE = "sources.json"
# Flags of nvcc that mean nothing to a host compiler; the rest is passed on where it is a language flag.
_PASSED_FLAG = re.compile(r"^(-D.+|-U.+|-std=\S+|--std=\S+)$")


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


def build(request: CompileRequest, tree: ShadowTree, toolchain: Toolchain, cache: ArtifactCache) -> Built | Refused:
    """Compile and link.

    Raises:
        BuildError: the emulator's own parts do not build with this compiler.
    """
    entry = _entry_code(request, tree)
    main = next(iter(tree.files))
    flags = _flags(request)
    key = _key(request, tree, toolchain, entry, flags)
    found = cache.find(key)
    if found is not None:
        return Built(found, True)
    objects = toolchain.runtime_objects()
    standard = next((f.split("=", 1)[1] for f in flags if "std=" in f), "c++17")
    prelude = toolchain.prelude_flags(standard)
    folder = cache.build_folder()
    for name, text in tree.files.items():
        whole = _preamble(request) + text + entry if name == main else text
        (folder / name).write_text(whole, encoding="utf-8")
    compiler = toolchain.compiler
    compile_command = [
        *compiler.command,
        *compiler.common_flags,
        *compiler.kernel_flags,
        f"-std={standard}",
        *prelude,
        *(part for d in request.include_dirs for part in ("-I", d)),
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
    refused = _run(compile_command, folder, request, tree, compiler.version) or _run(
        link_command, folder, request, tree, compiler.version
    )
    if refused is not None:
        shutil.rmtree(folder, ignore_errors=True)
        return refused
    for name in [*tree.files, "kernel.o"]:
        (folder / name).unlink()
    (folder / META_FILE).write_text(json.dumps(tree.texts), encoding="utf-8")
    return Built(cache.adopt(key, folder), False)


def _run(command: list[str], folder: Path, request: CompileRequest, tree: ShadowTree, origin: str) -> Refused | None:
    zig = str(folder.parent.parent / "zig")
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "LC_ALL": "C",
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "ZIG_GLOBAL_CACHE_DIR": zig,
        "ZIG_LOCAL_CACHE_DIR": zig,
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        _, errors = process.communicate(timeout=request.time_limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Refused((), timed_out=True)
    if process.returncode == 0:
        return None
    messages = parse_messages(errors, tree.texts, origin)
    if not any(m.severity == "error" for m in messages):
        reason = next((line for line in errors.splitlines() if line.strip()), "the compiler failed without a message")
        messages = (*messages, CompilerMessage("error", reason[:500], None, origin))
    return Refused(messages)


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
    return "\n".join(lines) + "\n"


def _entry_code(request: CompileRequest, tree: ShadowTree) -> str:
    """C++ that makes the kernels and symbols known to the runtime, on lines of its own file name."""
    set_dynamic = " ".join(
        f"{name} = reinterpret_cast<{kind}*>(kf_dynamic_shared());" for kind, name in dict.fromkeys(tree.dynamic_arrays)
    )
    kernels = ", ".join(
        f"kf::kernel_entry<decltype(&{kernel}), &{kernel}, kf_enter>({json.dumps(kernel)})"
        for kernel in request.kernels
    )
    symbols = ", ".join(f"{{{json.dumps(name)}, (void*)&{name}, sizeof({name})}}" for name in request.symbols)
    return (
        f'\n#undef main\n#line 1 "<kernel entry>"\nstatic inline void kf_enter() {{ {set_dynamic} }}\n'
        f"extern const kf_kernel kf_kernels[] = {{{kernels}}};\n"
        f"extern const unsigned kf_kernel_count = {len(request.kernels)};\n"
        f"extern const kf_symbol kf_symbols[] = {{{symbols or '{nullptr, nullptr, 0}'}}};\n"
        f"extern const unsigned kf_symbol_count = {len(request.symbols)};\n"
    )


def _flags(request: CompileRequest) -> list[str]:
    """The user's flags that a host compiler can follow; the others are about code generation for a GPU."""
    return [flag.replace("--std=", "-std=") for flag in request.flags if _PASSED_FLAG.match(flag)]


def _key(request: CompileRequest, tree: ShadowTree, toolchain: Toolchain, entry: str, flags: list[str]) -> str:
    parts = [
        native_hash(),
        toolchain.compiler.version,
        " ".join(toolchain.compiler.command),
        json.dumps(tree.files),
        json.dumps(tree.originals),
        entry,
        json.dumps(dict(request.defines), sort_keys=True),
        json.dumps([flags, request.include_dirs]),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

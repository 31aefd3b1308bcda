"""nvcc as a compiler to machine code."""

import os
import re
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from kernel_forge.devices.compilers.gpu.assembler_log import read_resources
from kernel_forge.devices.compilers.gpu.code import Compiled, GpuCode, refused_architecture
from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.devices.compilers.nvcc import FOLDER_PREFIX, find_nvcc, with_macros, write_stubs
from kernel_forge.devices.compilers.opinion import DeviceCode, parent_folder
from kernel_forge.devices.compilers.supervision import Supervised
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable

_TABLE = re.compile(r"^\s*\.(?:global|const)\b[^;=]*\bkf_entries\[\d+\]\s*=\s*\{(?P<names>[^}]*)\};\s*$", re.MULTILINE)
_GENERIC = re.compile(r"generic\((.*)\)")


@cache
def find_nvcc_compiler() -> "Nvcc | None":
    """The nvcc that also judges, where it can say its version."""
    found = find_nvcc()
    version = None if found is None else _version(str(found.command))
    return None if found is None or version is None else Nvcc(str(found.command), f"nvcc {version}")


def _version(command: str) -> str | None:
    try:
        done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bV(\d+\.\d+\.\d+)", done.stdout)
    return match[1] if match else None


class Nvcc:
    """The compiler at ``command``."""

    def __init__(self, command: str, name: str) -> None:
        self.command = command
        self.name = name

    def compile(self, request: CompileRequest, code: DeviceCode, architecture: str) -> Compiled:
        """Compile to PTX, read the linker names off it, assemble.

        A table of addresses at the end of the source makes the front end instantiate the templates and write every
        linker name into the PTX, in order. It is taken out before assembling: a kernel whose address is taken is
        compiled for indirect calls, with other registers.
        """
        with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name:
            folder = Path(name)
            main = next(iter(code.files))
            for file, text in code.files.items():
                whole = f"{text}\n{_table(request)}" if file == main else text
                (folder / file).write_text(whole, encoding="utf-8", errors="surrogateescape")
            stubs = write_stubs(folder, code.dropped)
            deadline = time.monotonic() + request.time_limit
            front = [
                self.command,
                *("-ptx", f"-arch={architecture}", "-lineinfo", "-x", "cu"),
                *(() if any("std=" in f for f in request.flags) else ("-std=c++17",)),
                *with_macros(folder, request.defines),
                *(f"-I{d}" for d in (*request.include_dirs, parent_folder(request.path), str(stubs))),
                *request.flags,
                *(main, "-o", "kernel.ptx"),
            ]
            status, log = self._run(front, folder, deadline)
            if status is None:
                return Unavailable(f"{self.name} did not end within {request.time_limit:g} s")
            messages = parse_messages(log, code.sources, self.name)
            if status != 0:
                return self._failed(messages, log)
            ptx = (folder / "kernel.ptx").read_text(encoding="utf-8", errors="replace")
            table = _TABLE.search(ptx)
            if table is None:
                return Unavailable(f"{self.name} wrote PTX of a form that is not understood")
            (folder / "kernel.ptx").write_text(ptx[: table.start()] + "\n" + ptx[table.end() :], encoding="utf-8")
            registers = [f for f in request.flags if "maxrregcount" in f]
            back = [self.command, "-cubin", f"-arch={architecture}", "-lineinfo", "-Xptxas", "-v", *registers]
            status, log = self._run([*back, "kernel.ptx", "-o", "kernel.cubin"], folder, deadline)
            if status is None:
                return Unavailable(f"{self.name} did not end within {request.time_limit:g} s")
            if status != 0:
                return self._failed(parse_messages(log, code.sources, self.name), log)
            linker_names = [_GENERIC.sub(r"\1", n.strip()) for n in table["names"].split(",")]
            entries = dict(zip((*request.kernels, *request.symbols), linker_names, strict=True))
            by_linker_name = read_resources(log)
            resources = {k: by_linker_name[entries[k]] for k in request.kernels if entries[k] in by_linker_name}
            shown = tuple(m for m in messages if m.location is not None)
            return GpuCode((folder / "kernel.cubin").read_bytes(), entries, resources, shown, self.name)

    def _failed(self, messages: tuple[CompilerMessage, ...], log: str) -> CompileFailed | Unavailable:
        refused = refused_architecture(log)
        if refused is not None:
            return Unavailable(f"{self.name} does not compile for this GPU: {refused}")
        if not any(m.severity == "error" for m in messages):
            reason = next((line for line in log.splitlines() if "error" in line), log[:300] or "it gave no message")
            messages = (*messages, CompilerMessage("error", reason[:500], None, self.name))
        return CompileFailed(messages)

    def _run(self, command: list[str], folder: Path, deadline: float) -> tuple[int | None, str]:
        environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
        limit = max(0.0, deadline - time.monotonic())
        with Supervised([command], time_limit=limit, folder=folder, environment=environment) as running:
            ended = running.wait()
        return ended.status, ended.errors


def _table(request: CompileRequest) -> str:
    names = (*request.kernels, *request.symbols)
    addresses = ", ".join(f"(const void*)&{n}" for n in names)
    return f'#line 1 "<kernel table>"\n__device__ const void* kf_entries[] = {{{addresses}}};\n'

"""nvcc as a compiler to machine code."""

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from kernel_forge.devices.compilers.assembler_log import read_resources
from kernel_forge.devices.compilers.code import Compiled, DeviceSources, GpuCode
from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable

_TABLE = re.compile(r"^\s*\.(?:global|const)\b[^;=]*\bkf_entries\[\d+\]\s*=\s*\{(?P<names>[^}]*)\};\s*$", re.MULTILINE)
_GENERIC = re.compile(r"generic\((.*)\)")


@cache
def find_nvcc() -> "Nvcc | None":
    """nvcc of ``CUDA_HOME``, on the PATH, or in /usr/local/cuda."""
    candidates = [
        *(str(Path(root, "bin", "nvcc")) for v in ("CUDA_HOME", "CUDA_PATH") if (root := os.environ.get(v))),
        shutil.which("nvcc") or "",
        "/usr/local/cuda/bin/nvcc",
    ]
    for command in candidates:
        if command and os.access(command, os.X_OK):
            version = _version(command)
            if version is not None:
                return Nvcc(command, f"nvcc {version}")
    return None


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

    def compile(self, request: CompileRequest, sources: DeviceSources, architecture: str) -> Compiled:
        """Compile to PTX, read the linker names off it, assemble.

        A table of addresses at the end of the source makes the front end instantiate the templates and write every
        linker name into the PTX, in order. It is taken out before assembling: a kernel whose address is taken is
        compiled for indirect calls, with other registers.
        """
        with tempfile.TemporaryDirectory(prefix="kernel-forge-nvcc-") as name:
            folder = Path(name)
            main = next(iter(sources.device_texts))
            text = _without_missing(sources.device_texts[main], sources.dropped)
            quoted = request.path.replace("\\", "\\\\").replace('"', '\\"')
            source = f'#line 1 "{quoted}"\n{text}\n{_table(request)}'
            (folder / "kernel.cu").write_text(source, encoding="utf-8")
            front = [
                self.command,
                "-ptx",
                f"-arch={architecture}",
                "-lineinfo",
                *(() if any("std=" in f for f in request.flags) else ("-std=c++17",)),
                *(f"-D{k}={v}" for k, v in request.defines.items()),
                f"-I{Path(request.path).parent}",
                *(f"-I{d}" for d in request.include_dirs),
                *request.flags,
                "kernel.cu",
                "-o",
                "kernel.ptx",
            ]
            log = self._run(front, folder, request)
            if isinstance(log, Unavailable):
                return log
            messages = parse_messages(log[1], sources.texts, self.name)
            if log[0] != 0:
                return self._failed(messages, log[1])
            ptx = (folder / "kernel.ptx").read_text(encoding="utf-8", errors="replace")
            table = _TABLE.search(ptx)
            if table is None:
                return Unavailable(f"{self.name} wrote PTX of a form that is not understood")
            (folder / "kernel.ptx").write_text(ptx[: table.start()] + "\n" + ptx[table.end() :], encoding="utf-8")
            registers = [f for f in request.flags if "maxrregcount" in f]
            back = [self.command, "-cubin", f"-arch={architecture}", "-lineinfo", "-Xptxas", "-v", *registers]
            log = self._run([*back, "kernel.ptx", "-o", "kernel.cubin"], folder, request)
            if isinstance(log, Unavailable):
                return log
            if log[0] != 0:
                return self._failed(parse_messages(log[1], sources.texts, self.name), log[1])
            linker_names = [_GENERIC.sub(r"\1", n.strip()) for n in table["names"].split(",")]
            entries = dict(zip((*request.kernels, *request.symbols), linker_names, strict=True))
            by_linker_name = read_resources(log[1])
            resources = {k: by_linker_name[entries[k]] for k in request.kernels if entries[k] in by_linker_name}
            shown = tuple(m for m in messages if m.location is not None)
            return GpuCode((folder / "kernel.cubin").read_bytes(), entries, resources, shown, self.name)

    def _failed(self, messages: tuple[CompilerMessage, ...], log: str) -> CompileFailed:
        if not any(m.severity == "error" for m in messages):
            reason = next((line for line in log.splitlines() if "error" in line), log[:300] or "it gave no message")
            messages = (*messages, CompilerMessage("error", reason[:500], None, self.name))
        return CompileFailed(messages)

    def _run(self, command: list[str], folder: Path, request: CompileRequest) -> tuple[int, str] | Unavailable:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            output, _ = process.communicate(timeout=request.time_limit)
        except subprocess.TimeoutExpired:
            return Unavailable(f"{self.name} did not end within {request.time_limit:g} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        return process.returncode, output


def _table(request: CompileRequest) -> str:
    names = (*request.kernels, *request.symbols)
    addresses = ", ".join(f"(const void*)&{n}" for n in names)
    return f'#line 1 "<kernel table>"\n__device__ const void* kf_entries[] = {{{addresses}}};\n'


def _without_missing(text: str, dropped: tuple[str, ...]) -> str:
    """Includes of host libraries are left out: only kernels are wanted, and the library may not be installed."""
    for header in dropped:
        if not header.startswith(("cub/", "cuda/", "thrust/", "mma.h", "cuda_f", "curand_kernel", "cute/", "cutlass/")):
            text = re.sub(rf'^[ \t]*#[ \t]*include[ \t]*[<"]{re.escape(header)}[>"]', "", text, flags=re.MULTILINE)
    return text

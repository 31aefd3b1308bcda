"""nvcc as a judge of CUDA code: slower than NVRTC, but with the host's C++ library."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.opinion import DeviceCode, Opinion, instances, opinion_of, parent_folder
from kernel_forge.devices.compilers.supervision import Supervised
from kernel_forge.domain.launch import CompileRequest

TIME_LIMIT = 40.0
FOLDER_PREFIX = "kernel-forge-nvcc-"
_FLAGS = ("-ptx", "-arch=compute_90", "-rdc=true", "--expt-relaxed-constexpr", "-x", "cu")


class Nvcc:
    """A way to start nvcc."""

    name = "nvcc"

    def __init__(self, command: Path) -> None:
        self.command = command
        real = command.resolve()
        facts = (str(real), str(real.stat().st_mtime_ns), str(_FLAGS))
        self.identity = hashlib.sha256("\0".join(facts).encode()).hexdigest()

    def start(self, request: CompileRequest, code: DeviceCode) -> "RunningNvcc":
        """Begin to compile in a private folder."""
        folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        try:
            main = next(iter(code.files))
            for name, text in code.files.items():
                whole = text + _uses(instances(request.kernels)) if name == main else text
                (folder / name).write_text(whole, encoding="utf-8", errors="surrogateescape")
            stubs = write_stubs(folder, code.dropped)
            flags = [f for f in request.flags if f.startswith(("-D", "-U", "-std", "--std"))]
            command = [
                str(self.command),
                *_FLAGS,
                *flags,
                *(() if any("std=" in f for f in flags) else ("-std=c++17",)),
                *with_macros(folder, request.defines),
                *(part for d in request.include_dirs for part in ("-I", d)),
                "-I",
                parent_folder(request.path),
                "-I",
                str(stubs),
                main,
                "-o",
                "kernel.ptx",
            ]
            environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
            limit = min(TIME_LIMIT, request.time_limit)
            running = Supervised([command], time_limit=limit, folder=folder, environment=environment)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return RunningNvcc(running, folder, code.sources, self.name)


def write_stubs(folder: Path, dropped: Sequence[str]) -> Path:
    """A folder of empty headers, to be searched last: where the real header exists, it is taken."""
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in dropped:
        target = stubs / name
        if target.resolve().is_relative_to(stubs.resolve()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
    return stubs


def with_macros(folder: Path, defines: Mapping[str, str]) -> tuple[str, ...]:
    """Options that define macros: by a file, since nvcc takes ``-D`` apart at commas and quotes."""
    if not defines:
        return ()
    file = folder / "kf_macros.h"
    lines = (f"#define {name} {value}\n" for name, value in defines.items())
    file.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
    return ("-include", str(file))


class RunningNvcc:
    """One compilation."""

    def __init__(self, running: Supervised, folder: Path, sources: Mapping[str, UserFile], name: str) -> None:
        self._running = running
        self._folder = folder
        self._sources = sources
        self._name = name

    def result(self) -> Opinion:
        """Wait for the end (at most the time limit)."""
        try:
            with self._running:
                ended = self._running.wait()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        if ended.status is None or ended.status < 0:
            return Opinion(False, (), "it did not end in time", repeatable=False)
        return opinion_of(ended.errors, ended.status == 0, self._sources, self._name)

    def kill(self) -> None:
        """End the compilation if it still runs."""
        self._running.kill()


def _uses(kernels: list[str]) -> str:
    """Code that makes nvcc instantiate templates, on lines of its own file name."""
    return '\n#line 1 "<kernels>"\n' + "".join(f"static auto kf_used_{i} = &{k};\n" for i, k in enumerate(kernels))


def find_nvcc() -> Nvcc | None:
    """The nvcc of ``PATH``, or of a toolkit at ``CUDA_HOME`` or /usr/local/cuda; it is not started for this."""
    named = shutil.which("nvcc")
    places = [Path(named)] if named else []
    roots = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    places += [Path(root, "bin", "nvcc") for root in roots if root]
    return next((Nvcc(place) for place in places if place.is_file() and os.access(place, os.X_OK)), None)

"""The host's C++ compiler: finding it, its flags, and the parts that are built once per compiler."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kernel_forge.devices.compilers.supervision import Supervised
from kernel_forge.devices.emulator.parts import is_intact, publish, remove_damaged

BUILD_TIME_LIMIT = 300.0
OTHER_CACHE = "set KERNEL_FORGE_CACHE to another folder"
_NO_ROOM = re.compile(
    r"No space left on device|File too large|File size limit exceeded|Disk quota exceeded", re.IGNORECASE
)
_UNDEFINED = "alignment,float-cast-overflow,shift-exponent"
NATIVE = Path(__file__).resolve().parent / "native"
INCLUDE = NATIVE / "include"
RUNTIME = NATIVE / "runtime"
_INSTALL_HINT = 'no C++ compiler found: install one (apt-get install g++), or pip install "kernel-forge-lsp[compiler]"'


def no_compiler() -> str:
    """What to say where :func:`find_compiler` has found none."""
    named = os.environ.get("KERNEL_FORGE_CXX")
    if named:
        return f"KERNEL_FORGE_CXX is {named!r}, which is no C++ compiler that can be run; correct it, or unset it"
    return _INSTALL_HINT


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler. ``kind`` is gcc, clang or zig; ``version`` is its first line of ``--version``."""

    command: tuple[str, ...]
    kind: str
    version: str

    @property
    def common_flags(self) -> tuple[str, ...]:
        """Flags for everything that ends in one executable. Its address is fixed, so a PC names a line."""
        if self.kind == "zig":  # zig builds position independent and refuses the other
            return ("-fPIE", "-ftls-model=local-exec", "-fno-sanitize=undefined")
        return ("-fno-pie",)

    @property
    def kernel_flags(self) -> tuple[str, ...]:
        """Flags for the rewritten kernels.

        No contraction: whether a multiply and an add fuse is the compiler's choice on a GPU too, and the
        tolerance must cover both. Signed overflow wraps, as it does on the hardware.
        """
        flags = (
            "-O1",
            "-g1",
            "-w",
            "-fwrapv",
            "-fno-strict-aliasing",
            "-ffp-contract=off",
            "-fno-math-errno",
            # A null pointer is a fault to be seen, not a licence to drop the code; a frame may be larger than the gap
            # between two stacks.
            "-fno-delete-null-pointer-checks",
            "-fstack-clash-protection",
            # Answered by native/runtime/undefined.cpp. The results of the last two differ from a GPU's.
            f"-fsanitize={_UNDEFINED}",
            f"-fno-sanitize-recover={_UNDEFINED}",
            # Calls before accesses to memory, answered by native/runtime/accesses.cpp.
            "-fsanitize=thread",
            # What a kernel reads before it writes differs from any value it may hope for.
            "-ftrivial-auto-var-init=pattern",
        )
        if self.kind == "gcc":
            return (
                *flags,
                "--param",
                "tsan-instrument-func-entry-exit=0",
                "-fmax-errors=20",
                "-fno-diagnostics-show-caret",
                "-fdiagnostics-column-unit=byte",
            )
        return (
            *flags,
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            "-ferror-limit=20",
            "-fno-caret-diagnostics",
            "-fdiagnostics-print-source-range-info",
        )


@cache
def find_compiler() -> Compiler | None:
    """The compiler named by ``KERNEL_FORGE_CXX``, else g++, clang++, or the ziglang wheel."""
    named = os.environ.get("KERNEL_FORGE_CXX")
    if named:
        return _probe(tuple(named.split()))
    for command in ("g++", "clang++"):
        if shutil.which(command):
            found = _probe((command,))
            if found is not None:
                return found
    if find_spec("ziglang") is not None:
        return _probe((sys.executable, "-m", "ziglang", "c++"))
    return None


def _probe(command: tuple[str, ...]) -> Compiler | None:
    try:
        done = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    first = done.stdout.splitlines()[0] if done.stdout else ""
    is_zig = "ziglang" in command or command[0].endswith("zig")
    kind = "zig" if is_zig else "clang" if "clang" in first else "gcc"
    return Compiler(command, kind, first)


@cache
def native_hash() -> str:
    """A digest of every native source of ours: a changed runtime or header makes new artifacts."""
    digest = hashlib.sha256()
    for path in sorted(p for p in NATIVE.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(NATIVE)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class BuildError(Exception):
    """A part of ours does not build with this compiler: the emulator is unavailable."""


def unusable_cache(folder: Path, error: OSError) -> BuildError:
    """What to say where the cache folder cannot be written."""
    reason = error.strerror or error
    return BuildError(f"the cache folder {folder} cannot be used ({reason}); {OTHER_CACHE}")


class Toolchain:
    """A compiler with its prebuilt parts in ``cache_dir``; safe to share between threads and processes."""

    def __init__(self, compiler: Compiler, cache_dir: Path) -> None:
        self.compiler = compiler
        flags = (*compiler.common_flags, *compiler.kernel_flags)
        facts = (compiler.version, *compiler.command, "|", *flags, "|", native_hash())
        self.key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:20]
        self.folder = cache_dir / "toolchain" / self.key
        self._cache_dir = cache_dir
        self._zig = str(cache_dir / "zig")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every compilation, without what could change its result."""
        zig = {"ZIG_GLOBAL_CACHE_DIR": self._zig, "ZIG_LOCAL_CACHE_DIR": self._zig}
        return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", **zig}

    def runtime_objects(self) -> list[Path]:
        """The compiled runtime, built at first use.

        Raises:
            BuildError: it does not compile.
        """
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            library = pool.submit(self._build_zig_libraries) if self.compiler.kind == "zig" else None
            objects = list(pool.map(self._runtime_object, sorted(RUNTIME.glob("*.cpp"))))
            if library is not None:
                library.result()
        return objects

    def _runtime_object(self, source: Path) -> Path:
        target = self.folder / (source.stem + ".o")
        if not is_intact(target):
            flags = (*self.compiler.common_flags, "-std=c++17", "-O2", "-g1", "-pthread", "-I", str(INCLUDE))
            self._build([*self.compiler.command, *flags, "-c", str(source)], target)
        return target

    def _build_zig_libraries(self) -> None:
        """zig compiles its C++ library when it first links, which takes longer than a kernel may."""
        target, source = self.folder / "linked", self.folder / "linked.cpp"
        if not is_intact(target):
            self._make_folder(self.folder)
            try:
                source.write_text(
                    "#include <string>\nint main(int n, char**) { return std::string(n, 'x').size() == 0; }\n"
                )
            except OSError as error:
                raise unusable_cache(self._cache_dir, error) from error
            self._build([*self.compiler.command, "-pthread", str(source)], target)

    def prelude_flags(self, standard: str) -> tuple[str, ...]:
        """Flags that bring in CUDA's names, precompiled.

        Raises:
            BuildError: the headers do not compile.
        """
        header = INCLUDE / "kf_cuda.h"
        is_gcc = self.compiler.kind == "gcc"
        target = self.folder / standard / ("kf_cuda.h.gch" if is_gcc else "kf_cuda.h.pch")
        if not is_intact(target):
            flags = [*self.compiler.common_flags, *self.compiler.kernel_flags, f"-std={standard}", "-I", str(INCLUDE)]
            self._build([*self.compiler.command, *flags, "-x", "c++-header", str(header)], target)
        if is_gcc:
            return ("-I", str(INCLUDE), "-include", str(target.with_suffix("")))
        return ("-I", str(INCLUDE), "-include-pch", str(target))

    def mend(self) -> bool:
        """Remove parts that were damaged on disk, to be built anew; whether there were any."""
        return remove_damaged(self.folder)

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unusable_cache(self._cache_dir, error) from error

    def _build(self, command: list[str], target: Path) -> None:
        """Build into a private name, then rename: another process never sees half a file."""
        self._make_folder(target.parent)
        private = target.with_name(f".{os.getpid()}-{threading.get_ident()}-{target.name}")
        environment = {**self.environment, "TMPDIR": str(target.parent), "HOME": str(target.parent)}
        try:
            with Supervised(
                [[*command, "-o", str(private)]], time_limit=BUILD_TIME_LIMIT, environment=environment
            ) as running:
                ended = running.wait()
            if ended.status == 0 and private.exists():
                publish(private, target)
                return
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise unusable_cache(self._cache_dir, error) from error
            raise BuildError(f"{self.compiler.version}: {error}") from error
        finally:
            with contextlib.suppress(OSError):
                private.unlink(missing_ok=True)
        if ended.status == 0:
            raise BuildError(
                f"{' '.join(self.compiler.command)} ({self.compiler.version}) ended well but wrote nothing"
            )
        if ended.status is None:
            raise BuildError(f"{self.compiler.version} did not end within {BUILD_TIME_LIMIT:g} s")
        full = no_room(ended.errors)
        if full is not None:
            raise BuildError(f"{self.compiler.version} cannot write into {target.parent}: {full}; {OTHER_CACHE}")
        raise BuildError(f"{self.compiler.version} cannot build the emulator: {_first_error(ended.errors)}")


def no_room(errors: str) -> str | None:
    """The message of a compiler or linker that found no room for its output, if ``errors`` has one."""
    return next((line.strip() for line in errors.splitlines() if _NO_ROOM.search(line)), None)


def _first_error(text: str) -> str:
    return next((line for line in text.splitlines() if re.search(r"\berror\b", line)), text[:400])

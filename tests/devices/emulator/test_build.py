"""Compiling: what decides about a cached artifact, who judges, and that no compiler is left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_forge.devices.artifact_cache import ENTRY_FILE, META_FILE, ArtifactCache
from kernel_forge.devices.compilers.judge import Judge
from kernel_forge.devices.compilers.opinion import DeviceCode, FrontEnd, Opinion
from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.devices.emulator.build import Refused, artifact_key, build
from kernel_forge.devices.emulator.rewrite import translate
from kernel_forge.devices.emulator.toolchain import INCLUDE, BuildError, Compiler, Toolchain, find_compiler
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest
from kernel_forge.domain.outcome import CompileFailed, MemoryFault, Ran, RunOutcome, Unavailable
from kernel_forge.ports import Artifact
from kernel_forge.wiring import cache_folder
from tests.devices.compilers.test_supervision import all_gone, pids

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler is installed")
FAKE = Compiler(("c++",), "gcc", "fake 1.0")


def request(code: str = "y[threadIdx.x] = 1;", path: str = "/w/a.cu", before: str = "") -> CompileRequest:
    return CompileRequest(path, f"{before}__global__ void k(float* y) {{\n  {code}\n}}\n", ("k",))


def run(device: EmulatorDevice, asked: CompileRequest) -> RunOutcome | CompileFailed:
    """Compile ``k`` and run one block of 32 threads on 32 floats."""
    made = device.compile(asked)
    if not isinstance(made, Artifact):
        return made
    launch = Launch(asked.kernels[0], (BufferRef("y"),), (1, 1, 1), (32, 1, 1))
    return device.run(made, RunRequest((Buffer("y", DType.FLOAT32, 128),), (launch,)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> EmulatorDevice:
    """With the host compiler as the only judge."""
    device = EmulatorDevice(tmp_path_factory.mktemp("cache"))
    device.judge = Judge("g++", ())
    return device


# What the key depends on


def key(asked: CompileRequest, compiler: Compiler = FAKE) -> str:
    tree = translate(asked.path, asked.text, asked.include_dirs, lambda _: (), INCLUDE)
    return artifact_key(asked, tree, Toolchain(compiler, Path("/nowhere")))


def test_the_key_depends_on_everything_that_matters(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text("#define A 1\n")
    first = CompileRequest(str(tmp_path / "a.cu"), '#include "h.h"\n', ("k",))
    assert key(first) == key(replace(first, time_limit=1))
    keys = [
        key(first),
        key(replace(first, text=first.text + "\n")),
        key(replace(first, text="#include <mpi.h>\n")),
        key(replace(first, text="#include <omp.h>\n")),  # both are left out of what the host compiler sees
        key(replace(first, path=str(tmp_path / "b.cu"))),
        key(replace(first, kernels=("k", "l"))),
        key(replace(first, symbols=("c",))),
        key(replace(first, defines={"N": "1"})),
        key(replace(first, defines={"N": "2"})),
        key(replace(first, flags=("-DN=1",))),
        key(replace(first, flags=("-std=c++20",))),
        key(replace(first, include_dirs=("/elsewhere",))),
        key(first, replace(FAKE, version="fake 2.0")),
        key(first, replace(FAKE, command=("c++", "-m32"))),
        key(first, replace(FAKE, kind="clang")),
    ]
    (tmp_path / "h.h").write_text("#define A 2\n")
    keys.append(key(first))
    assert len(set(keys)) == len(keys)


# Nothing is left behind

DRIVER = """#!/bin/sh
case "$*" in *--version*) echo fake 1.0; exit;; esac
{before}sleep 600 & echo $! > "{mark}.child"; echo $$ > "{mark}.parent"; sleep 600
"""


def driver(folder: Path, before: str = "") -> Toolchain:
    """A compiler that starts another process and hangs, as a driver with its passes; the rest of it is prebuilt."""
    script = folder / "c++"
    script.write_text(DRIVER.format(before=before, mark=folder / "mark"))
    script.chmod(0o755)
    return Toolchain(Compiler((str(script),), "gcc", "fake 1.0"), folder / "cache")


def test_a_compile_timeout_leaves_no_process_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = driver(tmp_path)
    monkeypatch.setattr(toolchain, "runtime_objects", list)
    monkeypatch.setattr(toolchain, "prelude_flags", lambda standard: ())
    asked = replace(request(), time_limit=1.0)
    tree = translate(asked.path, asked.text, (), lambda _: (), INCLUDE)
    cache = ArtifactCache(tmp_path / "artifacts")
    assert build(asked, tree, toolchain, cache, "key") == Refused((), timed_out=True)
    assert all_gone(pids(tmp_path / "mark"))
    assert list(cache.root.iterdir()) == []


def test_a_toolchain_build_leaves_no_process_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_forge.devices.emulator.toolchain.BUILD_TIME_LIMIT", 1.0)
    toolchain = driver(tmp_path)
    with pytest.raises(BuildError, match=r"fake 1\.0 did not end within 1 s"):
        toolchain.runtime_objects()
    assert all_gone(pids(tmp_path / "mark"))
    assert list(toolchain.folder.iterdir()) == []


def test_a_killed_caller_leaves_no_process(tmp_path: Path) -> None:
    driver(tmp_path)
    code = (
        "import sys; from pathlib import Path; from kernel_forge.devices.emulator.toolchain import *\n"
        "Toolchain(Compiler((sys.argv[1],), 'gcc', 'fake 1.0'), Path(sys.argv[2])).runtime_objects()"
    )
    caller = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "c++"), str(tmp_path)])
    try:
        processes = pids(tmp_path / "mark")
    finally:
        caller.kill()
        caller.wait()
    assert all_gone(processes)


def test_the_compilers_environment_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """zig keeps its caches below ours, and nothing of the user's changes what is compiled."""
    monkeypatch.setenv("CPATH", "/evil")
    toolchain = driver(tmp_path, f"env > {tmp_path}/env; exit 1; ")
    with pytest.raises(BuildError):
        toolchain.runtime_objects()
    environment = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert environment["ZIG_GLOBAL_CACHE_DIR"] == environment["ZIG_LOCAL_CACHE_DIR"] == f"{tmp_path}/cache/zig"
    assert environment["TMPDIR"] == environment["HOME"] == str(toolchain.folder)
    assert "CPATH" not in environment and environment["LC_ALL"] == "C"


# The opinion is remembered


class CountingFrontEnd:
    """Accepts, or has no opinion; counts how often it is asked."""

    name = identity = "counting"

    def __init__(self, opinion: Opinion) -> None:
        self.opinion = opinion
        self.asked = 0

    def start(self, request: CompileRequest, code: DeviceCode) -> "CountingFrontEnd":
        self.asked += 1
        return self

    def result(self) -> Opinion:
        return self.opinion

    def kill(self) -> None:
        pass


def judged(device: EmulatorDevice, front_end: FrontEnd) -> EmulatorDevice:
    other = EmulatorDevice(device.cache_dir)
    other.judge = Judge("g++", (front_end,))
    return other


@needs_compiler
def test_a_warm_compile_starts_no_process(shared: EmulatorDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    front_end = CountingFrontEnd(Opinion(True, ()))
    device = judged(shared, front_end)
    asked = request("y[threadIdx.x] = 2;")
    cold = device.compile(asked)
    monkeypatch.setattr(subprocess, "Popen", None)
    warm = device.compile(asked)
    assert isinstance(cold, Artifact) and isinstance(warm, Artifact)
    assert warm.from_cache and warm.messages == cold.messages and front_end.asked == 1
    # Another judge has not been asked yet, and the artifact serves it too.
    other = CountingFrontEnd(Opinion(False, (), "not now", repeatable=False))
    other.identity = "other"
    for times in (1, 2):
        unsure = judged(shared, other).compile(asked)
        assert isinstance(unsure, Artifact) and unsure.from_cache
        assert [m.message for m in unsure.messages] == ["counting could not judge this code, so g++ did: not now"]
        assert other.asked == times  # what may end otherwise next time is not remembered


@needs_compiler
def test_damage_on_disk_is_mended(shared: EmulatorDevice) -> None:
    asked = request("y[threadIdx.x] = 3;")
    made = shared.compile(asked)
    assert isinstance(made, Artifact)
    folder = Path(made.handle)
    for file, content in ((META_FILE, b"[1"), (META_FILE, b'{"a": 1}'), (ENTRY_FILE, b"no program"), (ENTRY_FILE, b"")):
        (folder / file).write_bytes(content)
        outcome = run(shared, asked)
        assert isinstance(outcome, Unavailable | Ran)
        assert isinstance(run(shared, asked), Ran), file
    (folder / META_FILE).unlink()
    assert isinstance(run(shared, asked), Ran)


@needs_compiler
@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("kf_cuda.h.[gp]ch", lambda whole: whole[: len(whole) // 2]),
        ("order.o", lambda whole: whole[:100]),
        ("watch.o", lambda whole: bytes(len(whole))),
    ],
)
def test_a_damaged_part_of_the_toolchain_is_built_anew(
    shared: EmulatorDevice, part: str, damage: Callable[[bytes], bytes]
) -> None:
    """It is never taken for something that the kernel does."""
    assert shared.prepare() is None and shared.toolchain is not None
    (file,) = shared.toolchain.folder.rglob(part)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert isinstance(run(shared, request(f"/* {part} */ y[threadIdx.x] = 4;")), Ran)
    assert abs(file.stat().st_size - len(whole)) < 1000 and file.read_bytes() != damage(whole)


@needs_compiler
def test_an_intact_part_is_not_built_again(shared: EmulatorDevice) -> None:
    assert shared.prepare() is None and shared.toolchain is not None
    before = {p: p.stat().st_mtime_ns for p in shared.toolchain.folder.rglob("*")}
    assert isinstance(shared.compile(request("no_such_name();")), CompileFailed)
    assert not shared.toolchain.mend()
    assert {p: p.stat().st_mtime_ns for p in shared.toolchain.folder.rglob("*")} == before


@needs_compiler
def test_a_path_with_a_line_break_is_said_to_need_another_name(shared: EmulatorDevice) -> None:
    failed = shared.compile(request(path="/w/new\nline.cu"))
    assert isinstance(failed, Unavailable)
    assert failed.reason == "the path '/w/new\\nline.cu' has a line break, which a compiler cannot read; rename it"


def test_a_compiler_named_in_vain_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FORGE_CXX", "/nonexistent")
    monkeypatch.setattr("kernel_forge.devices.emulator.device.find_compiler", find_compiler.__wrapped__)
    device = EmulatorDevice(tmp_path)
    for failed in (device.prepare(), device.compile(request())):
        assert failed is not None and "KERNEL_FORGE_CXX is '/nonexistent'" in str(failed)
    assert "KERNEL_FORGE_CXX" in str(device.info().unavailable)


def test_a_full_disk_is_named_with_the_way_out(tmp_path: Path) -> None:
    toolchain = driver(tmp_path, "echo 'as: kf.s: No space left on device' >&2; exit 1; ")
    with pytest.raises(BuildError, match=r"No space left on device; set KERNEL_FORGE_CACHE to another folder"):
        toolchain.runtime_objects()


def test_the_cache_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers run in folders of their own, where a relative path would mean another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNEL_FORGE_CACHE", "rel/cache")
    assert cache_folder() == tmp_path / "rel" / "cache"
    monkeypatch.delenv("KERNEL_FORGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "xdg")
    assert cache_folder() == tmp_path / "xdg" / "kernel-forge"


# Places


@needs_compiler
@pytest.mark.parametrize("given", ["rel.cu", "./sub/../rel.cu", "sp ace (1):x/a.cu"])
def test_a_relative_path_has_lines_too(
    shared: EmulatorDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    fault = run(shared, request("y[threadIdx.x + 1] = 1;", given))
    assert isinstance(fault, MemoryFault) and fault.location is not None
    assert (fault.location.path, fault.location.range.start.line) == (given, 1)
    failed = shared.compile(request("y[0] = nonesuch;", given))
    assert isinstance(failed, CompileFailed)
    place = failed.messages[0].location
    assert place is not None and (place.path, place.range.start.line, place.range.start.column) == (given, 1, 9)


@needs_compiler
def test_headers_of_one_name_are_two_headers(shared: EmulatorDevice, tmp_path: Path) -> None:
    for folder, value in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part.h").write_text('#include "common.h"\n')
        (tmp_path / folder / "common.h").write_text(f"#pragma once\n#define {folder.upper()} {value}\n")
    before = '#include "a/part.h"\n#include "b/part.h"\n'
    device = EmulatorDevice(shared.cache_dir)  # with NVIDIA's judges, where there are any
    outcome = run(device, request("y[threadIdx.x] = A + 10 * B;", str(tmp_path / "a.cu"), before))
    assert isinstance(outcome, Ran) and set(outcome.contents["y"]) == {21.0}


# Macros

SHARED = "s[threadIdx.x] = threadIdx.x; __syncthreads(); y[threadIdx.x] = s[31 - threadIdx.x];"


@needs_compiler
@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("#define SMEM(T, n, N) \\\n  __shared__ T n[N]\n", f"SMEM(float, s, 32); {SHARED}"),
        ("#define SH __shared__\n", f"SH float s[32]; {SHARED}"),
        ("__shared__ float s[32];\n", SHARED),
        ("", f"switch (1) {{ case 1: __shared__ float s[32]; {SHARED} }}"),
    ],
)
def test_shared_memory_in_unusual_places_works_and_is_guarded(shared: EmulatorDevice, before: str, code: str) -> None:
    outcome = run(shared, request(code, before=before))
    assert isinstance(outcome, Ran)
    assert list(outcome.contents["y"]) == list(range(31, -1, -1))
    fault = run(shared, request(code.replace("s[threadIdx.x]", "s[threadIdx.x + 1]"), before=before))
    assert isinstance(fault, MemoryFault) and fault.buffer == "shared s"


@needs_compiler
def test_shared_memory_of_a_template_with_class_is_guarded(shared: EmulatorDevice) -> None:
    text = "template <class T> __global__ void k(T* y) {\n __shared__ T s[32]; s[threadIdx.x + 1] = 1; y[0] = s[0]; }\n"
    fault = run(shared, CompileRequest("/w/t.cu", text, ("k<float>",)))
    assert isinstance(fault, MemoryFault) and fault.buffer == "shared s"


@needs_compiler
@pytest.mark.parametrize(
    ("before", "code", "line"),
    [
        ('#define LANE(v) asm volatile("mov.u32 %0, %%laneid;" : "=r"(v))\n', "int v; LANE(v); y[0] = v;", 2),
        ("#define A asm volatile\n", 'A("nop;");', 0),
        ('asm("nop;");\n', "y[0] = 1;", 0),
        ("__global__ void c() {}\n#define GO(k) k<<<1, 32>>>()\n", "GO(c);", 3),
        ("#define SH(T) __shared__ T\n", "SH(float) s[4]; y[0] = s[0];", 0),
        ("#define DYN(T, n) extern __shared__ T n[];\nDYN(float, s)\n", "y[0] = s[0];", 0),
        ("__shared__ float s;\n", "y[0] = s;", 0),
    ],
)
def test_what_is_not_emulated_in_a_macro_is_no_verdict(
    shared: EmulatorDevice, before: str, code: str, line: int
) -> None:
    outcome = run(shared, request(code, before=before))
    assert isinstance(outcome, Unavailable), outcome
    assert outcome.location is not None and outcome.location.range.start.line == line


@needs_compiler
def test_a_macro_that_nobody_uses_does_not_matter(shared: EmulatorDevice) -> None:
    before = '#define LANE(v) asm("x" : "=r"(v))\n#define GO(k) k<<<1, 32>>>()\n#define SH(T) __shared__ T\n'
    assert isinstance(run(shared, request(before=before)), Ran)


# What a run may do


@needs_compiler
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
def test_a_run_starts_no_process_and_opens_no_connection(shared: EmulatorDevice) -> None:
    before = "#include <sys/socket.h>\n#include <spawn.h>\n#include <unistd.h>\n"
    spawn = 'char* a[] = {nullptr}; pid_t p; posix_spawn(&p, "/bin/true", nullptr, nullptr, a, a);'
    for code in ("int p[2]; socketpair(1, 1, 0, p);", spawn, "killpg(getpgrp(), 0);"):
        outcome = run(shared, request(f"{code} y[threadIdx.x] = 1;", before=f"#include <signal.h>\n{before}"))
        assert isinstance(outcome, Unavailable) and "function of the host" in outcome.reason


@needs_compiler
def test_a_run_changes_no_file_outside_its_folder(shared: EmulatorDevice, tmp_path: Path) -> None:
    if not _has_landlock():
        pytest.skip("this system has no Landlock")
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    before = "#include <fcntl.h>\n#include <unistd.h>\n#include <sys/stat.h>\n"
    code = (
        f'if (threadIdx.x == 0) y[0] = truncate("{kept}", 0);'
        f'if (threadIdx.x == 1) y[1] = mkdir("{tmp_path}/new", 0700);'
        f'if (threadIdx.x == 2) y[2] = (openat)(AT_FDCWD, "{kept}", O_RDWR);'
        f'if (threadIdx.x == 3) y[3] = (openat)(AT_FDCWD, "{kept}", O_RDONLY) >= 0;'
    )
    outcome = run(shared, request(code, before=before))
    assert isinstance(outcome, Ran)
    assert list(outcome.contents["y"][:4]) == [-1, -1, -1, 1]
    assert kept.read_text() == "as it was" and not (tmp_path / "new").exists()


def _has_landlock() -> bool:
    import ctypes

    # landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION); truncation is covered from version 3 on.
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 3


def test_waiting_for_a_short_run_takes_no_longer_than_the_run() -> None:
    from kernel_forge.devices.emulator.device import _wait

    process = subprocess.Popen(["sleep", "600"], process_group=0)
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        _wait(process, 0.2)
    assert 0.15 < time.monotonic() - start < 10
    os.kill(process.pid, 15)
    assert _wait(process, 20) == -15

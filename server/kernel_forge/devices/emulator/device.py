"""The emulator as a device."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernel_forge.devices.artifact_cache import BUILD_PREFIX, ENTRY_FILE, META_FILE, ArtifactCache, sweep, unrepeatable
from kernel_forge.devices.compilers.judge import Consideration, Judge
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.nvcc import FOLDER_PREFIX
from kernel_forge.devices.compilers.opinion import DeviceCode
from kernel_forge.devices.emulator.build import DEFAULT_STANDARD, Built, Refused, artifact_key, build, ignored_flags
from kernel_forge.devices.emulator.job import JOB, REPORT, TEXT, write_job
from kernel_forge.devices.emulator.opinions import recall, remember
from kernel_forge.devices.emulator.report import Event, ReportReader, read_events
from kernel_forge.devices.emulator.rewrite import NOT_EMULATED, Translation, translate
from kernel_forge.devices.emulator.timing import time_on_cpu
from kernel_forge.devices.emulator.toolchain import (
    INCLUDE,
    BuildError,
    Toolchain,
    find_compiler,
    no_compiler,
)
from kernel_forge.devices.shadow import HostCode, TooManyHeaders
from kernel_forge.domain.launch import CompileRequest, RunRequest
from kernel_forge.domain.measurement import Peaks, TimingPlan, Timings
from kernel_forge.domain.outcome import (
    CompileFailed,
    CompilerMessage,
    LaunchFailed,
    MemoryFault,
    Ran,
    RunOutcome,
    SanitizerFailure,
    TimedOut,
    Unavailable,
)
from kernel_forge.domain.performance import Counters
from kernel_forge.ports import SANITIZERS, Artifact, DeviceInfo, Trial

# The runtime ends itself at the limit and says where it was; the device waits this much longer for that.
GRACE_SECONDS = 3.0
RUN_PREFIX = "kernel-forge-run-"
CHECKS_ALWAYS = "the emulator checks every access, barrier and mask in every run; it has no sanitizer besides"


class EmulatorDevice:
    """Runs CUDA kernels on the CPU: compiled by the host's C++ compiler, one process per run.

    ``host_code`` finds host-only code in a CUDA text, which is then left out. ``workers`` is the number of
    OS threads for blocks (default: the CPUs this process may use).
    """

    def __init__(self, cache_dir: Path, host_code: HostCode = lambda _: (), workers: int | None = None) -> None:
        self.cache_dir = cache_dir
        self.host_code = host_code
        self.workers = workers or len(os.sched_getaffinity(0))
        self.cache = ArtifactCache(cache_dir / "artifacts")
        compiler = find_compiler()
        self.toolchain = None if compiler is None else Toolchain(compiler, cache_dir)
        self.judge = Judge("none" if compiler is None else compiler.version)
        sweep(self.cache.root, BUILD_PREFIX)
        sweep(Path(_run_root() or tempfile.gettempdir()), RUN_PREFIX)
        sweep(Path(tempfile.gettempdir()), FOLDER_PREFIX)

    def info(self) -> DeviceInfo:
        """What this device is; cheap and never raises."""
        facts = {"workers": str(self.workers), "cache": str(self.cache_dir)}
        if self.toolchain is not None:
            facts["compiler"] = self.toolchain.compiler.version
        facts["CUDA front end"] = self.judge.description
        return DeviceInfo(
            name="emulator",
            description="CUDA emulator on the CPU: right or wrong, never how fast",
            basis="emulated",
            unavailable=no_compiler() if self.toolchain is None else None,
            has_schedules=True,
            has_watch=True,
            has_places=True,
            has_misuse_checks=True,
            sanitizer=CHECKS_ALWAYS,
            facts=facts,
        )

    def prepare(self) -> Unavailable | None:
        """Compile the runtime and CUDA's names for the emulator, once per compiler and version of ours."""
        if self.toolchain is None:
            return Unavailable(no_compiler())
        try:
            self.toolchain.runtime_objects()
            self.toolchain.prelude_flags(DEFAULT_STANDARD)
        except BuildError as error:
            return Unavailable(str(error))
        return None

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        """Rewrite, compile and link; NVIDIA's own front end judges the code where it is installed."""
        if self.toolchain is None:
            return Unavailable(no_compiler())
        try:
            tree = translate(request.path, request.text, request.include_dirs, self.host_code, INCLUDE)
        except TooManyHeaders as error:
            return Unavailable(str(error), error.location)
        unnameable = next((name for name in tree.sources if "\n" in name or "\r" in name), None)
        if unnameable is not None:
            return Unavailable(f"the path {unnameable!r} has a line break, which a compiler cannot read; rename it")
        key = artifact_key(request, tree, self.toolchain)
        key = key if tree.is_whole else unrepeatable(key)
        folder = self.cache.find(key)
        messages = None if folder is None else recall(folder, self.judge.identity)
        if folder is not None and messages is not None:
            return _artifact(request, Built(folder, True), tree, messages)
        code = DeviceCode(tree.device_files, tree.sources, tuple(header for _, _, header in tree.dropped))
        with self.judge.consider(request, code) as opinion:
            try:
                built = Built(folder, True) if folder else build(request, tree, self.toolchain, self.cache, key)
            except BuildError as error:
                return Unavailable(str(error))
            if isinstance(built, Refused):
                return self._refusal(request, built, tree, opinion)
            verdict = opinion.on_success()
        if isinstance(verdict, CompileFailed):
            return verdict
        if opinion.repeatable:
            remember(built.folder, self.judge.identity, verdict)
        return _artifact(request, built, tree, verdict)

    def _refusal(
        self, request: CompileRequest, refused: Refused, tree: Translation, opinion: Consideration
    ) -> CompileFailed | Unavailable:
        if refused.timed_out:
            return Unavailable(f"the host compiler did not end within {request.time_limit:g} s")
        return opinion.on_refusal(refused.messages, tree.dropped, _lacking(refused))

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        """Run the launches in a process of their own."""
        if any(launch.cluster is not None for launch in request.launches):
            return Unavailable("the emulator does not have thread block clusters")
        built = Path(artifact.handle)
        executable = built / ENTRY_FILE
        if not executable.exists():
            return Unavailable("the compiled kernel has been evicted from the cache; compile again")
        try:
            facts = json.loads((built / META_FILE).read_text(encoding="utf-8"))
            sources = {name: UserFile(*file) for name, file in facts.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self.cache.discard(built)
            return Unavailable("the compiled kernel is damaged on disk; compile again")
        folder = Path(tempfile.mkdtemp(prefix=f"{RUN_PREFIX}{os.getpid()}-", dir=_run_root()))
        try:
            return self._run_in(folder, executable, sources, artifact, request)
        except OSError as error:
            return Unavailable(f"the emulator cannot prepare the run: {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sanitize(
        self, artifact: Artifact, request: RunRequest, tools: Sequence[str] = SANITIZERS
    ) -> tuple[SanitizerFailure, ...] | Unavailable:
        """Nothing of its own: every run is checked."""
        return Unavailable(CHECKS_ALWAYS)

    def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
        """CPU times: see :mod:`kernel_forge.devices.emulator.timing`."""
        return time_on_cpu(self.run, trials, plan)

    def peaks(self) -> Peaks | Unavailable:
        """None: an emulation has no speed worth comparing with."""
        return Unavailable("an emulation has no bandwidth or arithmetic of its own")

    def profile(self, artifact: Artifact, request: RunRequest) -> tuple[Counters, ...] | Unavailable:
        """None: there is no hardware to count."""
        return Unavailable("an emulation has no hardware counters")

    def _run_in(
        self,
        folder: Path,
        executable: Path,
        sources: Mapping[str, UserFile],
        artifact: Artifact,
        request: RunRequest,
    ) -> RunOutcome:
        files = write_job(folder, artifact, request, self.workers)
        # Same process group as ours: whoever cancels us by killing the group ends the run too.
        try:
            process = subprocess.Popen(
                [str(executable), JOB],
                cwd=folder,
                env={"LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            self.cache.discard(executable.parent)
            return Unavailable(f"the compiled kernel does not start ({error.strerror}); compile again")
        try:
            status = _wait(process, request.time_limit + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return TimedOut(request.time_limit, "the kernel did not end and had to be killed")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        events = read_events(folder / REPORT)
        return self._outcome(events, status, folder, files.outputs, ReportReader(executable, sources, request), request)

    def _outcome(
        self,
        events: list[Event],
        status: int,
        folder: Path,
        outputs: Mapping[str, Path],
        reader: ReportReader,
        request: RunRequest,
    ) -> RunOutcome:
        last = next((e for e in events if e["event"] not in ("watch", "done")), None)
        if last is not None:
            failure = reader.failure(last)
            if failure is not None:
                watch = next((e for e in events if e["event"] == "watch"), None)
                if isinstance(failure, MemoryFault) and watch is not None:
                    return replace(failure, watch_hit=reader.watch_hit(watch))
                return failure
        if status == -signal.SIGSYS:  # see native/runtime/sandbox.cpp
            return Unavailable("device code called a function of the host that starts a process or uses the network")
        done = next((e for e in events if e["event"] == "done"), None)
        if done is None or status != 0:
            return LaunchFailed("crash", f"the emulated run ended without a report (status {status})")
        dtypes = {buffer.name: buffer.dtype.numpy for buffer in request.buffers}
        contents = {name: np.fromfile(path, dtype=dtypes[name]) for name, path in outputs.items()}
        watch = next((e for e in events if e["event"] == "watch"), None)
        text = folder / TEXT
        return Ran(
            contents,
            text.read_text(encoding="utf-8", errors="replace") if text.exists() else "",
            float(done["seconds"]),
            None if watch is None else reader.watch_hit(watch),
        )


def _artifact(
    request: CompileRequest, built: Built, tree: Translation, messages: tuple[CompilerMessage, ...]
) -> Artifact:
    left_out = (
        CompilerMessage("note", f"<{header}> was left out: host libraries are not emulated", None, "emulator")
        for _, _, header in tree.dropped
    )
    ignored = (
        CompilerMessage("note", f"{flag} has no effect in the emulator", None, "emulator")
        for flag in ignored_flags(request)
    )
    return Artifact(str(built.folder), request.kernels, (*messages, *left_out, *ignored), built.from_cache)


def _lacking(refused: Refused) -> Unavailable | None:
    """What the rewriter could not translate, where that is why the host compiler refused."""
    for message in refused.messages:
        name = re.search(rf"{NOT_EMULATED}(\w+)", message.message)
        if name is not None:
            return Unavailable("not emulated: " + name.group(1).replace("_", " "), message.location)
        if "non-local lambda" in message.message:  # see rewrite/shared_memory.py
            return Unavailable("not emulated: shared memory declared by a macro outside a function", message.location)
    return None


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> int:
    """``process.wait(seconds)`` without its growing pauses, which are long for runs of a millisecond."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return process.wait(seconds)  # an older system
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(descriptor)
    return process.wait(0)


def _run_root() -> str | None:
    """Memory-backed storage for the buffers where there is any."""
    root = Path("/dev/shm")
    return str(root) if root.is_dir() and os.access(root, os.W_OK) else None

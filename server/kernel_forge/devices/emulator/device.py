"""The emulator as a device."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernel_forge.devices.compilers.judge import Judge
from kernel_forge.devices.emulator.build import META_FILE, Refused, build
from kernel_forge.devices.emulator.cache import BUILD_PREFIX, ENTRY_FILE, ArtifactCache, sweep
from kernel_forge.devices.emulator.job import JOB, REPORT, TEXT, write_job
from kernel_forge.devices.emulator.report import Event, ReportReader, read_events
from kernel_forge.devices.emulator.rewrite import HostCode, shadow_sources
from kernel_forge.devices.emulator.timing import time_on_cpu
from kernel_forge.devices.emulator.toolchain import (
    INCLUDE,
    INSTALL_HINT,
    BuildError,
    Toolchain,
    find_compiler,
)
from kernel_forge.domain.launch import CompileRequest, RunRequest
from kernel_forge.domain.measurement import TimingPlan, Timings
from kernel_forge.domain.outcome import (
    CompileFailed,
    CompilerMessage,
    LaunchFailed,
    MemoryFault,
    Ran,
    RunOutcome,
    TimedOut,
    Unavailable,
)
from kernel_forge.ports import Artifact, DeviceInfo, Trial

# The runtime ends itself at the limit and says where it was; the device waits this much longer for that.
GRACE_SECONDS = 3.0
RUN_PREFIX = "kernel-forge-run-"


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
        self.judge = Judge()
        sweep(self.cache.root, BUILD_PREFIX)
        sweep(Path(_run_root() or tempfile.gettempdir()), RUN_PREFIX)

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
            unavailable=INSTALL_HINT if self.toolchain is None else None,
            has_schedules=True,
            has_watch=True,
            has_places=True,
            has_misuse_checks=True,
            facts=facts,
        )

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        """Rewrite, compile and link; NVIDIA's own front end judges the code where it is installed."""
        if self.toolchain is None:
            return Unavailable(INSTALL_HINT)
        tree = shadow_sources(request.path, request.text, request.include_dirs, self.host_code, INCLUDE)
        with self.judge.consider(
            request, tree.device_texts, tree.headers, tuple(h for _, _, h in tree.dropped)
        ) as opinion:
            try:
                built = build(request, tree, self.toolchain, self.cache)
            except BuildError as error:
                return Unavailable(str(error))
            if isinstance(built, Refused):
                if built.timed_out:
                    return Unavailable(f"the host compiler did not end within {request.time_limit:g} s")
                return opinion.on_refusal(built.messages, tree.dropped)
            verdict = opinion.on_success()
        if isinstance(verdict, CompileFailed):
            return verdict
        notes = [*verdict]
        notes.extend(
            CompilerMessage("note", f"<{header}> was left out: host libraries are not emulated", None, "emulator")
            for _, _, header in tree.dropped
        )
        return Artifact(str(built.folder), request.kernels, tuple(notes), built.from_cache)

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        """Run the launches in a process of their own."""
        if any(launch.cluster is not None for launch in request.launches):
            return Unavailable("the emulator does not have thread block clusters")
        built = Path(artifact.handle)
        executable = built / ENTRY_FILE
        if not executable.exists():
            return Unavailable("the compiled kernel has been evicted from the cache; compile again")
        texts: Mapping[str, str] = json.loads((built / META_FILE).read_text(encoding="utf-8"))
        folder = Path(tempfile.mkdtemp(prefix=f"{RUN_PREFIX}{os.getpid()}-", dir=_run_root()))
        try:
            return self._run_in(folder, executable, texts, artifact, request)
        except OSError as error:
            return Unavailable(f"the emulator cannot prepare the run: {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
        """CPU times: see :mod:`kernel_forge.devices.emulator.timing`."""
        return time_on_cpu(self.run, trials, plan)

    def _run_in(
        self,
        folder: Path,
        executable: Path,
        texts: Mapping[str, str],
        artifact: Artifact,
        request: RunRequest,
    ) -> RunOutcome:
        files = write_job(folder, artifact, request, self.workers)
        # Same process group as ours: whoever cancels us by killing the group ends the run too.
        process = subprocess.Popen(
            [str(executable), JOB],
            cwd=folder,
            env={"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            status = process.wait(request.time_limit + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return TimedOut(request.time_limit, "the kernel did not end and had to be killed")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        events = read_events(folder / REPORT)
        return self._outcome(events, status, folder, files.outputs, ReportReader(executable, texts, request), request)

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


def _run_root() -> str | None:
    """Memory-backed storage for the buffers where there is any."""
    root = Path("/dev/shm")
    return str(root) if root.is_dir() and os.access(root, os.W_OK) else None

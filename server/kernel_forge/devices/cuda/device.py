"""A GPU behind the device port."""

import hashlib
import json
import re
import shlex
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_forge.devices.artifact_cache import ArtifactCache, unrepeatable
from kernel_forge.devices.compilers.gpu.code import GpuCode
from kernel_forge.devices.compilers.gpu.compiler import GpuCompiler
from kernel_forge.devices.compilers.opinion import DeviceCode
from kernel_forge.devices.cuda.artifacts import load_code, read_artifact, store
from kernel_forge.devices.cuda.measuring import CONTROL_KERNELS, control_trials, time_trials
from kernel_forge.devices.cuda.outcomes import run_outcome
from kernel_forge.devices.cuda.peaks import KERNELS as PEAK_KERNELS
from kernel_forge.devices.cuda.peaks import SOURCE as PEAKS_SOURCE
from kernel_forge.devices.cuda.peaks import kept_peaks, measure_peaks, read_peaks, write_peaks
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.profiler import profile
from kernel_forge.devices.cuda.sanitizer import MISSING, sanitize
from kernel_forge.devices.cuda.supervisor import WorkerUnavailable
from kernel_forge.devices.cuda.wire import POISON_KERNEL, Code, encode_runs
from kernel_forge.devices.shadow import HostCode, TooManyHeaders, shadow_sources
from kernel_forge.domain.launch import CompileRequest, RunRequest, Schedule
from kernel_forge.domain.measurement import Peaks, TimingPlan, Timings
from kernel_forge.domain.outcome import CompileFailed, RunOutcome, SanitizerFailure, Unavailable
from kernel_forge.domain.performance import Counters
from kernel_forge.domain.stream_order import in_order
from kernel_forge.ports import SANITIZERS, Artifact, DeviceInfo, Trial

# The worker ends a run at its limit by itself; memory must be filled and read as well.
GRACE_SECONDS = 10.0
RETRY_SECONDS = 30.0
_UNNAMEABLE = re.compile(r"[\0\n\r\"]")


def local_worker(ordinal: int) -> tuple[str, ...]:
    """The command that serves GPU ``ordinal`` of this machine."""
    # Not -m alone: that would run an argparse.py of the current folder, which nobody may have said to trust.
    return (sys.executable, "-P", "-m", "kernel_forge", "worker", "--gpu", str(ordinal))


class CudaDevice:
    """One GPU, served by a worker process; a remote one by a command that starts the worker there.

    ``host_code`` finds host-only code in a CUDA text, which is then left out.
    """

    def __init__(
        self,
        name: str,
        cache_dir: Path,
        command: Sequence[str],
        host_code: HostCode = lambda _: (),
        compiler: GpuCompiler | None = None,
    ) -> None:
        self.name = name
        self.host_code = host_code
        self.compiler = compiler or GpuCompiler()
        self.folder = cache_dir
        self.cache = ArtifactCache(cache_dir / "gpu-artifacts")
        self.pool = WorkerPool(command)
        self._lock = threading.Lock()
        self._facts: Mapping[str, Any] | str | None = None
        self._asked = 0.0
        self._poison_code: Code | None = None
        self._own: dict[Path, Artifact] = {}
        self._peaks: Peaks | None = None
        self.compilations = 0

    def facts(self) -> Mapping[str, Any]:
        """What the worker says of its GPU: asked once, and again after a while where it was unavailable.

        Raises:
            WorkerUnavailable: there is no worker to ask.
        """
        with self._lock:
            again = isinstance(self._facts, str) and time.monotonic() - self._asked > RETRY_SECONDS
            if self._facts is None or again:
                self._asked = time.monotonic()
                try:
                    self._facts = self.pool.facts()
                except WorkerUnavailable as error:
                    self._facts = str(error)
            if isinstance(self._facts, str):
                raise WorkerUnavailable(self._facts)
            return self._facts

    def info(self) -> DeviceInfo:
        """What this device is; the first call starts the worker."""
        info = DeviceInfo(self.name, "NVIDIA GPU through PyCUDA", "measured", has_schedules=False, has_watch=False)
        own = {
            "worker": shlex.join(self.pool.command),
            "CUDA compiler, on this machine": self.compiler.description,
        }
        try:
            facts = self.facts()
        except WorkerUnavailable as error:
            where = "" if self.pool.command[0] == sys.executable else f"the worker of {self.name} cannot be used: "
            return replace(info, basis="not measured", unavailable=f"{where}{error}", facts=own)
        return replace(
            info,
            description=f"{facts['name']}, compute capability {facts['capability']}",
            basis=f"measured on {facts['name']}",
            unavailable=self.compiler.unavailable,
            sanitizer=None if "compute_sanitizer" in facts else MISSING,
            facts={**own, **{k.replace("_", " "): str(v) for k, v in facts.items()}},
        )

    def prepare(self) -> Unavailable | None:
        """Start the worker, which makes the GPU's context."""
        unavailable = self.info().unavailable
        return None if unavailable is None else Unavailable(unavailable)

    def architecture(self) -> str:
        """The target for this GPU: the architecture-specific one where there is one, since the code runs nowhere else.

        Raises:
            WorkerUnavailable: there is no worker to ask.
        """
        major, _, minor = str(self.facts()["capability"]).partition(".")
        return f"sm_{major}{minor}" + ("a" if int(major) >= 9 else "")

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        """Compile for this GPU's own architecture, from the cache where nothing changed."""
        try:
            architecture = self.architecture()
        except WorkerUnavailable as error:
            return Unavailable(str(error))
        return self.compile_for(request, architecture)

    def compile_for(self, request: CompileRequest, architecture: str) -> Artifact | CompileFailed | Unavailable:
        """Compile for any architecture; needs no GPU."""
        unnameable = next((p for p in (request.path, *request.include_dirs) if _UNNAMEABLE.search(p)), None)
        if unnameable is not None:
            return Unavailable(
                f"the path {unnameable!r} has a quote or a line break, which a CUDA compiler cannot read"
            )
        try:
            tree = shadow_sources(request.path, request.text, request.include_dirs, self.host_code)
        except TooManyHeaders as error:
            return Unavailable(str(error), error.location)
        sources = DeviceCode(tree.device_files, tree.sources, tuple(header for _, _, header in tree.dropped))
        key = self._key(request, sources, architecture)
        key = key if tree.is_whole else unrepeatable(key)
        found = self.cache.find(key)
        artifact = None if found is None else read_artifact(found, request, from_cache=True)
        if artifact is not None:
            return artifact
        if found is not None:
            self.cache.discard(found)  # damaged, or evicted just now
        self.compilations += 1
        code = self.compiler.compile(request, sources, architecture)
        if not isinstance(code, GpuCode):
            return code
        try:
            made = read_artifact(store(self.cache, key, code, sources), request, from_cache=False)
        except OSError as error:
            return Unavailable(f"the cache {self.cache.root} cannot be used: {error.strerror or error}")
        return made or Unavailable("the compiled kernel has been evicted from the cache; compile again")

    def _key(self, request: CompileRequest, sources: DeviceCode, architecture: str) -> str:
        parts = [
            self.compiler.description,
            architecture,
            request.path,
            json.dumps([sources.files, sources.dropped]),
            json.dumps([request.kernels, request.symbols, sorted(request.defines.items())]),
            json.dumps([request.include_dirs, request.flags]),
        ]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        """Run the launches on the GPU, on fresh guarded memory."""
        loaded = load_code(artifact)
        if isinstance(loaded, Unavailable):
            return loaded
        code, texts = loaded
        # What is queued first begins first where streams do not wait for each other: the second run shows it.
        schedule = Schedule.REVERSE if request.poison_seed % 2 else Schedule.FORWARD
        request = replace(request, launches=tuple(in_order(request.launches, schedule, 0)))
        poison = self._poison()
        if isinstance(poison, Unavailable):
            return poison
        header, payload = encode_runs([(code, request)], poison, keeping=True)
        limit = request.time_limit + GRACE_SECONDS
        try:
            answer = self.pool.ask({"task": "run", **header}, payload, limit)
        except WorkerUnavailable as error:
            return Unavailable(str(error))
        return run_outcome(answer, request, texts)

    def sanitize(
        self, artifact: Artifact, request: RunRequest, tools: Sequence[str] = SANITIZERS
    ) -> tuple[SanitizerFailure, ...] | Unavailable:
        """Run under compute-sanitizer, once per tool, on the machine of the GPU."""
        return sanitize(self.pool, artifact, request, tools)

    def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
        """Time ``trials`` against each other on the GPU; see :mod:`kernel_forge.devices.cuda.worker.timing`."""
        controls = self._controls()
        if isinstance(controls, Unavailable):
            return controls
        return time_trials(self.pool, controls, trials, plan, self.info().basis)

    def peaks(self) -> Peaks | Unavailable:
        """Copy bandwidth and arithmetic peaks, measured once per GPU and driver (or by this process, where the clocks
        moved meanwhile: the next process measures again)."""
        if self._peaks is not None:
            return self._peaks
        found = self._find_peaks()
        if isinstance(found, Peaks):
            self._peaks = found
        return found

    def _find_peaks(self) -> Peaks | Unavailable:
        try:
            facts = self.facts()
        except WorkerUnavailable as error:
            return Unavailable(str(error))
        file = kept_peaks(self.folder / "peaks", facts)
        kept = read_peaks(file)
        if kept is not None:
            return kept
        made = self._own_kernels(PEAKS_SOURCE, PEAK_KERNELS)
        found = made if isinstance(made, Unavailable) else measure_peaks(self.time, made, facts, self.info().basis)
        if isinstance(found, Unavailable):
            return found
        peaks, is_steady = found
        if is_steady:
            write_peaks(file, peaks)
        return peaks

    def profile(self, artifact: Artifact, request: RunRequest) -> tuple[Counters, ...] | Unavailable:
        """Run under ncu on the machine of the GPU."""
        return profile(self.pool, artifact, request)

    def _controls(self) -> list[Trial] | Unavailable:
        made = self._own_kernels(Path(__file__).with_name("control.cu"), CONTROL_KERNELS)
        return made if isinstance(made, Unavailable) else control_trials(made, int(self.facts()["multiprocessors"]))

    def _poison(self) -> Code | Unavailable:
        """What fills shared memory before a launch; compiled or looked up once."""
        if self._poison_code is None:
            made = self._own_kernels(Path(__file__).with_name("poison.cu"), (POISON_KERNEL,))
            loaded = made if isinstance(made, Unavailable) else load_code(made)
            if isinstance(loaded, Unavailable):
                return loaded
            self._poison_code = loaded[0]
        return self._poison_code

    def _own_kernels(self, path: Path, kernels: tuple[str, ...]) -> Artifact | Unavailable:
        known = self._own.get(path)
        if known is not None and Path(known.handle).exists():  # it may have been evicted from the cache
            return known
        made = self.compile(CompileRequest(str(path), path.read_text(encoding="utf-8"), kernels))
        if isinstance(made, CompileFailed):
            return Unavailable(f"{path.name} of Kernel Forge does not compile: {made.messages[0].message}")
        if isinstance(made, Artifact):
            self._own[path] = made
        return made

    def close(self) -> None:
        """End the worker."""
        self.pool.close()

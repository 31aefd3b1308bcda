"""NVRTC as a judge of CUDA code, in a child process."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernel_forge.devices.compilers.assembler_limits import assembler_failed, over_limits
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.nvrtc_library import NvrtcPaths
from kernel_forge.devices.compilers.opinion import DeviceCode, Opinion, instances, opinion_of, parent_folder
from kernel_forge.domain.launch import CompileRequest

TIME_LIMIT = 20.0
# Not -m alone: that would let a json.py of the current folder take the place of Python's.
CHILD_COMMAND = (sys.executable, "-P", "-m", "kernel_forge.devices.compilers.nvrtc_child")
_CHILD = Path(__file__).with_name("nvrtc_child.py")
# nvcc has the host's C++ library and the device runtime, NVRTC has not.
_LACKING = re.compile(r'namespace "std"|name followed by "::"|std::|device-side kernel launch could not be processed')


class Nvrtc:
    """A way to start NVRTC."""

    def __init__(self, paths: NvrtcPaths) -> None:
        self.paths = paths
        self.name = paths.name
        library = paths.library.resolve()
        facts = (str(library), str(library.stat().st_mtime_ns), _CHILD.read_text(encoding="utf-8"))
        self.identity = hashlib.sha256("\0".join(facts).encode()).hexdigest()

    def start(self, request: CompileRequest, code: DeviceCode) -> "RunningNvrtc":
        """Begin to compile in a child process."""
        main = next(iter(code.files))
        job = {
            "library": str(self.paths.library),
            "includes": [*(str(p) for p in self.paths.includes), *request.include_dirs, parent_folder(request.path)],
            "text": code.files[main],
            "headers": {name: text for name, text in code.files.items() if name != main},
            "dropped": list(code.dropped),
            "name": main,
            "defines": dict(request.defines),
            "flags": [f for f in request.flags if f.startswith(("-D", "-U", "-std", "--std"))],
            "expressions": instances(request.kernels),
            "parent": os.getpid(),
        }
        process = subprocess.Popen(
            CHILD_COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        limit = min(TIME_LIMIT, request.time_limit)
        return RunningNvrtc(process, json.dumps(job).encode(), code.sources, self.name, limit)


class RunningNvrtc:
    """One compilation in a child."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        job: bytes,
        sources: Mapping[str, UserFile],
        name: str,
        time_limit: float,
    ) -> None:
        self._process = process
        self._sources = sources
        self._name = name
        self._time_limit = time_limit
        self._job = job

    def result(self) -> Opinion:
        """Wait for the end (at most the time limit)."""
        try:
            output, _ = self._process.communicate(self._job, timeout=self._time_limit)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return Opinion(False, (), f"it did not end within {self._time_limit:g} s", repeatable=False)
        try:
            answer = json.loads(output)
        except json.JSONDecodeError:
            return Opinion(False, (), "it crashed", repeatable=False)
        opinion = opinion_of(answer["log"], bool(answer["accepted"]), self._sources, self._name)
        if assembler_failed(answer["log"]):
            limits = over_limits(answer["log"], self._sources, self._name)
            return Opinion(not limits, (*opinion.messages, *limits))
        lacking = next((m for m in opinion.messages if m.severity == "error" and _LACKING.search(m.message)), None)
        if not opinion.accepted and lacking is not None:
            return replace(opinion, inconclusive=lacking.message)
        return opinion

    def kill(self) -> None:
        """End the child if it still runs."""
        self._process.kill()

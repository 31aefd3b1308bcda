"""NVRTC as a judge of CUDA code, in a child process."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.devices.compilers.nvrtc_library import NvrtcPaths, find_nvrtc
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage

TIME_LIMIT = 20.0
_HOST_LIBRARY = re.compile(r'namespace "std"|name followed by "::"|std::')


@dataclass(frozen=True, slots=True)
class Opinion:
    """``conclusive`` is False where the front end failed for a reason that says nothing about the kernel."""

    conclusive: bool
    accepted: bool
    messages: tuple[CompilerMessage, ...]


@cache
def find_front_end() -> "FrontEnd | None":
    """NVRTC, where the toolkit or its wheels are installed; ``KERNEL_FORGE_NVRTC=0`` turns it off."""
    if os.environ.get("KERNEL_FORGE_NVRTC") == "0":
        return None
    paths = find_nvrtc()
    return None if paths is None else FrontEnd(paths)


class FrontEnd:
    """A way to start NVRTC."""

    def __init__(self, paths: NvrtcPaths) -> None:
        self.paths = paths
        self.name = paths.name

    def start(
        self, request: CompileRequest, texts: Mapping[str, str], headers: Mapping[str, str], dropped: tuple[str, ...]
    ) -> "Running":
        """Begin to compile ``request`` in a child process; see :meth:`Judge.consider`."""
        main = next(iter(texts.values()))
        job = {
            "library": str(self.paths.library),
            "includes": [str(p) for p in self.paths.includes] + list(request.include_dirs),
            "text": main,
            "headers": {name: texts[path] for name, path in headers.items()},
            "header_paths": dict(headers),
            "dropped": list(dropped),
            "name": request.path,
            "defines": dict(request.defines),
            "flags": [f for f in request.flags if f.startswith(("-D", "-U", "-std", "--std"))],
            "host_folder": str(Path(request.path).parent),
        }
        process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("nvrtc_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return Running(process, json.dumps(job).encode(), texts, self.name)


class Running:
    """One compilation in a child."""

    def __init__(self, process: "subprocess.Popen[bytes]", job: bytes, texts: Mapping[str, str], name: str) -> None:
        self._process = process
        self._texts = texts
        self._name = name
        self._output = b""
        self._thread = threading.Thread(target=self._communicate, args=(job,), daemon=True)
        self._thread.start()

    def _communicate(self, job: bytes) -> None:
        try:
            self._output, _ = self._process.communicate(job, timeout=TIME_LIMIT)
        except (subprocess.TimeoutExpired, OSError, ValueError):
            self._process.kill()
            self._process.wait()

    def result(self) -> Opinion:
        """Wait for the end (at most the time limit)."""
        self._thread.join()
        try:
            answer = json.loads(self._output)
        except json.JSONDecodeError:
            return Opinion(False, False, ())
        messages = tuple(m for m in parse_messages(answer["log"], self._texts, self._name) if m.location is not None)
        if any(_HOST_LIBRARY.search(m.message) for m in messages):
            return Opinion(False, False, ())  # nvcc has the host's C++ library, NVRTC has not
        errors = [m for m in messages if m.severity == "error"]
        accepted = bool(answer["accepted"])
        # An error outside the user's files is about NVIDIA's or the C library's headers, not about the kernel.
        return Opinion(accepted or bool(errors), accepted, messages)

    def close(self) -> None:
        """End the child if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._thread.join()

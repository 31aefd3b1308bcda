"""NVRTC as a compiler to machine code, one process per compilation."""

import json
import re
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from kernel_forge.devices.compilers.gpu.assembler_log import read_resources
from kernel_forge.devices.compilers.gpu.code import Compiled, GpuCode, refused_architecture
from kernel_forge.devices.compilers.gpu.fork_server import ForkServer, ForkServerGone
from kernel_forge.devices.compilers.messages import parse_messages
from kernel_forge.devices.compilers.nvrtc_library import NvrtcPaths, find_nvrtc
from kernel_forge.devices.compilers.opinion import DeviceCode, parent_folder
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable

_HOST_LIBRARY = re.compile(r'namespace "std"|name followed by "::"|std::')
# These have device code of their own and lie beside the toolkit's headers, so they are not taken as empty.
_DEVICE_LIBRARY = re.compile(r"^(cub/|cuda/|mma\.h|cuda_fp8|cuda_fp4|cuda_fp6|cute/|cutlass/|curand_kernel)")


@cache
def find_nvrtc_compiler() -> "Nvrtc | None":
    """NVRTC of the toolkit or of the pip wheels."""
    paths = find_nvrtc()
    return None if paths is None else Nvrtc(paths)


class Nvrtc:
    """The library at ``paths``."""

    def __init__(self, paths: NvrtcPaths) -> None:
        self.paths = paths
        self.name = paths.name
        self._forks = ForkServer(paths.library, paths.includes)

    def compile(self, request: CompileRequest, code: DeviceCode, architecture: str) -> Compiled | None:
        """Compile; None where NVRTC fails for want of the host's C++ library, which says nothing about the code."""
        with tempfile.TemporaryDirectory(prefix="kernel-forge-nvrtc-") as folder:
            image = Path(folder) / "image.cubin"
            answer = self._ask(request, code, architecture, image)
            if isinstance(answer, Unavailable):
                return answer
            messages = tuple(parse_messages(answer["log"], code.sources, self.name))
            if answer["accepted"]:
                names = (*request.kernels, *request.symbols)
                entries = dict(zip(names, answer["names"], strict=True))
                by_linker_name = read_resources(answer["log"])
                resources = {k: by_linker_name[entries[k]] for k in request.kernels if entries[k] in by_linker_name}
                shown = tuple(m for m in messages if m.location is not None)
                return GpuCode(image.read_bytes(), entries, resources, shown, self.name)
        refused = refused_architecture(answer["log"])
        if refused is not None:
            return Unavailable(f"{self.name} does not compile for this GPU: {refused}")
        if any(_HOST_LIBRARY.search(m.message) for m in messages):
            return None
        if not any(m.severity == "error" for m in messages):
            reason = next((x for x in answer["log"].splitlines() if "error" in x), "it gave no message")
            messages = (*messages, CompilerMessage("error", reason[:500], None, self.name))
        return CompileFailed(messages)

    def _ask(
        self, request: CompileRequest, code: DeviceCode, architecture: str, image: Path
    ) -> dict[str, Any] | Unavailable:
        main = next(iter(code.files))
        job = {
            "library": str(self.paths.library),
            "includes": [*map(str, self.paths.includes), *request.include_dirs, parent_folder(request.path)],
            "text": code.files[main],
            "headers": {name: text for name, text in code.files.items() if name != main},
            "dropped": [h for h in code.dropped if not _DEVICE_LIBRARY.match(h)],
            "name": main,
            "defines": dict(request.defines),
            "flags": [f for f in request.flags if _is_for_nvrtc(f)],
            "architecture": architecture,
            "expressions": [*request.kernels, *(f"&{s}" for s in request.symbols)],
            "image": str(image),
        }
        begin = time.monotonic()
        try:
            output, errors = self._forks.ask(job, request.time_limit)
        except (ForkServerGone, OSError) as error:
            return Unavailable(f"{self.name} cannot be used: {error}")
        if not output and time.monotonic() - begin >= request.time_limit:
            return Unavailable(f"{self.name} did not end within {request.time_limit:g} s")
        try:
            answer: dict[str, Any] = json.loads(output)
        except json.JSONDecodeError:
            last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
            return Unavailable(f"{self.name} ended without an answer{': ' + last[0] if last else ''}")
        return answer


_FLAGS = (
    "-D -U -std --std --use_fast_math -use_fast_math --maxrregcount -maxrregcount --fmad -fmad --ftz -ftz "
    "--prec- -prec- --extra-device-vectorization --extended-lambda"
)


def _is_for_nvrtc(flag: str) -> bool:
    return flag.startswith(tuple(_FLAGS.split()))

"""Compiling for a GPU: NVRTC or nvcc, one answer."""

import os

from kernel_forge.devices.compilers.code import Compiled, DeviceSources
from kernel_forge.devices.compilers.nvcc import Nvcc, find_nvcc
from kernel_forge.devices.compilers.nvrtc import Nvrtc, find_nvrtc_compiler
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import Unavailable

INSTALL_HINT = (
    'no CUDA compiler found: pip install "kernel-forge-lsp[nvrtc]", or install the CUDA toolkit and put nvcc '
    "on the PATH"
)
COMPILERS = ("auto", "nvrtc", "nvcc")


class GpuCompiler:
    """The CUDA compilers of this machine.

    ``choice`` is one of :data:`COMPILERS`; ``auto`` takes NVRTC, which is fast, and asks nvcc about code that NVRTC
    cannot judge because it has no host library (``std::`` in device code).
    """

    def __init__(self, choice: str = "auto") -> None:
        choice = os.environ.get("KERNEL_FORGE_CUDA_COMPILER", choice)
        self._nvrtc: Nvrtc | None = find_nvrtc_compiler() if choice in ("auto", "nvrtc") else None
        self._nvcc: Nvcc | None = find_nvcc() if choice in ("auto", "nvcc") else None

    @property
    def unavailable(self) -> str | None:
        """Why nothing can be compiled."""
        return INSTALL_HINT if self._nvrtc is None and self._nvcc is None else None

    @property
    def description(self) -> str:
        """Names and versions; part of every cache key."""
        return ", ".join(c.name for c in (self._nvrtc, self._nvcc) if c is not None) or "none"

    def compile(self, request: CompileRequest, sources: DeviceSources, architecture: str) -> Compiled:
        """Machine code of ``request`` for ``architecture``, e.g. ``sm_90a``. Thread-safe; one child process each."""
        if self._nvrtc is not None:
            answer = self._nvrtc.compile(request, sources, architecture)
            if answer is not None:
                return answer
            if self._nvcc is None:
                return Unavailable(
                    "NVRTC cannot judge this code, which needs the host's C++ library; install the CUDA toolkit (nvcc)"
                )
        if self._nvcc is None:
            return Unavailable(INSTALL_HINT)
        return self._nvcc.compile(request, sources, architecture)

"""Compiling what a case launches."""

import time
from collections.abc import Mapping

from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, Unavailable
from kernel_forge.domain.spec import BufferArg, KernelReference, KernelSpec
from kernel_forge.ports import Artifact, Device
from kernel_forge.source import SourceFile
from kernel_forge.spec import BoundCase
from kernel_forge.verify.planning import reference_bound

COMPILE_LIMIT = 60.0


def compile_case(
    spec: KernelSpec,
    source: SourceFile,
    device: Device,
    bound: BoundCase,
    include_dirs: tuple[str, ...],
    defines: Mapping[str, str],
    deadline: float,
    flags: tuple[str, ...] = (),
) -> Artifact | CompileFailed | Unavailable:
    """Compile the kernels of ``bound`` and of the reference kernels at its sizes; ``deadline`` of time.monotonic."""
    kernels: dict[str, None] = dict.fromkeys(bound.kernels)
    for reference in spec.references.values():
        if isinstance(reference, KernelReference):
            other = reference_bound(spec, reference, bound)
            if isinstance(other, BoundCase):  # else the plan has left it out
                kernels.update(dict.fromkeys(other.kernels))
    symbols = tuple(a.name for a in spec.args if isinstance(a, BufferArg) and a.is_symbol)
    left = deadline - time.monotonic()
    if left <= 0:
        return Unavailable("the time limit of the verification was reached before the kernel was compiled")
    return device.compile(
        CompileRequest(
            path=source.path,
            text=source.text,
            kernels=tuple(kernels),
            symbols=symbols,
            defines={**defines, **bound.defines},
            include_dirs=include_dirs,
            flags=flags,
            time_limit=min(COMPILE_LIMIT, left),
        )
    )

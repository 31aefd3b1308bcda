"""One kernel on one device, made ready for many configurations."""

import time
from dataclasses import dataclass

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.outcome import LaunchFailed, Outcome, Unavailable
from kernel_forge.domain.spec import BufferArg, Configuration, KernelSpec, Role, Sizes
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.perf import exceeded_limit
from kernel_forge.ports import Artifact, Device
from kernel_forge.source import SourceFile
from kernel_forge.spec import BoundCase, bind, is_legal
from kernel_forge.verify.compiling import compile_case
from kernel_forge.verify.expectation import Expected
from kernel_forge.verify.gate import Gate

COMPILE_LIMIT = 60.0
REFERENCE_LIMIT = 30.0
GATE_LIMIT = 10.0
"""Seconds of one execution at the gate."""
COMPARED_BYTES = 1 << 30
"""Of the buffers of a case: in float64 the reference of larger ones would not fit beside them."""


@dataclass(frozen=True)
class Workbench:
    """What all trials of one kernel share; ``limits`` is None for a device without multiprocessors."""

    spec: KernelSpec
    source: SourceFile
    device: Device
    options: CompileOptions
    limits: HardwareLimits | None
    gate: Gate

    def bind(self, sizes: Sizes, configuration: Configuration) -> BoundCase | Finding:
        """The spec with numbers."""
        return bind(self.spec, sizes, configuration)

    def compile(self, bound: BoundCase) -> Artifact | Outcome:
        """Compile one configuration (the sizes do not matter to it); safe in any thread."""
        options = self.options
        deadline = time.monotonic() + COMPILE_LIMIT
        return compile_case(
            self.spec, self.source, self.device, bound, options.include_dirs, options.defines, deadline, options.flags
        )

    def exceeded(self, bound: BoundCase, artifact: Artifact) -> LaunchFailed | None:
        """A limit of the device that some launch exceeds, as compiled."""
        if self.limits is None:
            return None
        for launch in bound.launches:
            exceeded = exceeded_limit(self.limits, launch, artifact.resources.get(launch.kernel))
            if exceeded is not None:
                return LaunchFailed("configuration", exceeded)
        return None

    def expectation(
        self, sizes: Sizes, configuration: Configuration
    ) -> tuple[BoundCase, Expected] | Unavailable | None:
        """The case with what it must give; None where this configuration does not admit the sizes.

        In the main thread: it may run Python of the user's, and compile the reference kernels.
        """
        bound = self.bind(sizes, configuration)
        if isinstance(bound, Finding) or not bound.launches or not is_legal(self.spec, sizes, configuration):
            return None
        expected = self.gate.expected(bound, lambda: self.compile(bound), REFERENCE_LIMIT)
        return expected if isinstance(expected, Unavailable) else (bound, expected)

    def nbytes(self, bound: BoundCase) -> int:
        """Bytes of all buffers of a case."""
        return sum(bound.count(a.name) * a.dtype.itemsize for a in self.spec.args if isinstance(a, BufferArg))

    def compared_bytes(self, bound: BoundCase) -> int:
        """Bytes of what a comparison looks at: all buffers but scratch."""
        compared = (a for a in self.spec.args if isinstance(a, BufferArg) and a.role is not Role.SCRATCH)
        return sum(bound.count(a.name) * a.dtype.itemsize for a in compared)

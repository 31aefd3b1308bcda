"""A target's specs, read before anything is started."""

from dataclasses import replace

from kernel_forge.cli.targets import Target
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Outcome, Passed, Unavailable, Verdict
from kernel_forge.domain.text import Range
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import SpecReading, read_specs
from kernel_forge.views.console import LineOf
from kernel_forge.views.findings import findings_of


def read_target(target: Target, *, only_file: bool) -> tuple[Target, SourceFile, SpecReading]:
    """The target with its kernel's name as the spec has it, its source and its specs.

    Raises:
        UsageError: the kernel asked for has no spec, or the ``only_file`` has none at all.
        SourceError: the text is no CUDA text.
    """
    source = parse(target.text, str(target.path))
    reading = read_specs(source, target.sidecar)
    name = target.path.name
    if target.kernel is not None:
        spec = reading.spec_of(target.kernel) or reading.spec_of(_in_namespace(source, target.kernel))
        if spec is not None:
            target = replace(target, kernel=spec.kernel)
        elif not reading.problems:
            known = ", ".join(s.kernel for s in reading.specs) or "none"
            raise UsageError(f"{name} has no spec for a kernel {target.kernel} (it has: {known})")
    elif only_file and not reading.specs and not reading.problems:
        kernels = ", ".join(k.name for k in source.kernels)
        hint = f"draft one with: kernel-forge spec {name}:{source.kernels[0].name} --write" if kernels else ""
        found = f"it has the kernels {kernels}" if kernels else "it has no kernel either"
        raise UsageError(f"{name} has no spec block, so there is nothing to verify; {found}. {hint}".rstrip())
    return target, source, reading


def _in_namespace(source: SourceFile, asked: str) -> str:
    """The other way to write a kernel's name: ``k`` for ``ns::k``, and back."""
    for kernel in source.kernels:
        names = (kernel.name, kernel.qualified_name)
        if asked in names:
            return names[1] if asked == names[0] else names[0]
    return asked


def lines_of(source: SourceFile) -> LineOf:
    """The lines of ``source`` by path and number; those of other files are empty."""
    lines = source.text.split("\n")

    def line_of(path: str, number: int) -> str:
        return lines[number].rstrip("\r") if path == source.path and number < len(lines) else ""

    return line_of


def findings_for(verdict: Verdict, reading: SpecReading) -> tuple[Finding, ...]:
    """The findings of a verdict on a kernel of ``reading``."""
    spec = reading.spec_of(verdict.kernel)
    return findings_of(verdict, spec, spec.name_range if spec is not None else Range.of_line(0))


def is_failure(outcome: Outcome) -> bool:
    """Whether the kernel or its spec is to be mended (exit code 1)."""
    return outcome.of_spec if isinstance(outcome, Unavailable) else not isinstance(outcome, Passed)

"""Helpers: reading blocks, and applying the fixes of their problems."""

from kernel_forge.domain.finding import Finding, Fix
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.text import Range
from kernel_forge.source import parse
from kernel_forge.spec import SpecReading, read_specs

PATH = "/work/scale.cu"
KERNEL = "__global__ void scale(const float* x, float* y, int n, float a) { }\n"
GOOD = """\
kernel = "scale"
reference = "a * x"
cases = [{ n = 100 }]
args = { a = 2.0 }
launch = { grid = "cdiv(n, 32)", block = 32 }
"""


def block(toml: str) -> str:
    """``toml`` as a spec block."""
    lines = "".join(f"// {line}".rstrip() + "\n" for line in toml.rstrip("\n").split("\n"))
    return f"// /// kernel-forge\n{lines}// ///\n"


def source(toml: str, kernel: str = KERNEL) -> str:
    """A file with one block above one kernel."""
    return "// A file.\n" + block(toml) + kernel


def read(text: str, sidecar: str | None = None) -> SpecReading:
    """The reading of a file and its sidecar."""
    return read_specs(parse(text, PATH), None if sidecar is None else ("/work/scale.forge.toml", sidecar))


def spec_of(text: str, sidecar: str | None = None) -> KernelSpec:
    """The one spec of a file without problems."""
    reading = read(text, sidecar)
    assert not reading.problems, [(p.code, p.message) for p in reading.problems]
    (spec,) = reading.specs
    return spec


def only(text: str, sidecar: str | None = None) -> Finding:
    """The one problem of a file."""
    reading = read(text, sidecar)
    assert len(reading.problems) == 1, [(p.code, p.message) for p in reading.problems]
    return reading.problems[0]


def at(text: str, place: Range) -> str:
    """The text of a range."""
    file = parse(text, PATH)
    return text[file.offset(place.start) : file.offset(place.end)]


def apply(text: str, fix: Fix) -> str:
    """``text`` after the edits of a fix."""
    file = parse(text, PATH)
    for edit in sorted(fix.edits, key=lambda e: e.range.start, reverse=True):
        text = text[: file.offset(edit.range.start)] + edit.new_text + text[file.offset(edit.range.end) :]
    return text

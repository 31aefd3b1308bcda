"""``name.forge.toml`` beside ``name.cu``: specs for a file that nobody wants to annotate."""

from pathlib import PurePath
from typing import Any

from kernel_forge.domain.finding import Finding, Fix, Severity
from kernel_forge.domain.text import Range, TextEdit, line_end
from kernel_forge.source import SourceFile
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.toml_document import TomlDocument, TomlProblem, parse_toml


def read_sidecar(path: str, text: str, source: SourceFile) -> tuple[list[BlockText], list[Finding]]:
    """The specs of a sidecar, and what is wrong with the sidecar as a whole.

    Either one spec at the top level (with ``kernel``), or one table ``[kernels.NAME]`` per kernel, whose key
    ``kernel`` may be left out where it is NAME.
    """
    document = parse_toml(text)
    newline = line_end(text)
    if isinstance(document, TomlProblem):
        return [], [Finding("KF102", Severity.ERROR, f"not TOML: {document.message}", path, document.range)]
    findings = _check_source(path, document, source)
    data = document.data
    kernels = data.get("kernels")
    if kernels is None:
        own = {k: v for k, v in data.items() if k != "source"}
        if not own:
            message = "the sidecar has no spec: write kernel = ... or a table [kernels.NAME]"
            return [], [*findings, Finding("KF115", Severity.ERROR, message, path, Range.of_line(0))]
        return [BlockText(path, text, None, _with_data(document, own), newline=newline)], findings
    extra = sorted(set(data) - {"source", "kernels"})
    if extra:
        message = f"unknown key {extra[0]}; with [kernels.NAME] tables only source stands beside them"
        findings.append(Finding("KF103", Severity.ERROR, message, path, document.range_of((extra[0],), key=True)))
    if not isinstance(kernels, dict) or not all(isinstance(v, dict) for v in kernels.values()):
        message = "kernels must hold one table per kernel: [kernels.NAME]"
        return [], [
            *findings,
            Finding("KF115", Severity.ERROR, message, path, document.range_of(("kernels",))),
        ]
    blocks = []
    for name, spec in kernels.items():
        whole: dict[str, Any] = {"kernels": {name: {"kernel": name, **spec}}}
        blocks.append(BlockText(path, text, None, _with_data(document, whole), ("kernels", name), newline))
    return blocks, findings


def _with_data(document: TomlDocument, data: dict[str, Any]) -> TomlDocument:
    return TomlDocument(data, document.keys, document.values)


def _check_source(path: str, document: TomlDocument, source: SourceFile) -> list[Finding]:
    want = PurePath(source.path).name
    given = document.data.get("source")
    if given == want:
        return []
    if given is None:
        return [Finding("KF115", Severity.WARNING, f'add source = "{want}"', path, Range.of_line(0))]
    place = document.range_of(("source",))
    fix = Fix(f"Use {want}", (TextEdit(place, f'"{want}"'),), preferred=True)
    message = f"this sidecar is for {given}, but stands beside {want}"
    return [Finding("KF115", Severity.ERROR, message, path, place, fixes=(fix,))]

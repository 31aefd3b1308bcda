"""From a source file (and its sidecar) to the specs in it, with every problem."""

from dataclasses import dataclass, replace
from typing import Any

from kernel_forge.domain.finding import Finding, Fix, Severity
from kernel_forge.domain.spec import (
    KernelReference,
    KernelSpec,
)
from kernel_forge.domain.text import Position, Range, TextEdit, line_end
from kernel_forge.source import CommentBlock, SourceFile
from kernel_forge.spec.block_model import Block
from kernel_forge.spec.block_reader import BlockReader, SpecDraft
from kernel_forge.spec.problems import BlockText, kernel_fix, nearest
from kernel_forge.spec.references import (
    reference_path,
)
from kernel_forge.spec.sidecar import read_sidecar
from kernel_forge.spec.signature import Instance, find_instance, kernel_name
from kernel_forge.spec.toml_document import TomlProblem, parse_toml
from kernel_forge.spec.validation import validate


@dataclass(frozen=True, slots=True)
class SpecReading:
    """The usable specs, in file order, and all problems of all blocks."""

    specs: tuple[KernelSpec, ...]
    problems: tuple[Finding, ...]

    def spec_of(self, kernel: str) -> KernelSpec | None:
        """The spec of the kernel of that name."""
        return next((s for s in self.specs if s.kernel == kernel), None)


def read_specs(source: SourceFile, sidecar: tuple[str, str] | None = None) -> SpecReading:
    """Read every spec block of ``source`` and the ``sidecar`` (its path and text), where there is one.

    A block with an error gives no spec; the others are not affected.
    """
    blocks, problems = block_texts(source, sidecar)
    drafts = [d for block in blocks if (d := _read_block(block, source)) is not None]
    _refuse_duplicates(drafts)
    specs = _resolve_kernel_references(drafts)
    for block in blocks:
        problems.extend(block.findings)
    return SpecReading(tuple(specs), tuple(problems))


def block_texts(source: SourceFile, sidecar: tuple[str, str] | None = None) -> tuple[list[BlockText], list[Finding]]:
    """The blocks whose text can be read, of the file and then of its sidecar, and what is wrong with the others."""
    blocks: list[BlockText] = []
    problems: list[Finding] = []
    for comment in source.blocks:
        block = _comment_block(source, comment)
        (blocks if isinstance(block, BlockText) else problems).append(block)  # type: ignore[arg-type]
    if sidecar is not None:
        extra, findings = read_sidecar(sidecar[0], sidecar[1], source)
        blocks.extend(extra)
        problems.extend(findings)
    return blocks, problems


def _comment_block(source: SourceFile, comment: CommentBlock) -> BlockText | Finding:
    start = comment.range.start
    first = Range(start, Position(start.line, start.column + 20))
    newline = line_end(source.text)
    indent = source.text[source.offset(Position(start.line, 0)) : source.offset(start)].lstrip("\ufeff")
    if not comment.closed:
        last = comment.range.end
        fix = Fix("Close the block", (TextEdit(Range(last, last), f"{newline}{indent}// ///"),), preferred=True)
        message = "this spec block is not closed; end it with a line // ///"
        return Finding("KF101", Severity.ERROR, message, source.path, first, fixes=(fix,))
    document = parse_toml(comment.toml)
    if isinstance(document, TomlProblem):
        place = Range(comment.to_source(document.range.start), comment.to_source(document.range.end))
        return Finding("KF102", Severity.ERROR, f"not TOML: {document.message}", source.path, place)
    return BlockText(source.path, comment.toml, comment, document, newline=newline, indent=indent)


def _read_block(block: BlockText, source: SourceFile) -> SpecDraft | None:
    data: Any = block.document.data
    for part in block.prefix:
        data = data[part]
    model = validate(block, data)
    if model is None:
        return None
    instance = _instance(block, model, source)
    if instance is None:
        return None
    return BlockReader(block, model, source, instance).read()


def _instance(block: BlockText, model: Block, source: SourceFile) -> Instance | None:
    found = find_instance(model.kernel, source)
    if isinstance(found, Instance):
        return found
    name = kernel_name(model.kernel)
    if any(k.name == name for k in source.kernels):
        block.add("KF105", found, ("kernel",))
        return None
    below = block.block.kernel_below if block.block is not None else None
    near = nearest(name, [k.name for k in source.kernels]) or below
    if near is not None:
        fix = kernel_fix(block, ("kernel",), model.kernel, near)
        block.add("KF105", f"{found}; did you mean {near}?", ("kernel",), fixes=(fix,))
    else:
        block.add("KF105", f"{found}: nothing to verify yet", ("kernel",), severity=Severity.INFORMATION)
    return None


def _refuse_duplicates(drafts: list[SpecDraft]) -> None:
    seen: dict[str, SpecDraft] = {}
    for draft in drafts:
        if draft.spec is None:
            continue
        first = seen.setdefault(draft.spec.kernel, draft)
        if first is not draft:
            assert first.spec is not None  # only drafts with a spec are noted
            line = first.spec.block_range.start.line + 1
            message = f"{draft.spec.kernel} has a spec block already, in line {line}"
            draft.block.add("KF114", message, ("kernel",))
            draft.spec = None


def _resolve_kernel_references(drafts: list[SpecDraft]) -> list[KernelSpec]:
    by_name = {d.spec.kernel: d.spec for d in drafts if d.spec is not None}
    specs = []
    for draft in drafts:
        spec = draft.spec
        if spec is None:
            continue
        references = dict(spec.references)
        for output, name in draft.kernel_references.items():
            path = reference_path(draft.model, output)
            other = by_name.get(name)
            if other is None or other.kernel == spec.kernel:
                message = f"the reference kernel {name} needs a spec block of its own in this file"
                draft.block.add("KF111", message, path)
                continue
            missing = sorted({a.name for a in other.args} - {a.name for a in spec.args})
            if missing or output not in {a.name for a in other.args}:
                what = missing[0] if missing else output
                message = f"{name} and {spec.kernel} must have the same arguments; {what} is not in both"
                draft.block.add("KF111", message, path)
                continue
            location = draft.block.location_of(path)
            references[output] = KernelReference(other.launches, name, location)
        if not draft.block.has_errors:
            specs.append(replace(spec, references=references))
    return specs

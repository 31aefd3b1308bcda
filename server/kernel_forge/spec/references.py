"""The ``reference`` key: what every output must be."""

from collections.abc import Mapping

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.spec import ExpressionReference, FunctionReference, Reference
from kernel_forge.spec import gaps
from kernel_forge.spec.block_model import Block
from kernel_forge.spec.numpy_expression import NumpyExpression
from kernel_forge.spec.problems import BlockText, listing, nearest
from kernel_forge.spec.toml_document import Path

GAP = gaps.REFERENCE


def reference_path(model: Block, output: str) -> Path:
    """Where the reference of ``output`` stands."""
    return ("reference",) if "" in model.reference else ("reference", output)


def declared_outputs(model: Block, writable: tuple[str, ...], block: BlockText) -> dict[str, str]:
    """Output -> text of its reference. ``writable`` are the names that could be outputs."""
    if "" not in model.reference:
        return dict(model.reference)
    text = model.reference[""]
    marked = [n for n, a in model.args.items() if a.role in ("out", "inout") and n in writable]
    candidates = marked or [n for n in writable if model.args.get(n) is None or model.args[n].role is None]
    if len(candidates) == 1:
        return {candidates[0]: text}
    example = f'reference = {{ {candidates[0] if candidates else "y"} = "..." }}'
    if candidates:
        message = f"which output is this the reference of? Write {example} ({listing(candidates)} could be)"
    else:
        message = "the kernel has no output: a parameter that is not const and has role out or inout is needed"
    block.add("KF111", message, ("reference",))
    return {}


def names_read(text: str, known: tuple[str, ...]) -> frozenset[str]:
    """The arguments that a reference expression reads; all of them for a function, none where unreadable."""
    if is_function(text):
        return frozenset()
    try:
        return NumpyExpression.parse(text, known).names
    except ExpressionError:
        return frozenset()


def is_function(text: str) -> bool:
    """Whether the text is ``file.py:function`` or ``kernel:name``."""
    head, colon, tail = text.rpartition(":")
    return bool(colon) and tail.strip().isidentifier() and (head.endswith(".py") or head.strip() == "kernel")


def is_kernel(text: str) -> bool:
    """Whether the text is ``kernel:name``."""
    return is_function(text) and text.rpartition(":")[0].strip() == "kernel"


def read_references(
    block: BlockText,
    model: Block,
    texts: Mapping[str, str],
    known: tuple[str, ...],
    outputs: tuple[str, ...],
    writable: tuple[str, ...],
    unfilled: frozenset[str],
) -> dict[str, Reference]:
    """The references that are no other kernel; problems are noted.

    ``writable`` could be outputs; ``unfilled`` have no contents before the kernel runs.
    """
    found: dict[str, Reference] = {}
    for output, text in texts.items():
        path = reference_path(model, output)
        if output not in outputs:
            candidates = outputs or writable
            near = nearest(output, candidates)
            fixes = (block.rename_fix(path, near),) if near and len(path) > 1 else ()
            hint = f"; did you mean {near}?" if near else f"; outputs are {listing(candidates)}"
            block.add("KF111", f"{output} is no output of the kernel{hint}", path, key=True, fixes=fixes)
            continue
        location = block.location_of(path)
        if text.strip() == GAP:
            message = f'fill in the reference: a NumPy expression for {output}, "file.py:function" or "kernel:name"'
            block.add("KF111", message, path)
        elif is_kernel(text):
            continue
        elif is_function(text):
            file, _, function = text.rpartition(":")
            found[output] = FunctionReference(file.strip(), function.strip(), location)
        else:
            try:
                expression = NumpyExpression.parse(text, known)
            except ExpressionError as error:
                block.add_expression("KF111", error, path)
                continue
            if not _ask_for_contents(block, expression, unfilled, path):
                continue
            found[output] = ExpressionReference(text, location)
    missing = [o for o in outputs if o not in texts]
    if missing and texts:
        message = f'{missing[0]} is an output without a reference; add {missing[0]} = "..." to reference'
        block.add("KF111", message, ("reference",))
    return found


def _ask_for_contents(block: BlockText, expression: NumpyExpression, unfilled: frozenset[str], path: Path) -> bool:
    """Whether all that the reference reads is there before the kernel runs."""
    name = next((n for n in sorted(expression.names) if n in unfilled), None)
    if name is None:
        return True
    role: Path = ("args", name, "role")
    fixes = (block.replace_value_fix(role, '"inout"', f"Make {name} inout"),) if block.is_written(role) else ()
    message = f'the reference reads {name}, which holds nothing before the kernel runs; give it role = "inout"'
    block.add("KF111", message, path, fixes=fixes)
    return False

"""``kernel-forge spec`` and ``kernel-forge schema``."""

import argparse
import json

from kernel_forge.cli.output import may_be_closed, warn
from kernel_forge.cli.replacement import replace_text
from kernel_forge.cli.targets import find_targets
from kernel_forge.domain.errors import UsageError
from kernel_forge.source import parse
from kernel_forge.spec import draft_block, json_schema


def spec_command(options: argparse.Namespace) -> int:
    """Print the drafted block, or insert it with ``--write``."""
    target = find_targets([options.target], warn)[0]
    if target.kernel is None:
        kernels = ", ".join(k.name for k in parse(target.text, str(target.path)).kernels) or "none"
        raise UsageError(f"name the kernel: {target.path.name}:KERNEL (the file has: {kernels})")
    source = parse(target.text, str(target.path))
    if any(block.kernel_below == target.kernel for block in source.blocks):
        raise UsageError(f"{target.kernel} has a spec block already")
    draft = draft_block(source, target.kernel)
    if not options.write:
        with may_be_closed():
            print(draft.edit.new_text, end="")
        return 0
    at = source.offset(draft.edit.range.start)
    replace_text(target.path, target.text[:at] + draft.edit.new_text + target.text[at:])
    gaps = "; fill in the gaps marked <...>" if draft.has_gaps else ""
    with may_be_closed():
        print(f"{target.path}: spec block for {target.kernel} written{gaps}")
    return 0


def schema_command() -> int:
    """Print the JSON schema of spec blocks."""
    with may_be_closed():
        print(json.dumps(json_schema(), indent=2))
    return 0

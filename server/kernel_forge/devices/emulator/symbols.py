"""From an address in a compiled kernel to the user's file and line, through the DWARF line table."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from elftools.dwarf.descriptions import describe_form_class
from elftools.elf.elffile import ELFFile

from kernel_forge.devices.emulator.toolchain import NATIVE

SourceLine = tuple[str, int]
"""Path and one-based line, as the line table has them."""


@lru_cache(maxsize=256)
def source_line(executable: Path, address: int) -> SourceLine | None:
    """Where the instruction at ``address`` comes from.

    Where it was inlined out of the emulator's own headers, the place in the user's code that called there.
    """
    with executable.open("rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info():
            return None
        dwarf = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            found = _in_unit(dwarf, unit, address)
            if found is not None:
                return found
    return None


def _in_unit(dwarf: Any, unit: Any, address: int) -> SourceLine | None:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return None
    row = _row(program, address)
    if row is None:
        return None
    frames = [(_file_name(program, row.file), row.line), *_callers(unit, program, address)]
    return next((frame for frame in frames if not _is_ours(frame[0])), frames[0])


def _row(program: Any, address: int) -> Any:
    previous = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if previous is not None and previous.address <= address < state.address:
            return previous
        previous = None if state.end_sequence else state
    return None


def _file_name(program: Any, index: int) -> str:
    header = program.header
    if header.version >= 5:
        entry = header.file_entry[index]
        folder = header.include_directory[entry.dir_index]
    else:
        entry = header.file_entry[index - 1]
        folder = header.include_directory[entry.dir_index - 1] if entry.dir_index else b""
    name = _text(entry.name)
    return name if name.startswith("/") or not folder else f"{_text(folder)}/{name}"


def _text(raw: Any) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)


def _is_ours(path: str) -> bool:
    return str(NATIVE) in path


def _callers(unit: Any, program: Any, address: int) -> list[SourceLine]:
    """Call sites of the inlined functions around ``address``, innermost first."""
    chain: list[SourceLine] = []
    die = unit.get_top_DIE()
    while die is not None:
        inner = next((child for child in die.iter_children() if _covers(unit, child, address)), None)
        if inner is not None and inner.tag == "DW_TAG_inlined_subroutine":
            attributes = inner.attributes
            if "DW_AT_call_file" in attributes and "DW_AT_call_line" in attributes:
                name = _file_name(program, attributes["DW_AT_call_file"].value)
                chain.insert(0, (name, attributes["DW_AT_call_line"].value))
        die = inner
    return chain


_SCOPES = frozenset({"DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block", "DW_TAG_namespace"})


def _covers(unit: Any, die: Any, address: int) -> bool:
    if die.tag not in _SCOPES:
        return False
    attributes = die.attributes
    if die.tag == "DW_TAG_namespace":
        return any(_covers(unit, child, address) for child in die.iter_children())
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low = attributes["DW_AT_low_pc"].value
        high = attributes["DW_AT_high_pc"]
        end = high.value if describe_form_class(high.form) == "address" else low + high.value
        return bool(low <= address < end)
    if "DW_AT_ranges" in attributes:
        base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = base.value if base is not None else 0
        lists = unit.dwarfinfo.range_lists()
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                start = entry.base_address
                continue
            offset = 0 if getattr(entry, "is_absolute", False) else start
            if entry.begin_offset + offset <= address < entry.end_offset + offset:
                return True
    return False

"""From TOML values to the block model, every problem at its place."""

from typing import Any

from pydantic import ValidationError

from kernel_forge.spec.block_model import INIT_NAMES, Block, model_at
from kernel_forge.spec.gaps import find_gaps
from kernel_forge.spec.problems import BlockText, listing, nearest
from kernel_forge.spec.toml_document import Path


def validate(block: BlockText, data: dict[str, Any]) -> Block | None:
    """The model of ``data``; problems are noted in ``block``. None where nothing can be made of it."""
    gaps = list(find_gaps(data))
    if any(path[0] != "reference" for path, _ in gaps):  # nothing else can be said before they are filled in
        for path, message in gaps:
            block.add("KF111" if path[0] == "reference" else "KF106", message, path)
        return None
    try:
        return _checked(block, Block.model_validate(data))
    except ValidationError as error:
        for problem in error.errors():
            _note(block, problem, data)
        return None


def _checked(block: BlockText, model: Block) -> Block:
    for name, arg in model.args.items():
        init = getattr(arg.init, "name", None)
        if init is not None and init not in INIT_NAMES and ":" not in init:
            near = nearest(init, INIT_NAMES)
            path: Path = ("args", name, "init")
            fixes = (block.replace_value_fix(path, f'"{near}"', f'Use "{near}"'),) if near else ()
            message = f'"{init}" is no way to fill an argument; use {listing(INIT_NAMES)} or "file.py:function"'
            block.add("KF104", message, path, fixes=fixes)
    for name in model.tune:
        if name != "where" and not model.tune[name]:
            block.add("KF112", f"{name} has no values; list at least one", ("tune", name))
    return model


def _note(block: BlockText, problem: Any, data: dict[str, Any]) -> None:
    path = _document_path(problem["loc"], data)
    kind = problem["type"]
    if kind == "extra_forbidden":
        model = model_at(path[:-1])
        fields = tuple(model.model_fields) if model is not None else ()
        near = nearest(str(path[-1]), fields)
        hint = f"; did you mean {near}?" if near else f"; known keys are {listing(fields)}"
        fixes = (block.rename_fix(path, near),) if near else ()
        block.add("KF103", f"unknown key {path[-1]}{hint}", path, key=True, fixes=fixes)
    elif kind == "missing":
        where = f"[{'.'.join(str(p) for p in path[:-1])}]" if len(path) > 1 else "the spec block"
        block.add("KF106", f"{where} needs the key {path[-1]}: {_purpose(path)}", path[:-1] or ("kernel",), key=True)
    else:
        given = problem.get("input")
        shown = "" if isinstance(given, dict | list) or given is None else f", not {given!r}"
        purpose = _purpose(path)
        block.add("KF104", f"{_plain(problem)}{shown}. {purpose}".strip(), path)


def _document_path(loc: tuple[str | int, ...], data: dict[str, Any]) -> Path:
    """The document's path of a pydantic location: without union tags and the keys our shorthands add."""
    path: list[str | int] = []
    node: Any = data
    for part in loc:
        if isinstance(node, dict):
            if not isinstance(part, str) or (part not in node and part in ("", "name") and path):
                continue  # our shorthands: a table for a list of one, a string for a table
            path.append(part)
            node = node.get(part) if isinstance(part, str) else None
        elif isinstance(node, list) and isinstance(part, int) and 0 <= part < len(node):
            path.append(part)
            node = node[part]
        elif isinstance(part, str) and node is None and not path:
            path.append(part)
    return tuple(path)


def _plain(problem: Any) -> str:
    match problem["type"]:
        case "string_type":
            return "this must be a string"
        case "int_type" | "int_from_float":
            return "this must be a whole number"
        case "list_type":
            return "this must be a list"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "this must be a table"
        case "bool_type":
            return "this must be true or false"
        case "literal_error":
            return f"this must be {problem['ctx']['expected']}"
        case "too_short":
            return "this must not be empty"
        case _:
            message = str(problem["msg"])
            return message[:1].lower() + message[1:]


def _purpose(path: Path) -> str:
    model = model_at(path[:-1]) if path else None
    field = model.model_fields.get(str(path[-1])) if model is not None else None
    return (field.description or "") if field is not None else ""

"""From TOML values to the block model, every problem at its place."""

from typing import Any

from pydantic import ValidationError

from kernel_forge.spec.block_model import INIT_NAMES, Block, model_at
from kernel_forge.spec.gaps import find_gaps
from kernel_forge.spec.problems import BlockText, listing, nearest
from kernel_forge.spec.toml_document import Path
from kernel_forge.spec.tunable_checks import NO_VALUE


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
        for problems, path in _one_per_mistake(error, data):
            _note(block, problems, path)
        return None


def _one_per_mistake(error: ValidationError, data: dict[str, Any]) -> list[tuple[list[Any], Path]]:
    """The problems by their place. Where several types would do, pydantic has one for each of them that does not fit.

    What lies deeper comes of the type that fits best: where there is that, what is above it is of the others.
    """
    by_path: dict[Path, list[Any]] = {}
    for problem in error.errors():
        if "InitName" not in problem["loc"] or problem["type"] == "model_type":
            by_path.setdefault(_document_path(problem["loc"], data), []).append(problem)
    deep = {path[:n] for path in by_path for n in range(len(path))}
    kept = [(problems, path) for path, problems in by_path.items()]
    return [(ps, path) for ps, path in kept if path not in deep or any(p["type"] not in _OF_TYPE for p in ps)]


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


def _note(block: BlockText, problems: list[Any], path: Path) -> None:
    problem = problems[0]
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
    elif path[:1] == ("tune",) and len(path) == 3 and path[1] != "where":
        block.add("KF112", f"{path[1]}: {NO_VALUE}", path)
    else:
        given = problem.get("input")
        shown = "" if isinstance(given, dict | list) or given is None else f", not {_toml(given)}"
        purpose = _purpose(path)
        block.add("KF104", f"{_plain(problems)}{shown}. {purpose}".strip(), path)


def _toml(value: object) -> str:
    """A value as a person wrote it, or nearly so."""
    return str(value).lower() if isinstance(value, bool) else str(value) if hasattr(value, "isoformat") else repr(value)


def _document_path(loc: tuple[str | int, ...], data: dict[str, Any]) -> Path:
    """The document's path of a pydantic location: without union tags and the keys our shorthands add."""
    path: list[str | int] = []
    node: Any = data
    for part in loc:
        if part in _TAGS and not (isinstance(node, dict) and part in node):
            continue
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


def _plain(problems: list[Any]) -> str:
    wanted = list(dict.fromkeys(_OF_TYPE[p["type"]] for p in problems if p["type"] in _OF_TYPE))
    if "a number" in wanted and "a whole number" in wanted:
        wanted.remove("a whole number")
    if wanted:
        return f"this must be {' or '.join([', '.join(wanted[:-1]), wanted[-1]] if len(wanted) > 1 else wanted)}"
    problem = problems[0]
    match problem["type"]:
        case "literal_error":
            return f"this must be {problem['ctx']['expected']}"
        case "too_short":
            return "this must not be empty"
        case _:
            message = str(problem["msg"])
            return message[:1].lower() + message[1:]


_OF_TYPE = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "bool_type": "true or false",
}
"""What is asked for where a value has another type, by pydantic's word for it."""
_TAGS = ("InitName", "InitTable", "int", "float", "bool", "str", "list[str]", "dict[str,str]")
"""How pydantic calls the types of which one would do, in the location of a problem."""


def _purpose(path: Path) -> str:
    model = model_at(path[:-1]) if path else None
    field = model.model_fields.get(str(path[-1])) if model is not None else None
    return (field.description or "") if field is not None else ""

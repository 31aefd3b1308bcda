"""Rules for functions, variables and casts, on the facts of :mod:`kernel_forge.source.structure`."""

from collections.abc import Iterator

from kernel_forge.generate.lexical_rules import Found
from kernel_forge.generate.refusal import Rule
from kernel_forge.source.structure import CastFact, FunctionFact, Structure, VariableFact

_DEVICE = ("__global__", "__device__")


def structure_rules(structure: Structure) -> Iterator[Found]:
    """What the functions, variables and casts of a text break."""
    for span in structure.not_understood[:1]:
        yield Rule.SYNTAX, *span, "this cannot be read as CUDA C++; write plain, complete declarations and statements"
    for function in structure.functions:
        if not _is_device(function):
            message = f"{function.name} runs on the host; write __device__ before it, or leave it out"
            yield Rule.HOST_CODE, *function.span, message
    for variable in structure.variables:
        yield from _variable(variable)
    for cast in structure.casts:
        yield from _cast(cast)
    for span in structure.pointer_addresses:
        yield Rule.ADDRESS, *span, "the address of a pointer; pass the pointer itself"
    for name, span in structure.function_values:
        yield Rule.CALL, *span, f"{name} is used as a value; call it, or make it a template parameter or a functor"
    defined = {function.name for function in structure.functions if function.has_body}
    for function in structure.functions:
        if function.name not in defined and not function.is_made and not function.is_member:
            yield (
                Rule.STATE,
                *function.span,
                f"{function.name} is nowhere defined; define the function, or leave it out",
            )
    yield from _recursion(structure.functions)


def _is_device(function: FunctionFact) -> bool:
    return function.is_made or any(word in function.specifiers for word in _DEVICE)


def _variable(variable: VariableFact) -> Iterator[Found]:
    name, words = variable.name, variable.specifiers
    if variable.is_code:
        yield Rule.CALL, *variable.span, f"{name} points to a function; call functions by name, or use a template"
    elif variable.is_pointer_in_union:
        yield Rule.ADDRESS, *variable.span, f"{name} shares its place with other types; keep pointers out of unions"
    elif words & {"__shared__", "__constant__"}:
        return
    elif words & {"__device__"} or (variable.scope == "namespace" and "extern" in words):
        message = f"{name} outlives a launch; use an argument, __shared__ or __constant__ memory, or constexpr"
        yield Rule.STATE, *variable.span, message
    elif variable.scope == "namespace" and not words & {"constexpr", "const", "using"}:
        yield Rule.HOST_CODE, *variable.span, f"{name} is a variable of the host; make it constexpr, or an argument"
    elif variable.scope != "namespace" and words & {"static", "extern"} and "constexpr" not in words:
        yield Rule.STATE, *variable.span, f"{name} outlives a launch; make it constexpr, __shared__ or a plain local"


def _cast(cast: CastFact) -> Iterator[Found]:
    if cast.is_reference:
        if cast.kind in ("c", "reinterpret_cast") and cast.from_depth:
            yield Rule.ADDRESS, *cast.span, "a pointer read as another type; index the pointer instead"
    elif cast.kind == "static_cast":
        return
    elif cast.to_depth is None:
        yield Rule.ADDRESS, *cast.span, "a cast to a type that cannot be followed; use static_cast, or name the type"
    elif cast.to_depth:
        if cast.from_depth != 1 and not (cast.from_depth and cast.kind == "c" and cast.to_depth == cast.from_depth):
            message = "a pointer made of what is not visibly an address; cast a pointer argument or &array[i] only"
            yield Rule.ADDRESS, *cast.span, message
    elif cast.may_hide_pointer:
        yield Rule.ADDRESS, *cast.span, "a template's parameter as an integer, which may be a pointer; use static_cast"
    elif cast.from_depth or cast.kind == "reinterpret_cast":
        yield (
            Rule.ADDRESS,
            *cast.span,
            "an address as a value; for shared memory use __cvta_generic_to_shared, else index",
        )


def _recursion(functions: tuple[FunctionFact, ...]) -> Iterator[Found]:
    """Cycles of calls by name. Overloads and template recursion may end at compile time and stay."""
    once = {f.name: f for f in functions if f.has_body and sum(g.name == f.name and g.has_body for g in functions) == 1}
    for name, function in once.items():
        for callee, is_template, span in function.calls:
            if not is_template and callee in once and name in _reached(callee, once):
                yield Rule.CALL, *span, f"{callee} leads back to {name}; write a loop"
                break


def _reached(start: str, functions: dict[str, FunctionFact]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in seen and name in functions:
            seen.add(name)
            waiting.extend(callee for callee, is_template, _ in functions[name].calls if not is_template)
    return seen

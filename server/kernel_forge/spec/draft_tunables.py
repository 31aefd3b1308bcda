"""The tunables of a drafted block: guarded macros, and template arguments of the file's own launch.

A template argument is offered where its name is that of a tuning parameter, and nothing but the launch depends on its
value: not the shapes, not the reference. The launch is then written in terms of it, and covers as much at each value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernel_forge.domain.expression import Expression
from kernel_forge.source import Kernel, Macro, SourceFile
from kernel_forge.spec.brackets import split_arguments
from kernel_forge.spec.launch_constants import in_terms_of, values_at
from kernel_forge.spec.launches import SiteLaunch, read_site

_NAMES = re.compile(
    r"block|threads?|tile|unroll|items?|vec|_per_|warps?|stages?|chunk|^[BT]_?[MNKXY]$|^[BT]S$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The values and tables of a block as lines of TOML; ``launch`` is empty where the file's own launch is taken."""

    kernel: str
    reference: str
    is_read: bool
    cases: tuple[str, ...]
    where: tuple[str, ...]
    args: tuple[str, ...]
    launch: tuple[str, ...]
    tune: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """Template arguments as tunables: the kernel with their names, their values, and the launch in terms of them.

    ``launch`` is empty where the file's own launch can be taken for every value.
    """

    kernel: str
    launch: tuple[str, ...]
    tune: tuple[str, ...]


Variant = Callable[[str, SiteLaunch], Parts]
"""The draft of another instance of the kernel, as if the file launched it so."""


def macro_line(macro: Macro) -> str:
    """``BLOCK = [64, 128, 256]``: about the value that the macro has."""
    return f"{macro.name} = [{', '.join(map(str, _around(int(macro.value))))}]"


def offered(
    source: SourceFile, kernel: Kernel, drafted: Parts, known: frozenset[str], variant: Variant, *, is_covered: bool
) -> Offer | None:
    """Template arguments of the launch that was taken for ``drafted``, as tunables; None where none can be one.

    ``known`` are the sizes and other tunables, which extents may be made of. ``is_covered`` where it is known what
    a launch must cover, so that a variant whose launch does not has one of its own.
    """
    name, angle, rest = drafted.kernel.partition("<")
    given = tuple(split_arguments(rest.rpartition(">")[0])) if angle else ()
    values = {} if drafted.launch else _candidates(source, kernel, given, known)
    while values:
        arguments = tuple(
            p.name if p.name in values else a for p, a in zip(kernel.template_params, given, strict=False)
        )
        site = read_site(source, kernel, arguments, known | values.keys())
        if site is None:
            return None
        at = values_at(source, site[0], [a if a in values else None for a in arguments])
        terms = in_terms_of(at, _extents(site))
        own_numbers = any(int(n) > 1 for e in terms.texts[: len(site[1])] for n in re.findall(r"\b\d+\b", e))
        if not terms.is_sure or (own_numbers and not is_covered):
            return None
        launch = _with(site, terms.texts, {})
        other = {
            changed
            for changed, own in values.items()
            for value in _around(own)
            if value != own and not _is_same(drafted, name, arguments, launch, {**values, changed: value}, variant)
        }
        if not other:
            tune = tuple(f"{n} = [{', '.join(map(str, (v, *_others(v))))}]" for n, v in values.items())
            return Offer(f"{name}<{', '.join(arguments)}>", _lines(launch) if terms.names else (), tune)
        values = {n: v for n, v in values.items() if n not in other}
    return None


def _candidates(source: SourceFile, kernel: Kernel, given: Sequence[str], known: frozenset[str]) -> dict[str, int]:
    taken = {*known, *(p.name for p in kernel.params), *(m.name for m in source.macros)}
    return {
        param.name: int(text)
        for param, text in zip(kernel.template_params, given, strict=False)
        if param.kind == "value" and "bool" not in param.type_text and param.name not in taken
        if _NAMES.search(param.name) and text.isdigit() and int(text) > 0
    }


def _is_same(
    drafted: Parts,
    name: str,
    arguments: Sequence[str],
    launch: SiteLaunch,
    values: Mapping[str, int],
    variant: Variant,
) -> bool:
    """Whether an instance computes the same, on arguments of the same shapes, and its launch covers them."""
    instance = f"{name}<{', '.join(str(values.get(a, a)) for a in arguments)}>"
    found = variant(instance, _with(launch, [e.text for e in _extents(launch)], values))
    return (found.reference, found.args, found.launch) == (drafted.reference, drafted.args, drafted.launch)


def _extents(launch: SiteLaunch) -> list[Expression]:
    _, grid, block, shared = launch
    return [*grid, *block, *([shared] if shared is not None else [])]


def _with(launch: SiteLaunch, texts: Sequence[str], values: Mapping[str, int]) -> SiteLaunch:
    """The launch with other extents, in which ``values`` stand for their names."""
    site, grid, block, shared = launch
    made = [Expression.parse(re.sub(r"\b[A-Za-z_]\w*", lambda m: str(values.get(m[0], m[0])), t)) for t in texts]
    end = len(grid) + len(block)
    return site, made[: len(grid)], made[len(grid) : end], None if shared is None else made[end]


def _lines(launch: SiteLaunch) -> tuple[str, ...]:
    _, grid, block, shared = launch
    lines = [f"grid = {_list(grid)}", f"block = {_list(block)}"]
    if shared is not None and shared.text != "0":
        lines.append(f"shared = {_list([shared])}")
    return tuple(lines)


def _list(extents: Sequence[Expression]) -> str:
    texts = [e.text if e.text.isdigit() else f'"{e.text}"' for e in extents]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _others(value: int) -> list[int]:
    return [v for v in _around(value) if v != value]


def _around(value: int) -> list[int]:
    """Power-of-two neighbours of a default."""
    if value < 4 or value & (value - 1):
        return sorted({max(1, value // 2), value, value * 2})
    top = 1024 if value <= 1024 else value * 2
    return [v for v in (value // 2, value, value * 2) if v <= top]

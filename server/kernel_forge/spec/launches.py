"""Launches: from ``[launch]``, or from the launch sites of the file where the block is silent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.domain.finding import Related
from kernel_forge.domain.spec import LaunchSpec
from kernel_forge.domain.text import Location
from kernel_forge.source import Constant, Kernel, LaunchSite, Macro, SourceFile
from kernel_forge.spec.block_model import LaunchTable
from kernel_forge.spec.cpp_expressions import dimensions, with_locals
from kernel_forge.spec.launch_constants import in_terms_of, values_at
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.signature import Instance
from kernel_forge.spec.toml_document import Path

SiteLaunch = tuple[LaunchSite, list[Expression], list[Expression], Expression | None]
"""A launch site with its grid, block and dynamic shared memory."""


@dataclass(frozen=True)
class LaunchReader:
    """Builds the launches of one spec; ``known`` are the names an expression may use, sizes and tunables among them."""

    block: BlockText
    source: SourceFile
    known: frozenset[str]
    sizes: tuple[str, ...]
    tunables: tuple[str, ...]

    def read(
        self, table: LaunchTable | None, instance: Instance, args: tuple[str, ...], path: Path
    ) -> LaunchSpec | None:
        """One launch, or None where something is missing or wrong (noted)."""
        inferred = (
            None
            if table is not None and table.grid and table.block
            else read_site(self.source, instance.kernel, instance.template_args, self.known)
        )
        site, grid, block, shared = inferred or (None, None, None, None)
        if inferred is not None:
            self._refuse_constants(inferred, table, instance, path)
        location = self.block.location_of(path, key=True)
        if table is not None:
            grid = self._list(table.grid, (*path, "grid")) if table.grid else grid
            block = self._list(table.block, (*path, "block")) if table.block else block
            if table.shared is not None:
                shared = self._one(table.shared, (*path, "shared"))
        elif site is not None:
            location = Location(self.source.path, site.range)
        if grid is None or block is None:
            if not self.block.has_errors:
                self._ask_for_launch(instance, path, [k for k, v in (("grid", grid), ("block", block)) if v is None])
            return None
        cluster = self._list(table.cluster, (*path, "cluster")) if table is not None and table.cluster else []
        cooperative = (table is not None and table.cooperative) or (site is not None and site.cooperative)
        return LaunchSpec(
            kernel=instance.expression,
            args=args,
            grid=tuple(grid),
            block=tuple(block),
            shared=shared or Expression.parse("0"),
            cluster=tuple(cluster or ()),
            cooperative=cooperative,
            stream=None if table is None else table.stream,
            location=location,
            types=tuple(instance.element(p, self.source.aliases)[0] for p in instance.kernel.params),
        )

    def _refuse_constants(self, read: SiteLaunch, table: LaunchTable | None, instance: Instance, path: Path) -> None:
        """A launch of one instance says nothing of the others where a number in it is the value of a tunable."""
        site, grid, block, shared = read
        parts = {
            "grid": grid if table is None or not table.grid else [],
            "block": block if table is None or not table.block else [],
            "shared": [shared] if shared is not None and (table is None or table.shared is None) else [],
        }
        values = values_at(self.source, site, [a if a in self.tunables else None for a in instance.template_args])
        found = in_terms_of(values, [each for part in parts.values() for each in part])
        if not found.names:
            return
        entries, texts = [], list(found.texts)
        for key, part in parts.items():
            own = [texts.pop(0) for _ in part]
            if own and (key != "shared" or own != ["0"]):
                entries.append(f"{key} = {_written(own)}")
        shown = "[[launch]]" if isinstance(path[-1], int) else "[launch]"
        example = f": {', '.join(entries)}" if found.is_sure else ""
        fixes = (self.block.insert_lines_fix(path, entries, f"Add {shown} for every value"),) if found.is_sure else ()
        at = ", ".join(f"{name} = {values[name]}" for name in found.names)
        self.block.add(
            "KF113",
            f"the launch of {instance.kernel.name} in line {site.range.start.line + 1} has numbers that are right for "
            f"{at} alone; say in {shown} how it depends on {' and '.join(found.names)}{example}",
            path,
            key=True,
            fixes=fixes,
            related=(Related(Location(self.source.path, site.range), f"launched here with {at}"),),
        )

    def _ask_for_launch(self, instance: Instance, path: Path, keys: list[str]) -> None:
        width = next((n for n in self.tunables if re.search(r"block|threads", n, re.I)), None)
        examples = {
            "grid": f'"cdiv({self.sizes[0]}, {width or 256})"' if self.sizes else "1",
            "block": f'"{width}"' if width else "256",
        }
        shown = "[[launch]]" if isinstance(path[-1], int) else "[launch]"
        title = f"Add {' and '.join(keys)} to {shown}"
        fix = self.block.insert_lines_fix(path, [f"{key} = {examples[key]}" for key in keys], title)
        self.block.add(
            "KF113",
            f"how is {instance.kernel.name} launched? Add {shown} with grid and block, for example "
            f"grid = {examples['grid']} and block = {examples['block']} (no launch in this file could be read)",
            path,
            key=True,
            fixes=(fix,),
        )

    def _list(self, texts: list[str], path: Path) -> list[Expression] | None:
        if not 1 <= len(texts) <= 3:
            self.block.add("KF113", f"one to three extents are needed, not {len(texts)}", path)
            return None
        found = []
        for i, text in enumerate(texts):
            where = (
                path
                if len(texts) == 1 and (*self.block.prefix, *path, 0) not in self.block.document.values
                else (*path, i)
            )
            expression = self._one(text, where)
            if expression is not None:
                found.append(expression)
        return found if len(found) == len(texts) else None

    def _one(self, text: str, path: Path) -> Expression | None:
        try:
            expression = Expression.parse(text)
        except ExpressionError as error:
            self.block.add_expression("KF109", error, path)
            return None
        unknown = sorted(expression.names - self.known)
        if unknown:
            known = ", ".join(sorted(self.known)) or "none"
            message = f"{unknown[0]} is no size, scalar or tunable (known are {known})"
            self.block.add("KF109", message, path, within=expression.place_of(unknown[0]))
            return None
        return expression


def _written(extents: list[str]) -> str:
    texts = [e if e.isdigit() else f'"{e}"' for e in extents]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def read_site(
    source: SourceFile, kernel: Kernel, template_args: tuple[str, ...], known: frozenset[str]
) -> SiteLaunch | None:
    """What the file's own launch of ``kernel`` says, where it is plain arithmetic over ``known`` names."""
    for site in source.launches:
        if site.kernel.split("::")[-1] != kernel.name or not site.grid or not site.block:
            continue
        names = _host_names(source, site, kernel, template_args, known)
        grid = dimensions(site.grid, site, source, names)
        block = dimensions(site.block, site, source, names)
        shared = with_locals(site.shared, site, source, names) if site.shared else None
        expressions = [*(grid or ()), *(block or ()), *((shared,) if shared else ())]
        if grid and block and all(e.names <= known for e in expressions):
            if site.shared and shared is None:
                continue
            return site, grid, block, shared
    return None


def _host_names(
    source: SourceFile, site: LaunchSite, kernel: Kernel, template_args: tuple[str, ...], known: frozenset[str]
) -> Mapping[str, str]:
    """Host variable -> parameter it is passed as; numeric constants -> their values; template arguments."""
    constants: tuple[Macro | Constant, ...] = (*source.macros, *source.constants)
    names = {c.name: c.value for c in constants if c.name not in known and c.value.strip().isdigit()}
    passed = [re.sub(r"^(?:static_cast<[^<>]*>|\(\s*[\w ]+\s*\))?\s*\(?\s*(\w+)\s*\)?$", r"\1", a) for a in site.args]
    for text, param in zip(passed, kernel.params, strict=False):
        if not param.is_pointer and param.name in known and text != param.name:
            names.setdefault(param.name, f"{param.name}_of_the_host")  # a variable of the same name, another value
    for text, param in zip(passed, kernel.params, strict=False):
        if text.isidentifier() and not param.is_pointer and param.name in known:
            names[text] = param.name
    # A name that is passed as a template argument stands for that template parameter's argument.
    for site_arg, own_arg in zip(site.template_args, template_args, strict=False):
        if site_arg.isidentifier() and own_arg in known:
            names[site_arg] = own_arg
    return names

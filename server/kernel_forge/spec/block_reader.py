"""One validated block joined with its kernels: the spec, or every problem that stands in the way."""

from dataclasses import dataclass

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.domain.finding import Severity
from kernel_forge.domain.spec import (
    BufferArg,
    KernelSpec,
    LaunchSpec,
    Reference,
    Role,
    Tolerance,
    Tunable,
)
from kernel_forge.source import SourceFile
from kernel_forge.spec.arguments import ArgumentReader, Names
from kernel_forge.spec.binding import check_cases
from kernel_forge.spec.block_model import Block, LaunchTable
from kernel_forge.spec.launches import LaunchReader
from kernel_forge.spec.problems import BlockText, kernel_fix, listing, nearest
from kernel_forge.spec.references import (
    declared_outputs,
    is_kernel,
    names_read,
    read_references,
)
from kernel_forge.spec.signature import Instance, find_instance, kernel_name
from kernel_forge.spec.tunable_checks import Taken
from kernel_forge.spec.tunables import read_tunables


@dataclass
class SpecDraft:
    """A spec whose kernel references are not resolved yet."""

    block: BlockText
    model: Block
    spec: KernelSpec | None
    kernel_references: dict[str, str]


class BlockReader:
    """Reads one validated block against one kernel."""

    def __init__(self, block: BlockText, model: Block, source: SourceFile, instance: Instance) -> None:
        self.block, self.model, self.source, self.instance = block, model, source, instance
        self.sizes = tuple(model.cases[0])
        self.tunable_names = tuple(n for n in model.tune if n != "where")

    def read(self) -> SpecDraft:
        """The draft; its spec is None where a problem stands in the way."""
        launches = self._launch_instances()
        writable = tuple(
            dict.fromkeys(
                name
                for (_, instance, names) in launches
                for p, name in zip(instance.kernel.params, names, strict=True)
                if p.is_pointer and not p.is_const
            )
        )
        texts = declared_outputs(self.model, writable, self.block)
        arg_names = tuple(dict.fromkeys(n for _, _, names in launches for n in names))
        symbol_names = tuple(s.name for s in self.source.symbols if s.name in self.model.args)
        known = tuple(dict.fromkeys((*arg_names, *symbol_names, *self.sizes)))
        read = frozenset(n for text in texts.values() for n in names_read(text, known))
        names = Names(self.sizes, self.tunable_names, frozenset(texts), read)
        reader = ArgumentReader(self.block, self.model, self.source, names)
        for _, instance, passed in launches:
            for param, name in zip(instance.kernel.params, passed, strict=True):
                reader.add(param, name, instance, only_launch=len(launches) == 1)
        reader.add_symbols()
        if len(launches) == max(1, len(self.model.launch)):  # else it may be what a launch not found takes
            reader.report_unused()
        args = reader.args
        outputs = tuple(n for n, a in args.items() if isinstance(a, BufferArg) and a.role in (Role.OUT, Role.INOUT))
        scalars = frozenset(n for n, a in args.items() if not isinstance(a, BufferArg))
        params = tuple(p.name for _, instance, _ in launches for p in instance.kernel.params)
        taken = Taken(self.sizes, (*params, *arg_names, *symbol_names), tuple(k.name for k in self.source.kernels))
        tunables = read_tunables(self.block, self.model, self.source, self.instance, self.tunable_names, taken)
        in_reach = scalars | frozenset(self.sizes) | frozenset(self.tunable_names)
        made = self._launches(launches, in_reach)
        complete = not self.block.has_errors
        references = self._references(texts, known, outputs, writable, reader) if complete else {}
        kernels = {o: t.rpartition(":")[2].strip() for o, t in texts.items() if is_kernel(t) and o in outputs}
        spec = None
        if not self.block.has_errors:
            spec = self._spec(reader, made, references, tunables)
            spec = check_cases(self.block, spec)
        return SpecDraft(self.block, self.model, spec, kernels)

    def _launch_instances(self) -> list[tuple[LaunchTable | None, Instance, tuple[str, ...]]]:
        tables: list[LaunchTable | None] = [*self.model.launch] or [None]
        found: list[tuple[LaunchTable | None, Instance, tuple[str, ...]]] = []
        for i, table in enumerate(tables):
            instance = self.instance
            if table is not None and table.kernel is not None:
                other = find_instance(table.kernel, self.source)
                if not isinstance(other, Instance):
                    near = nearest(kernel_name(table.kernel), [k.name for k in self.source.kernels])
                    hint = f"; did you mean {near}?" if near else ""
                    path = (*self.block.launch_path(i), "kernel")
                    fixes = (kernel_fix(self.block, path, table.kernel, near),) if near else ()
                    self.block.add("KF105", f"{other}{hint}", path, fixes=fixes)
                    continue
                instance = other
            names = self._passed(table, instance, i)
            if names is not None:
                found.append((table, instance, names))
        return found

    def _references(
        self,
        texts: dict[str, str],
        known: tuple[str, ...],
        outputs: tuple[str, ...],
        writable: tuple[str, ...],
        reader: ArgumentReader,
    ) -> dict[str, Reference]:
        buffers = [a for a in reader.args.values() if isinstance(a, BufferArg)]
        unfilled = frozenset(a.name for a in buffers if a.role in (Role.OUT, Role.SCRATCH))
        return read_references(self.block, self.model, texts, known, outputs, writable, unfilled)

    def _passed(self, table: LaunchTable | None, instance: Instance, i: int) -> tuple[str, ...] | None:
        params = instance.kernel.params
        given = table.args if table is not None else None
        if given is None:
            return tuple(p.name for p in params)
        path = (*self.block.launch_path(i), "args")
        values = given if isinstance(given, list) else list(given.values())
        if not self._are_known(values, path, None if isinstance(given, list) else list(given)):
            return None
        if isinstance(given, list):
            if len(given) != len(params):
                message = f"{instance.kernel.name} has {len(params)} parameters, {len(given)} arguments are listed"
                self.block.add("KF113", message, path)
                return None
            return tuple(given)
        names = {p.name for p in params}
        for key in given:
            if key not in names:
                near = nearest(key, names)
                hint = f"; did you mean {near}?" if near else f"; parameters are {listing(names)}"
                fixes = (self.block.rename_fix((*path, key), near),) if near else ()
                message = f"{key} is no parameter of {instance.kernel.name}{hint}"
                self.block.add("KF113", message, (*path, key), key=True, fixes=fixes)
                return None
        return tuple(given.get(p.name, p.name) for p in params)

    def _are_known(self, values: list[str], path: tuple[str | int, ...], keys: list[str] | None) -> bool:
        """Whether every name passed is an entry of ``[args]``, a size, or a parameter of a kernel of this spec."""
        params = [p.name for k in self.source.kernels for p in k.params]
        known = (*self.model.args, *self.sizes, *params)
        for i, name in enumerate(values):
            if name in known:
                continue
            near = nearest(name, known)
            hint = f"; did you mean {near}?" if near else ""
            message = (
                f"{name} is no argument: write the name of a parameter or of an entry of [args]{hint} "
                f'(for a value of its own: [args] {{ name = {{ value = "..." }} }})'
            )
            self.block.add("KF113", message, (*path, i if keys is None else keys[i]))
            return False
        return True

    def _launches(
        self, launches: list[tuple[LaunchTable | None, Instance, tuple[str, ...]]], known: frozenset[str]
    ) -> tuple[LaunchSpec, ...]:
        reader = LaunchReader(self.block, self.source, known, self.sizes, self.tunable_names)
        made = []
        for i, (table, instance, names) in enumerate(launches):
            launch = reader.read(table, instance, names, self.block.launch_path(i))
            if launch is not None:
                made.append(launch)
        return tuple(made)

    def _spec(
        self,
        reader: ArgumentReader,
        launches: tuple[LaunchSpec, ...],
        references: dict[str, Reference],
        tunables: tuple[Tunable, ...],
    ) -> KernelSpec:
        for name, value in (("baseline", self.model.baseline), ("gate", self.model.gate)):
            if value is not None:
                message = f"{name} is not used yet: no speed is measured or compared by this version"
                self.block.add("KF116", message, (name,), key=True, severity=Severity.INFORMATION)
        tolerance = self.model.tolerance
        tune_where: list[str] = [str(w) for w in self.model.tune.get("where", [])]
        macros = {m.name for m in self.source.macros}
        return KernelSpec(
            kernel=self.instance.kernel.name,
            path=self.source.path,
            block_path=self.block.path,
            block_range=self.block.block.range if self.block.block is not None else self.block.range_of((), key=True),
            name_range=self.instance.kernel.name_range,
            args=tuple(reader.args.values()),
            launches=launches,
            references=references,
            cases=tuple(dict(c) for c in self.model.cases),
            where=self._constraints(self.model.where, ("where",)),
            tunables=tunables,
            tune_where=self._constraints(tune_where, ("tune", "where")),
            tolerance=None if tolerance is None else Tolerance(float(tolerance.absolute), float(tolerance.relative)),
            baseline=self.model.baseline,
            gate=self.model.gate,
            macro_tunables=frozenset(
                n for n in self.tunable_names if n in macros or n not in self.instance.template_args
            ),
        )

    def _constraints(self, texts: list[str], path: tuple[str, ...]) -> tuple[Expression, ...]:
        found = []
        known: set[str] = {*self.sizes, *self.tunable_names}
        for i, text in enumerate(texts):
            try:
                expression = Expression.parse(text)
            except ExpressionError as error:
                self.block.add_expression("KF109", error, (*path, i))
                continue
            unknown = sorted(expression.names - known)
            if unknown:
                message = f"{unknown[0]} is no size or tunable (known are {listing(sorted(known))})"
                self.block.add("KF109", message, (*path, i), within=expression.place_of(unknown[0]))
                continue
            found.append(expression)
        return tuple(found)

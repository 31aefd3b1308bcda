"""Arguments: what the block says joined with what the signature says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.domain.finding import Related
from kernel_forge.domain.spec import (
    Arg,
    BufferArg,
    ConstantInit,
    FunctionInit,
    Init,
    IntegersInit,
    NamedInit,
    Role,
    ScalarArg,
)
from kernel_forge.domain.text import Location
from kernel_forge.source import Param, SourceFile, Symbol
from kernel_forge.source.scalar_types import element_type
from kernel_forge.spec.block_model import ArgTable, Block, InitTable
from kernel_forge.spec.problems import BlockText, listing, nearest
from kernel_forge.spec.signature import Instance
from kernel_forge.spec.textures import ask_for_texels, texture_arg
from kernel_forge.spec.toml_document import Path


@dataclass(frozen=True)
class Names:
    """What a name in the block can mean."""

    sizes: tuple[str, ...]
    tunables: tuple[str, ...]
    outputs: frozenset[str]
    read_by_reference: frozenset[str]


def _is_handle(param: Param, dtype: DType | None) -> bool:
    """Whether a parameter can carry a texture object though its type is only a number's."""
    return dtype is DType.UINT64 and not param.is_pointer


def _named_dtype(text: str) -> DType | None:
    return next((d for d in DType if d.value == text), None)


class ArgumentReader:
    """Builds the arguments of one spec; problems go to ``block``."""

    def __init__(self, block: BlockText, model: Block, source: SourceFile, names: Names) -> None:
        self.block = block
        self.model = model
        self.source = source
        self.names = names
        self.args: dict[str, Arg] = {}
        self.seen: set[str] = set()

    def add(self, param: Param, name: str, instance: Instance, *, only_launch: bool) -> None:
        """The argument called ``name`` is passed as ``param``; a second launch may pass it again."""
        here = Location(self.source.path, param.range)
        self.seen.add(name)
        table = self.model.args.get(name)
        if param.unsupported is not None and (table is None or table.dtype is None or not param.is_pointer):
            self.block.add(
                "KF108",
                f"parameter {param.name} of {instance.kernel.name} cannot be made: {param.unsupported}"
                + (
                    f'; or say what it is: {name} = {{ dtype = "float", ... }}'
                    if param.is_pointer and param.type_text.count("*") < 2
                    else ""
                ),
                ("kernel",),
                related=(Related(here, f"declared here as {param.type_text}"),),
            )
            return
        dtype, lanes = instance.element(param, self.source.aliases)
        if param.is_texture or (table is not None and table.texture is not None):
            self._add_texture(param, name, table, is_handle=param.is_texture or _is_handle(param, dtype))
            return
        # The spec knows better than an alias, which may stand under an #if; what is spelled out is what is compiled.
        is_spelled_out = param.is_template_type or element_type(param.type_text, {}).dtype is not None
        if (dtype is None or not is_spelled_out) and table is not None and table.dtype is not None:
            dtype, lanes = self._written_type(table.dtype)
        if dtype is None:
            self.block.add(
                "KF108",
                f"parameter {param.name} has the type {param.type_text}, which this file does not define; "
                f'say what it is: {name} = {{ dtype = "float", ... }}',
                ("args", name) if table is not None else ("kernel",),
                key=table is not None,
                related=(Related(here, "declared here"),),
            )
            return
        if param.is_pointer:
            made: Arg | None = self._buffer(param, name, dtype, lanes, table, only_launch)
        else:
            made = self._scalar(param, name, dtype, table)
        if made is not None:
            self._keep(name, replace(made, location=here))

    def _keep(self, name: str, made: Arg) -> None:
        old = self.args.get(name)
        if isinstance(old, BufferArg) and isinstance(made, BufferArg):
            made = self._joined(old, made)
        self.args[name] = made

    def _written_type(self, text: str) -> tuple[DType | None, int]:
        """Element type and lanes of a ``dtype``."""
        given = element_type(text, self.source.aliases)
        return _named_dtype(text) or given.dtype, given.lanes

    def _add_texture(self, param: Param, name: str, table: ArgTable | None, *, is_handle: bool) -> None:
        here = Location(self.source.path, param.range)
        declared = (Related(here, f"declared here as {param.type_text}"),)
        if not is_handle:
            message = f"{name} is no texture object: its type is {param.type_text}, not cudaTextureObject_t"
            self.block.add("KF104", message, ("args", name, "texture"), key=True, related=declared)
        elif table is None or table.shape is None or table.dtype is None:
            ask_for_texels(self.block, name, declared, is_written=table is not None)
        else:
            shape = self._expressions(table.shape, ("args", name, "shape")) or ()
            made = texture_arg(self.block, name, table, self._written_type(table.dtype), shape)
            if made is not None:
                self._keep(name, replace(made, init=self._init(name, table), location=here))

    def _joined(self, old: BufferArg, new: BufferArg) -> BufferArg:
        """A buffer that two launches share: one of them may only read it, the other may write."""
        if old.dtype is not new.dtype:
            self.block.add(
                "KF107",
                f"{old.name} is {old.dtype.value} in one launch and {new.dtype.value} in another",
                ("args", old.name),
                key=True,
            )
        if (old.texture is None) != (new.texture is None):
            message = (
                f"{old.name} is a texture in one launch and a buffer in another: a texture is filled before the run"
            )
            self.block.add("KF107", message, ("args", old.name), key=True)
        role = old.role if old.role is not Role.IN else new.role
        return replace(old, role=role, lanes=max(old.lanes, new.lanes), location=new.location)

    def add_symbols(self) -> None:
        """Entries of ``[args]`` that name a ``__constant__`` or ``__device__`` variable."""
        for name, table in self.model.args.items():
            if name in self.args:
                continue
            symbol = next((s for s in self.source.symbols if s.name == name), None)
            if symbol is None:
                continue
            made = self._symbol(symbol, table)
            if made is not None:
                self.args[name] = made

    def report_unused(self) -> None:
        """Entries of ``[args]`` that nothing takes."""
        known = tuple(self.args) or ("none",)
        for name in self.model.args:
            if name in self.args or name in self.seen:
                continue
            near = nearest(name, [k for k in known if k not in self.model.args] or known)
            fixes = (self.block.rename_fix(("args", name), near),) if near else ()
            hint = f"; did you mean {near}?" if near else f"; parameters are {listing(known)}"
            self.block.add(
                "KF107", f"{name} is no parameter of the kernel{hint}", ("args", name), key=True, fixes=fixes
            )

    def _buffer(
        self, param: Param, name: str, dtype: DType, lanes: int, table: ArgTable | None, only_launch: bool
    ) -> BufferArg | None:
        path: Path = ("args", name)
        shape = self._shape(name, table)
        role = self._role(name, param, table, only_launch)
        if shape is None or role is None:
            return None
        if table is not None and table.value is not None:
            self.block.add("KF104", f"{name} is a pointer; give it a shape, not a value", path)
            return None
        init = self._init(name, table)
        return BufferArg(name, dtype, shape, role, init, lanes)

    def _shape(self, name: str, table: ArgTable | None) -> tuple[Expression, ...] | None:
        if table is None or table.shape is None:
            if len(self.names.sizes) == 1:
                return (Expression.parse(self.names.sizes[0]),)
            sizes = listing(self.names.sizes)
            example = f"{name} = {{ shape = [{', '.join(json.dumps(s) for s in self.names.sizes) or '1'}] }}"
            fix = self.block.insert_lines_fix(("args",), [example], f"Add {name} to [args]")
            self.block.add(
                "KF106",
                f"{name} needs a shape, for example {example} (sizes are {sizes})",
                ("args", name) if table is not None else ("args",),
                key=True,
                fixes=(fix,) if table is None else (),
            )
            return None
        return self._expressions(table.shape, ("args", name, "shape"))

    def _expressions(self, texts: list[str], path: Path) -> tuple[Expression, ...] | None:
        found = []
        for i, text in enumerate(texts):
            try:
                found.append(Expression.parse(text))
            except ExpressionError as error:
                self.block.add_expression("KF109", error, (*path, i))
        return tuple(found) if len(found) == len(texts) else None

    def _role(self, name: str, param: Param, table: ArgTable | None, only_launch: bool) -> Role | None:
        if table is not None and table.role is not None:
            role = Role(table.role)
            if param.is_const and role in (Role.OUT, Role.INOUT) and only_launch:
                message = f'{name} is const in the kernel, so it cannot be an output; use role = "in"'
                self.block.add("KF104", message, ("args", name, "role"))
                return None
            return role
        if param.is_const:
            return Role.IN
        if name in self.names.outputs:
            return Role.INOUT if name in self.names.read_by_reference else Role.OUT
        if not only_launch and name not in self.names.read_by_reference:
            return Role.SCRATCH
        return Role.IN

    def _init(self, name: str, table: ArgTable | None) -> Init | None:
        if table is None or table.init is None:
            return None
        path: Path = ("args", name, "init")
        init = table.init
        if not isinstance(init, InitTable):
            if ":" in init.name:
                file, _, function = init.name.rpartition(":")
                return FunctionInit(file, function)
            return NamedInit(init.name)
        if init.kind == "constant":
            if init.value is None:
                self.block.add("KF106", 'a constant needs its value: { kind = "constant", value = 0 }', path)
                return None
            return ConstantInit(init.value)
        if init.high is None:
            self.block.add("KF106", 'integers need a limit: { kind = "integers", low = 0, high = 64 }', path)
            return None
        try:
            return IntegersInit(Expression.parse(init.low or "0"), Expression.parse(init.high))
        except ExpressionError as error:
            self.block.add_expression("KF109", error, path)
            return None

    def _scalar(self, param: Param, name: str, dtype: DType, table: ArgTable | None) -> ScalarArg | None:
        path: Path = ("args", name)
        text: str
        if table is not None and table.value is not None:
            text = str(int(table.value)) if isinstance(table.value, bool) else str(table.value)
        elif table is not None and (table.shape is not None or table.role is not None):
            self.block.add("KF104", f"{name} is passed by value; write {name} = 1.0, not a shape", path)
            return None
        elif name in self.names.sizes or name in self.names.tunables:
            text = name
        else:
            example = "1e-6" if dtype.is_float else "1"
            fix = self.block.insert_lines_fix(("args",), [f"{name} = {example}"], f"Add {name} to [args]")
            near = nearest(name, self.names.sizes)
            hint = f' (is it the size {near}? then write {name} = "{near}")' if near else ""
            self.block.add(
                "KF106",
                f"parameter {name} needs a value: {name} = {example}{hint}",
                ("args",),
                key=True,
                fixes=(fix,),
            )
            return None
        try:
            return ScalarArg(name, dtype, Expression.parse(text))
        except ExpressionError as error:
            self.block.add_expression("KF109", error, path)
            return None

    def _symbol(self, symbol: Symbol, table: ArgTable) -> BufferArg | None:
        here = Location(self.source.path, symbol.range)
        if symbol.dtype is None:
            message = f"the variable {symbol.name} has a type for which no contents can be made"
            self.block.add("KF108", message, ("args", symbol.name), related=(Related(here, "declared here"),))
            return None
        texts = table.shape
        if texts is None:
            macros: Mapping[str, str] = {m.name: m.value for m in self.source.macros}
            texts = [
                macros.get(t.strip(), t) if t.strip() not in self.names.tunables else t for t in symbol.shape_texts
            ]
        shape = self._expressions(texts or ["1"], ("args", symbol.name, "shape"))
        if shape is None:
            return None
        role = Role(table.role) if table.role else Role.IN
        return BufferArg(
            symbol.name, symbol.dtype, shape, role, self._init(symbol.name, table), symbol.lanes, True, here
        )

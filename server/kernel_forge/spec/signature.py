"""Which kernel a name means, and what its parameters are once template arguments are known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.dtypes import DType
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.source.scalar_types import element_type
from kernel_forge.spec.brackets import split_arguments

_INSTANCE = re.compile(r"^\s*(?P<name>[\w:]+)\s*(?:<(?P<args>.*)>)?\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Instance:
    """A kernel named in a block: ``f<BLOCK, float>``. ``template_args`` are as written, defaults filled in."""

    kernel: Kernel
    template_args: tuple[str, ...]

    @property
    def expression(self) -> str:
        """The C++ expression that names the instance."""
        if not self.kernel.template_params:
            return self.kernel.qualified_name
        return f"{self.kernel.qualified_name}<{', '.join(self.template_args)}>"

    def element(self, param: Param, aliases: Mapping[str, str]) -> tuple[DType | None, int]:
        """Element type and lanes of a parameter, template type arguments put in."""
        if param.is_template_type is None:
            return param.dtype, param.lanes
        for template_param, argument in zip(self.kernel.template_params, self.template_args, strict=False):
            if template_param.name == param.is_template_type:
                element = element_type(argument, aliases)
                return element.dtype, element.lanes
        return None, 1


def find_instance(text: str, source: SourceFile) -> Instance | str:
    """The kernel that ``text`` names, or what is wrong with it."""
    match = _INSTANCE.match(text)
    if match is None:
        return f'{text!r} is no kernel; write a name such as "f" or "f<BLOCK, float>"'
    name = match["name"].split("::")[-1]
    candidates = [k for k in source.kernels if k.name == name or k.qualified_name == match["name"]]
    exact = [k for k in candidates if k.qualified_name == match["name"]] or candidates
    defined = [k for k in exact if k.body_range is not None] or exact
    if not defined:
        return f"the file has no kernel named {name}"
    kernel = defined[0]
    given = [a for a in split_arguments(match["args"] or "") if a]
    if given and not kernel.template_params:
        return f"{name} is not a template; write it without template arguments"
    args = list(given)
    for param in kernel.template_params[len(given) :]:
        if param.default is None:
            wanted = ", ".join(p.name for p in kernel.template_params)
            return f'{name} is a template; write its arguments: kernel = "{name}<{wanted}>"'
        args.append(param.default)
    return Instance(kernel, tuple(args))


def kernel_name(text: str) -> str:
    """The bare name in a block's ``kernel`` key."""
    match = _INSTANCE.match(text)
    return match["name"].split("::")[-1] if match is not None else text.strip()

"""Blocks larger than ``__launch_bounds__`` promised: CUDA refuses such a launch, an emulator would not notice."""

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.outcome import LaunchFailed
from kernel_forge.domain.text import Location
from kernel_forge.source import SourceFile
from kernel_forge.source.model import Kernel
from kernel_forge.spec import BoundCase
from kernel_forge.spec.brackets import split_arguments

_ROUNDS = 4  # constants made of constants


def exceeded_bounds(source: SourceFile, bound: BoundCase) -> LaunchFailed | None:
    """The first launch of ``bound`` with more threads than its kernel's bounds, where these can be worked out.

    CUDA C++ Programming Guide, *Launch Bounds*: a kernel fails to launch with more threads per block than maxThreads.
    """
    for launch in bound.launches:
        name, _, arguments = launch.kernel.partition("<")
        kernel = next((k for k in source.kernels if name.strip() in (k.name, k.qualified_name)), None)
        if kernel is None or not kernel.launch_bounds:
            continue
        limit = _value(kernel.launch_bounds[0], _scope(source, bound, kernel, arguments.rpartition(">")[0]))
        x, y, z = launch.block
        if limit is not None and x * y * z > limit:
            written = f"__launch_bounds__({', '.join(kernel.launch_bounds)})"
            value = "" if kernel.launch_bounds[0].strip() == str(limit) else f", which is {limit}"
            message = f"the block ({x}, {y}, {z}) has {x * y * z} threads, more than {written}{value} allows"
            return LaunchFailed("configuration", message, Location(source.path, kernel.name_range))
    return None


def _scope(source: SourceFile, bound: BoundCase, kernel: Kernel, arguments: str) -> dict[str, Number]:
    texts = {m.name: m.value for m in source.macros} | {c.name: c.value for c in source.constants} | dict(bound.defines)
    given = split_arguments(arguments)
    for position, parameter in enumerate(kernel.template_params):
        text = given[position] if position < len(given) else parameter.default
        if text is not None:
            texts[parameter.name] = text
    scope: dict[str, Number] = {}
    for _ in range(_ROUNDS):
        for name, text in texts.items():
            value = None if name in scope else _value(text, scope)
            if value is not None:
                scope[name] = value
    return scope


def _value(text: str, scope: dict[str, Number]) -> int | None:
    try:
        return Expression.parse(text.replace("/", "//").strip()).evaluate_int(scope)
    except ExpressionError:
        return None

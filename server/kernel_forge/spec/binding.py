"""A spec with its sizes and tunables given numbers: shapes, scalars and launches."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.finding import Finding, Related, Severity
from kernel_forge.domain.launch import BufferRef, Dim3, Launch, Scalar
from kernel_forge.domain.spec import (
    Arg,
    BufferArg,
    Configuration,
    KernelSpec,
    LaunchSpec,
    ScalarArg,
    Sizes,
)
from kernel_forge.domain.text import Location
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.textures import texture_problem
from kernel_forge.spec.toml_document import Path

MAX_CASE_BYTES = 2 << 30
_MAX_EXTENT = 2**31 - 1


@dataclass(frozen=True)
class BoundCase:
    """One case with numbers.

    Attributes:
        shapes: buffer -> extents, in scalars.
        scalars: scalar argument -> value.
        launches: those with something to do; a launch whose grid has a zero because a size is zero is left out.
        defines: macros for this configuration.
        kernels: kernel expressions to compile, each once.
    """

    sizes: Sizes
    configuration: Configuration
    shapes: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, Number]
    launches: tuple[Launch, ...]
    defines: Mapping[str, str]
    kernels: tuple[str, ...]

    def count(self, name: str) -> int:
        """Elements of a buffer."""
        return math.prod(self.shapes[name])


class _Problem(Exception):
    """``path`` is where in the block it is, ``within`` (offset, length) the part of that string."""

    def __init__(
        self,
        code: str,
        message: str,
        path: Path = (),
        within: tuple[int, int] | None = None,
        location: Location | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.path, self.within, self.location = code, path, within, location


def _cannot(code: str, message: str, error: ExpressionError, path: Path, location: Location | None = None) -> _Problem:
    return _Problem(code, message, path, (error.offset, error.length), location)


def bind(spec: KernelSpec, sizes: Sizes, configuration: Configuration) -> BoundCase | Finding:
    """``spec`` at ``sizes`` and ``configuration``, or what does not fit."""
    try:
        return _bind(spec, sizes, configuration)
    except _Problem as problem:
        where = problem.location or Location(spec.block_path, spec.block_range)
        return Finding(problem.code, Severity.ERROR, str(problem), where.path, where.range)


def is_legal(spec: KernelSpec, sizes: Sizes, configuration: Configuration) -> bool:
    """Whether the sizes satisfy every ``where`` at this configuration."""
    try:
        return all(bool(w.evaluate({**configuration, **sizes})) for w in spec.where)
    except ExpressionError:
        return False


def _bind(spec: KernelSpec, sizes: Sizes, configuration: Configuration) -> BoundCase:
    scope: dict[str, Number] = {**configuration, **sizes}
    shown = ", ".join(f"{k} = {v}" for k, v in {**sizes, **configuration}.items()) or "no sizes"
    scalars = {a.name: _scalar(a, scope, shown) for a in spec.args if isinstance(a, ScalarArg)}
    scope = {**scalars, **scope}
    shapes = {a.name: _shape(a, scope, shown) for a in spec.args if isinstance(a, BufferArg)}
    total = sum(math.prod(shapes[a.name]) * a.dtype.itemsize for a in spec.args if isinstance(a, BufferArg))
    if total > MAX_CASE_BYTES:
        largest = max(shapes, key=lambda n: math.prod(shapes[n]))
        raise _Problem(
            "KF110",
            f"this case needs {total / 2**30:.3g} GiB ({largest} has {math.prod(shapes[largest])} elements); "
            f"the limit is {MAX_CASE_BYTES >> 30} GiB for all buffers together",
        )
    args = {a.name: a for a in spec.args}
    is_empty = any(v == 0 for v in sizes.values())
    launches = [
        _launch(spec, i, launch, args, scalars, scope, shown, is_empty) for i, launch in enumerate(spec.launches)
    ]
    kernels = tuple(dict.fromkeys(_kernel_text(launch.kernel, configuration) for launch in spec.launches))
    defines = {n: _define(configuration[n]) for n in configuration if n in spec.macro_tunables}
    made = tuple(launch for launch in launches if launch is not None)
    return BoundCase(dict(sizes), dict(configuration), shapes, scalars, made, defines, kernels)


def _define(value: Number) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _kernel_text(text: str, configuration: Configuration) -> str:
    return re.sub(
        r"\b[^\W\d]\w*\b",
        lambda m: _define(configuration[m.group()]) if m.group() in configuration else m.group(),
        text,
    )


def _scalar(arg: ScalarArg, scope: Mapping[str, Number], shown: str) -> Number:
    path: Path = ("args", arg.name)
    try:
        value = arg.value.evaluate(scope)
    except ExpressionError as error:
        raise _cannot("KF109", f"{arg.name}: {error} (with {shown})", error, path) from None
    if arg.dtype.is_float:
        return float(value)
    if arg.dtype is DType.BOOL:
        return bool(value)
    if isinstance(value, float) and not value.is_integer():
        raise _Problem("KF109", f"{arg.name} is {value:g}, but its type is {arg.dtype.value} (with {shown})", path)
    limits = np.iinfo(arg.dtype.value)
    if not limits.min <= value <= limits.max:
        raise _Problem("KF110", f"{arg.name} = {int(value)} does not fit into {arg.dtype.value} (with {shown})", path)
    return int(value)


def _shape(arg: BufferArg, scope: Mapping[str, Number], shown: str) -> tuple[int, ...]:
    extents = []
    for i, expression in enumerate(arg.shape):
        path: Path = ("args", arg.name, "shape", i)
        try:
            extent = expression.evaluate_int(scope)
        except ExpressionError as error:
            raise _cannot("KF109", f"shape of {arg.name}: {error} (with {shown})", error, path) from None
        if extent < 0:
            raise _Problem("KF110", f"shape of {arg.name}: {expression.text} is {extent} (with {shown})", path)
        extents.append(extent)
    count = math.prod(extents)
    if count % arg.lanes:
        raise _Problem(
            "KF110",
            f"{arg.name} has {count} elements, not a multiple of its vector type's {arg.lanes} (with {shown})",
            ("args", arg.name, "shape"),
        )
    problem = texture_problem(arg, tuple(extents))
    if problem is not None:
        raise _Problem("KF110", f"{arg.name} {problem} (with {shown})", ("args", arg.name, "shape"))
    return tuple(extents)


def _dim3(values: list[int]) -> Dim3:
    padded = [*values, 1, 1][:3]
    return (padded[0], padded[1], padded[2])


def _launch(
    spec: KernelSpec,
    number: int,
    launch: LaunchSpec,
    args: Mapping[str, Arg],
    scalars: Mapping[str, Number],
    scope: Mapping[str, Number],
    shown: str,
    is_empty: bool,
) -> Launch | None:
    path: Path = ("launch", number)
    grid = _extents(launch, "grid", scope, shown, path)
    block = _extents(launch, "block", scope, shown, path)
    cluster = _extents(launch, "cluster", scope, shown, path) if launch.cluster else None
    shared_path: Path = (*path, "shared")
    try:
        shared = launch.shared.evaluate_int(scope)
    except ExpressionError as error:
        raise _cannot("KF113", f"shared: {error} (with {shown})", error, shared_path, launch.location) from None
    if not 0 <= shared <= _MAX_EXTENT:
        message = f"shared is {shared} bytes (with {shown})"
        raise _Problem("KF113", message, shared_path, location=launch.location)
    if 0 in grid or 0 in block:
        if is_empty:
            return None
        what, extents = ("grid", grid) if 0 in grid else ("block", block)
        message = f"{what} is zero with {shown}; a launch needs at least one"
        raise _Problem("KF113", message, (*path, what, extents.index(0)), location=launch.location)
    passed: list[BufferRef | Scalar] = []
    for name, dtype in zip(launch.args, launch.types or (None,) * len(launch.args), strict=True):
        arg = args[name]
        if isinstance(arg, BufferArg):
            passed.append(BufferRef(name))
        else:
            passed.append(Scalar(dtype or arg.dtype, scalars[name]))
    return Launch(
        _kernel_text(launch.kernel, {k: v for k, v in scope.items() if k in spec.default_configuration}),
        tuple(passed),
        _dim3(grid),
        _dim3(block),
        shared,
        None if cluster is None else _dim3(cluster),
        launch.cooperative,
        launch.stream,
    )


def _extents(launch: LaunchSpec, what: str, scope: Mapping[str, Number], shown: str, path: Path) -> list[int]:
    values = []
    for i, expression in enumerate(getattr(launch, what)):
        here: Path = (*path, what, i)
        try:
            value = expression.evaluate_int(scope)
        except ExpressionError as error:
            raise _cannot("KF113", f"{what}: {error} (with {shown})", error, here, launch.location) from None
        if value < 0:
            message = f"{what} {expression.text} is {value} (with {shown})"
            raise _Problem("KF113", message, here, location=launch.location)
        if value > _MAX_EXTENT:
            message = f"{what} {expression.text} is {value}, more than CUDA's {_MAX_EXTENT} (with {shown})"
            raise _Problem("KF113", message, here, location=launch.location)
        values.append(value)
    return values


def check_cases(block: BlockText, spec: KernelSpec) -> KernelSpec | None:
    """``spec`` if every case binds at the default configuration; what does not is noted at its case."""
    sizes = spec.sizes
    for i, case in enumerate(spec.cases):
        path = ("cases", i)
        missing = [s for s in sizes if s not in case]
        extra = [s for s in case if s not in sizes]
        if missing or extra:
            what = f"lacks {missing[0]}" if missing else f"has {extra[0]}, which the first case has not"
            block.add("KF110", f"every case must give all sizes; this one {what}", path)
            continue
        negative = next((s for s in case if case[s] < 0), None)
        if negative is not None:
            block.add("KF110", f"{negative} = {case[negative]}: a size is never negative", (*path, negative))
            continue
        illegal = next((w for w in spec.where if not _holds(block, w, case, spec)), None)
        if illegal is not None:
            block.add("KF110", f"this case breaks the constraint {illegal.text}", path)
            continue
        try:
            _bind(spec, case, spec.default_configuration)
        except _Problem as problem:
            _note(block, problem, path)
    for constraint in spec.tune_where:
        try:
            holds = bool(constraint.evaluate({**spec.cases[0], **spec.default_configuration}))
        except ExpressionError as error:
            block.add("KF109", str(error), ("tune", "where"))
            continue
        if not holds:
            block.add("KF112", f"the defaults break the constraint {constraint.text}", ("tune", "where"))
    return None if block.has_errors else spec


def _note(block: BlockText, problem: _Problem, case: Path) -> None:
    """A problem at the expression that has it and the case as a related place; else at the case."""
    path = problem.path
    if path[:1] == ("launch",):
        path = (*block.launch_path(int(path[1])), *path[2:])
    related = (Related(block.location_of(case), "in this case"),)
    forms = [path, path[:-1]] if path and isinstance(path[-1], int) else [path]  # one extent may stand without a list
    written = next((form for form in forms if form and block.is_written(form)), None)
    where = problem.location
    if written is not None:
        block.add(problem.code, str(problem), written, related=related, within=problem.within)
    elif where is not None and not block.holds(where):  # read off a launch in the source
        block.findings.append(Finding(problem.code, Severity.ERROR, str(problem), where.path, where.range, related))
    else:
        block.add(problem.code, str(problem), case)


def _holds(block: BlockText, constraint: Expression, case: Sizes, spec: KernelSpec) -> bool:
    try:
        return bool(constraint.evaluate({**spec.default_configuration, **case}))
    except ExpressionError as error:
        block.add("KF109", str(error), ("where",))
        return True

"""What the outputs must be: the reference, evaluated in float64 (or, to learn its own error, in the kernel's type)."""

import inspect
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernel_forge.domain.expression import Number
from kernel_forge.domain.spec import (
    BufferArg,
    ExpressionReference,
    FunctionReference,
    KernelReference,
    KernelSpec,
    Reference,
    Sizes,
)
from kernel_forge.domain.text import Location
from kernel_forge.spec import BoundCase
from kernel_forge.spec.numpy_expression import NumpyExpression, python_name
from kernel_forge.verify.exactness import Traced
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.limits import TIME_LIMIT, OutOfTime, ReferenceFailed, limits
from kernel_forge.verify.reductions import Watch, Watched, lost, reduces
from kernel_forge.verify.user_code import UserFiles, blame


@dataclass
class Troubles:
    """Whether the last evaluation overflowed or made NaN of numbers: what is not finite is then not deliberate."""

    seen: bool = False

    def note(self, _kind: str, _flag: int) -> None:
        """Called by NumPy."""
        self.seen = True


@dataclass(frozen=True)
class Evaluator:
    """Evaluates the Python references of a spec.

    ``deadline`` (of ``time.monotonic``) ends every evaluation; no single one takes longer than :data:`TIME_LIMIT`.
    """

    spec: KernelSpec
    loaded: UserFiles
    deadline: float = math.inf
    troubles: Troubles = field(default_factory=Troubles)

    @staticmethod
    def of(spec: KernelSpec, deadline: float = math.inf) -> "Evaluator":
        """The evaluator of ``spec``; files are read when first needed and once per evaluator."""
        return Evaluator(spec, UserFiles(Path(spec.path).parent), deadline)

    @property
    def time_left(self) -> float:
        """Seconds for the next evaluation.

        Raises:
            ReferenceFailed: the time of the whole verification is over.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime("the time limit of the verification was reached", None)
        return min(TIME_LIMIT, left)

    def reduces(self, bound: BoundCase, inputs: Mapping[str, Array]) -> bool:
        """Whether results can be sums of many terms: by the calls of expressions, by watching functions run once.

        A function whose arithmetic cannot be watched counts as one that reduces.
        """
        found = False
        seen: set[tuple[str, str]] = set()
        for reference in self.spec.references.values():
            if isinstance(reference, ExpressionReference):
                found = found or reduces(reference.text)
            elif isinstance(reference, FunctionReference) and (reference.path, reference.function) not in seen:
                seen.add((reference.path, reference.function))
                found = found or self._function_reduces(reference, bound, inputs)
        return found

    def _function_reduces(self, reference: FunctionReference, bound: BoundCase, inputs: Mapping[str, Array]) -> bool:
        watch = Watch()
        environment = self._environment(bound, inputs, np.float64)
        watched = {n: Watched.of(v, watch) if isinstance(v, np.ndarray) else v for n, v in environment.items()}
        try:
            with limits(self.time_left, reference.location), np.errstate(all="ignore"):
                return lost(self._call(reference, watched, shared=False)) or watch.reduces
        except ReferenceFailed:
            self.time_left  # noqa: B018 (the end of all time is told; else it wants plain arrays)
            return True

    def evaluate(
        self, bound: BoundCase, inputs: Mapping[str, Array], float_type: type[np.floating[Any]] = np.float64
    ) -> dict[str, Array]:
        """Output name -> what it must be, in the output's shape; floats as ``float_type``.

        Outputs whose reference is another kernel are left out.

        Raises:
            ReferenceFailed: the reference raised, took too long, or returned the wrong shape.
        """
        environment = self._environment(bound, inputs, float_type)
        results: dict[str, Array] = {}
        self.troubles.seen = False
        from_functions: dict[tuple[str, str], Any] = {}
        shared = len(set(self.spec.references.values())) > 1
        for output in self.spec.outputs:
            reference = self.spec.references[output.name]
            if isinstance(reference, KernelReference):
                continue
            with (
                _advice(bound.sizes),
                limits(self.time_left, reference.location),
                self._watching(),
                blame("the reference", reference.location),
            ):
                if isinstance(reference, ExpressionReference):
                    raw = self._expression(reference, environment)
                else:
                    key = (reference.path, reference.function)
                    if key not in from_functions:
                        from_functions[key] = self._call(reference, environment, shared=shared)
                    raw = self._pick(from_functions[key], output, reference)
                results[output.name] = _shaped(raw, output, bound.shapes[output.name], reference)
        return results

    def _watching(self) -> np.errstate:
        return np.errstate(divide="ignore", under="ignore", over="call", invalid="call", call=self.troubles.note)

    def load(self, path: str, function: str, location: Location | None = None) -> Callable[..., Any]:
        """A function of a Python file beside the source, read fresh.

        Raises:
            ReferenceFailed: no such file or function, or the file raises.
        """
        return self.loaded.function(path, function, location)

    def _environment(
        self, bound: BoundCase, inputs: Mapping[str, Array], float_type: type[np.floating[Any]]
    ) -> dict[str, Any]:
        environment: dict[str, Any] = dict(bound.sizes)
        for name, value in bound.scalars.items():
            environment[name] = _scalar(self.spec, name, value)
        for name, array in inputs.items():
            environment[name] = _widened(array, float_type) if isinstance(array, np.ndarray) else array
        return environment

    def _expression(self, reference: ExpressionReference, environment: Mapping[str, Any]) -> Any:
        expression = NumpyExpression.parse(reference.text, environment)
        return expression.evaluate(environment)

    def _call(self, reference: FunctionReference, environment: Mapping[str, Any], *, shared: bool) -> Any:
        """What a function returns; it may change its arguments, so where others get them too it gets copies."""
        function = self.load(reference.path, reference.function, reference.location)
        environment = {python_name(name): value for name, value in environment.items()}
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            message = f"{reference.function} does not tell its arguments; write def {reference.function}(...)"
            raise ReferenceFailed(message, reference.location) from None
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            passed = dict(environment)
        else:
            unknown = [n for n, p in parameters.items() if n not in environment and p.default is p.empty]
            if unknown:
                raise ReferenceFailed(
                    f"{reference.function} asks for {unknown[0]}, which is no argument (there are "
                    f"{', '.join(environment)})",
                    reference.location,
                )
            passed = {n: environment[n] for n in parameters if n in environment}
        np.random.seed(0)  # a reference that draws numbers gives the same ones every time
        random.seed(0)
        if shared:
            passed = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in passed.items()}
        return function(**passed)

    def _pick(self, result: Any, output: BufferArg, reference: FunctionReference) -> Any:
        names = [o for o, r in self.spec.references.items() if isinstance(r, FunctionReference) and r == reference]
        same = [
            o
            for o, r in self.spec.references.items()
            if isinstance(r, FunctionReference) and (r.path, r.function) == (reference.path, reference.function)
        ]
        if isinstance(result, Mapping):
            if output.name not in result:
                message = f"{reference.function} returned no {output.name} (it has {', '.join(map(str, result))})"
                raise ReferenceFailed(message, reference.location)
            return result[output.name]
        if len(same) > 1 and isinstance(result, tuple) and len(result) == len(same):
            return result[same.index(output.name)]
        if len(same) > 1 and len(names) > 0:
            message = f"{reference.function} serves {len(same)} outputs; return a mapping from name to array"
            raise ReferenceFailed(message, reference.location)
        return result


def _scalar(spec: KernelSpec, name: str, value: Number) -> Any:
    """A scalar as the kernel gets it: rounded to its type."""
    arg = next(a for a in spec.args if a.name == name)
    rounded = np.asarray(value).astype(arg.dtype.numpy)
    return float(rounded) if arg.dtype.is_float else rounded.item()


def _widened(array: Array, float_type: type[np.floating[Any]]) -> Array:
    if array.dtype.kind in "fV" or array.dtype.name == "bfloat16":
        return array.astype(float_type)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        return array.copy()
    return array.copy() if array.dtype.kind == "b" else array.astype(np.int64)


@contextmanager
def _advice(sizes: Sizes) -> Iterator[None]:
    """Say how to leave out empty sizes where a reference raises at one."""
    try:
        yield
    except ReferenceFailed as error:
        empty = [name for name, value in sizes.items() if value == 0]
        if not empty or isinstance(error, OutOfTime) or " raised " not in str(error):
            raise
        zeros, written = ", ".join(f"{n} = 0" for n in empty), ", ".join(f'"{n} > 0"' for n in empty)
        message = f"{error} (with {zeros}; if that is no legal size, exclude it: where = [{written}])"
        raise ReferenceFailed(message, error.location) from error


def _shaped(raw: Any, output: BufferArg, shape: tuple[int, ...], reference: Reference) -> Array:
    if isinstance(raw, Traced):
        raw.record.reached.add(output.name)
    try:
        array = np.asarray(raw)  # also takes the place of every class of ours
    except Exception as error:
        raise ReferenceFailed(f"the reference of {output.name} is no array: {error}", reference.location) from error
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise ReferenceFailed(f"the reference of {output.name} gave {_kind(raw, array)}", reference.location)
    if array.shape != shape:
        if array.size == int(np.prod(shape)) and not _is_permuted(array.shape, shape):
            array = array.reshape(shape)
        elif array.ndim == 0:
            array = np.full(shape, array)
        else:
            message = (
                f"the reference of {output.name} has the shape {array.shape}, the output {shape}; change the output's "
                f"shape in [args] or the reference"
            )
            raise ReferenceFailed(message, reference.location)
    return array


def _is_permuted(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    """Whether both have the same extents in another order: reshaping would mix up what should be transposed."""
    a, b = ([n for n in shape if n != 1] for shape in (one, two))
    return a != b and sorted(a) == sorted(b)


def _kind(raw: Any, array: Array) -> str:
    """What came instead of numbers."""
    if raw is None:
        return "None; return an array"
    if inspect.isgenerator(raw):
        return "a generator; return an array instead of yielding"
    if inspect.iscoroutine(raw):
        raw.close()  # else Python warns that nobody waits for it
        return "a coroutine; write def instead of async def"
    if inspect.isclass(raw) or callable(raw):
        return f"{getattr(raw, '__name__', type(raw).__name__)}, which is no array; return what it computes"
    if array.dtype.kind != "O" or isinstance(raw, np.ndarray | list | tuple):
        what = "Python objects" if array.dtype.kind == "O" else str(array.dtype)
        return f"elements of the type {what}, not numbers"
    return f"an object of the class {type(raw).__name__}, not an array"

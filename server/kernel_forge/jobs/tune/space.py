"""The search space of a kernel: its tunables under its own constraints and those that the device implies."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.spec import Configuration, KernelSpec, LaunchSpec, ScalarArg, Sizes
from kernel_forge.domain.tuning import SpaceFacts
from kernel_forge.jobs.tune.static_shared import surely_static
from kernel_forge.perf.launch_limits import BLOCK, STATIC_SHARED, THREADS
from kernel_forge.perf.occupancy import WARP
from kernel_forge.search import EmptySpace, SearchSpace, parameters_of
from kernel_forge.source import SourceFile

_WARP_CODE = re.compile(
    r"\b(__shfl(_up|_down|_xor)?_sync|__(all|any|ballot|activemask|reduce_\w+|match_\w+)(_sync)?|__syncwarp"
    r"|w?mma::|nvcuda::|tiled_partition|coalesced_threads)\b|\bmma\.sync\b|\bwgmma\b"
)


@dataclass(frozen=True, slots=True)
class _Implied:
    expression: Expression
    reason: str


def search_space(
    spec: KernelSpec,
    source: SourceFile,
    cases: Sequence[Sizes],
    fixed: Configuration,
    limits: HardwareLimits | None,
    device: str,
) -> SearchSpace:
    """The configurations that are valid at each of ``cases``; the tunables in ``fixed`` have one value only.

    ``limits`` are those of the device, named ``device`` in messages; without them the limits that hold for every GPU.

    Raises:
        EmptySpace: there are none; the message names the constraint at fault, and what it comes from.
        UsageError: there is nothing to tune, or there are too many combinations.
    """
    if not spec.tunables:
        raise UsageError(f"{spec.kernel} has no [tune] table in its spec, so there is nothing to tune")
    values = [(t.name, (fixed[t.name],) if t.name in fixed else t.values) for t in spec.tunables]
    own: list[Expression] = []
    implied: list[_Implied] = []
    scopes = [{**_constant_scalars(spec, case), **case} for case in cases]
    for scope in scopes:
        named = {} if len(scopes) == 1 else scope  # one case leaves constraints as they were written
        known = {*scope, *(t.name for t in spec.tunables)}
        own += [_at(e, named) for e in (*spec.tune_where, *spec.where) if e.names <= known]
        implied += [
            _Implied(_at(each.expression, named), each.reason)
            for each in _implied(spec, source, scope, limits, device)
            if each.expression.names <= known
        ]
    constraints = list(dict.fromkeys((*own, *(each.expression for each in implied))))
    try:
        return SearchSpace.of(parameters_of(values), constraints, scopes[0])
    except EmptySpace as error:
        raise EmptySpace(f"{spec.kernel}: {_explained(str(error), implied)}") from None


def facts_of(space: SearchSpace) -> SpaceFacts:
    """The size of a space, for people."""
    parameters = {p.name: tuple(v for v in p.values if not isinstance(v, str)) for p in space.parameters}
    return SpaceFacts(space.combinations, space.size, parameters)


def ruled_out(space: SearchSpace) -> list[str]:
    """What a space lacks because a constraint has no value there, a note for each such constraint."""
    return [
        f"{note.constraint} has no value for {note.combinations} combinations ({note.reason}): they are ruled out"
        for note in space.without_value
    ]


def _at(expression: Expression, scope: Mapping[str, Number]) -> Expression:
    """``expression`` with the names in ``scope`` given their values: cases differ in them."""
    text = re.sub(
        r"\b[A-Za-z_]\w*\b",
        lambda m: f"({scope[m[0]]})" if m[0] in scope and m[0] in expression.names else m[0],
        expression.text,
    )
    return Expression.parse(text)


def _constant_scalars(spec: KernelSpec, case: Sizes) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for arg in spec.args:
        if isinstance(arg, ScalarArg) and arg.name not in case:
            try:
                found[arg.name] = arg.value.evaluate(case)
            except ExpressionError:  # it depends on a tunable
                continue
    return found


def _implied(
    spec: KernelSpec, source: SourceFile, scope: Mapping[str, Number], limits: HardwareLimits | None, device: str
) -> Iterator[_Implied]:
    most = limits.threads_per_block if limits is not None else THREADS
    for launch in spec.launches:
        of = f"of {launch.kernel}" if len(spec.launches) > 1 else "of the kernel"
        threads = " * ".join(f"({extent.text})" for extent in launch.block)
        yield _Implied(Expression.parse(f"1 <= {threads} <= {most}"), f"threads per block {of}, on {device}")
        for axis, extent, limit in zip("xyz", launch.block, BLOCK, strict=False):
            if limit < most:
                yield _Implied(Expression.parse(f"({extent.text}) <= {limit}"), f"threads along {axis} {of}")
        if _is_warp_code(spec, launch, source, scope):
            reason = f"whole warps {of}, whose code works on warps"
            yield _Implied(Expression.parse(f"({threads}) % {WARP} == 0"), reason)
        static = surely_static(source, spec, launch)
        if static is not None:
            reason = f"bytes of static shared memory {of}, of which CUDA allows so many"
            yield _Implied(Expression.parse(f"{static.text} <= {STATIC_SHARED}"), reason)
        if limits is None:
            continue
        if launch.shared.names:
            shared = limits.shared_bytes_per_block
            yield _Implied(
                Expression.parse(f"({launch.shared.text}) <= {shared}"), f"bytes of shared memory {of}, on {device}"
            )
        if launch.cluster:
            blocks = " * ".join(f"({extent.text})" for extent in launch.cluster)
            reason = f"blocks in a cluster {of}, on {device}"
            yield _Implied(Expression.parse(f"{blocks} <= {limits.cluster_blocks}"), reason)


def _is_warp_code(spec: KernelSpec, launch: LaunchSpec, source: SourceFile, scope: Mapping[str, Number]) -> bool:
    """Whether the kernel's own text has warp-wide operations, and its default configuration has whole warps."""
    name = launch.kernel.partition("<")[0].strip()
    body = next((k.body_range for k in source.kernels if k.name == name and k.body_range is not None), None)
    if body is None or not _WARP_CODE.search(source.text[source.offset(body.start) : source.offset(body.end)]):
        return False
    threads = 1
    try:
        for extent in launch.block:
            threads *= extent.evaluate_int({**scope, **spec.default_configuration})
    except ExpressionError:
        return False
    return threads % WARP == 0


def _explained(message: str, implied: Sequence[_Implied]) -> str:
    for each in implied:
        if message.endswith(each.expression.text) or f"{each.expression.text} " in message:
            return f"{message} ({each.reason})"
    return message

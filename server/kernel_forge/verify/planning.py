"""Which cases are checked, in which order, with which inputs."""

import contextlib
from dataclasses import dataclass, replace

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.spec import BufferArg, Configuration, KernelReference, KernelSpec, Sizes
from kernel_forge.spec import BoundCase, bind, edge_cases, is_legal
from kernel_forge.verify.inputs import KINDS
from kernel_forge.verify.runs import largest_extent, thread_count

EDGE_BYTES = 1 << 20
SCHEDULED_THREADS = 1 << 14
OWN_SCHEDULED_THREADS = 1 << 18
FEWEST_SCHEDULED = 5


@dataclass(frozen=True)
class PlannedCase:
    """A case to check, with the kinds of inputs and whether every schedule is tried."""

    bound: BoundCase
    origin: str
    kinds: tuple[str, ...]
    all_schedules: bool
    is_own: bool


def plan(spec: KernelSpec, configuration: Configuration, seed: int) -> list[PlannedCase] | Finding | Unavailable:
    """Every case: the cheapest own one, then the others, cheap first; ``seed`` draws some of the sizes.

    Own cases must bind, for the kernel (else the Finding) and for every reference kernel (else Unavailable);
    generated ones that do not are left out.
    """
    wanted: list[tuple[Sizes, str, bool]] = [(c, f"case {i + 1}", True) for i, c in enumerate(spec.cases)]
    wanted += [(s, origin, False) for s, origin in edge_cases(spec, configuration, limit_bytes=EDGE_BYTES, seed=seed)]
    bounds: list[tuple[BoundCase, str, bool]] = []
    for sizes, origin, is_own in wanted:
        bound = bind(spec, sizes, configuration)
        if isinstance(bound, Finding):
            if is_own:
                return bound
            continue
        problem = _reference_problem(spec, bound)
        if problem is not None:
            if is_own:
                return problem
            continue
        bounds.append((bound, origin, is_own))
    bounds.sort(key=lambda b: thread_count(b[0]) * max(1, largest_extent(b[0])))
    scheduled = _scheduled(bounds)
    planned = []
    for i, (bound, origin, is_own) in enumerate(bounds):
        kinds: tuple[str, ...] = (KINDS[i % len(KINDS)],)
        if is_own:
            kinds = tuple(dict.fromkeys(("centred", "spikes", "one-signed", "low", *_deciding(spec), *kinds)))
        planned.append(PlannedCase(bound, origin, kinds, i in scheduled, is_own))
    first = next((c for c in planned if c.is_own), None)
    return planned if first is None else [first, *(c for c in planned if c is not first)]


def _reference_problem(spec: KernelSpec, bound: BoundCase) -> Unavailable | None:
    """Why a reference kernel cannot be launched at these sizes."""
    for reference in spec.references.values():
        if isinstance(reference, KernelReference):
            made = reference_bound(spec, reference, bound)
            if isinstance(made, Finding):
                message = f"the reference kernel {reference.kernel} cannot be launched: {made.message}"
                return Unavailable(message, reference.location)
    return None


def _deciding(spec: KernelSpec) -> tuple[str, ...]:
    """Kinds that integer results hang on: exact ties, and the whole range of the type."""
    if all(a.dtype.is_float for a in spec.outputs):
        return ("thresholds",)
    return ("tied", "thresholds") if any(a.dtype.is_float for a in spec.args) else ("thresholds", "large")


def _scheduled(bounds: list[tuple[BoundCase, str, bool]]) -> set[int]:
    """Which cases run under every schedule: a few small ones, the largest of moderate size, and the spec's own.

    Small and moderate go by the threads of a launch; where the grid is large at every size, the cheapest are small.
    """
    threads = [thread_count(b[0]) for b in bounds]
    running = [i for i, n in enumerate(threads) if n > 0]
    moderate = [i for i in running if threads[i] <= SCHEDULED_THREADS]
    if len(moderate) < FEWEST_SCHEDULED:
        moderate = sorted(running, key=lambda i: threads[i])[:FEWEST_SCHEDULED]
    chosen = set(moderate[-3:]) | set(moderate[:2])
    chosen |= {i for i in running if bounds[i][2] and threads[i] <= OWN_SCHEDULED_THREADS}
    if len(moderate) > 6:
        chosen.add(moderate[len(moderate) // 2])
    return chosen


def reference_bound(spec: KernelSpec, reference: KernelReference, bound: BoundCase) -> BoundCase | Finding:
    """``bound`` with the launches of a reference kernel in place of the spec's own."""
    other = replace(spec, launches=reference.launches)
    return bind(other, bound.sizes, bound.configuration)


def empty_textures(spec: KernelSpec, configuration: Configuration) -> dict[str, str]:
    """Generated cases that cannot be made, with the reason: a legal size of zero at which a texture has no texels."""
    found = {}
    for arg in spec.args:
        if not isinstance(arg, BufferArg) or arg.texture is None:
            continue
        for name in sorted({n for e in arg.shape for n in e.names} & set(spec.sizes)):
            sizes = {**spec.cases[0], name: 0}
            with contextlib.suppress(ExpressionError):
                extents = [e.evaluate_int({**configuration, **sizes}) for e in arg.shape]
                if 0 not in extents or not is_legal(spec, sizes, configuration):
                    continue
                found[f"{name} = 0"] = f"{arg.name} would have no texels, and CUDA has no such texture"
    return found

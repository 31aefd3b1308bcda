"""The verification policy: from a spec to a verdict, cheap checks before dear ones.

The steps are those of the design, section 6. Each is named in ``Verdict.checks`` once made, or in
``Verdict.skipped`` with the reason.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import (
    CaseId,
    CompilerMessage,
    Launched,
    LaunchFailed,
    Outcome,
    Passed,
    TimedOut,
    Unavailable,
    Verdict,
)
from kernel_forge.domain.spec import Configuration, KernelSpec
from kernel_forge.ports import Artifact, Device, DeviceInfo
from kernel_forge.source import SourceFile
from kernel_forge.spec import bind
from kernel_forge.verify.atomics import unordered_outputs
from kernel_forge.verify.check_case import OUT_OF_TIME, CaseChecker
from kernel_forge.verify.code import thresholds
from kernel_forge.verify.compiling import compile_case
from kernel_forge.verify.failure import CaseHeld, CaseOpen, Tally
from kernel_forge.verify.filtering import filtered_textures
from kernel_forge.verify.inputs import master_seed
from kernel_forge.verify.launch_bounds import exceeded_bounds
from kernel_forge.verify.planning import PlannedCase, empty_textures, plan
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import largest_extent, thread_count
from kernel_forge.verify.shrinking import shrink
from kernel_forge.verify.size_limits import LARGE_RUN_LIMIT, Measured, explained_by_size, too_large

SMALL_RUN_LIMIT = 5.0
MOST_POSTPONED = 2
SANITIZER_LIMIT = 60.0
SANITIZED_CASES = 3


@dataclass
class _State:
    """What a verification has seen so far."""

    spec: KernelSpec
    configuration: Configuration
    info: DeviceInfo
    seed: int
    started: float
    limit: float
    checks: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: tuple[CompilerMessage, ...] = ()
    cases: int = 0
    runs: int = 0
    tally: Tally = field(default_factory=Tally)
    undecided: dict[str, str] = field(default_factory=dict)
    """Own cases that were not decided, with the reason: without them nothing is verified."""

    def verdict(self, outcome: Outcome, case: CaseId | None = None) -> Verdict:
        return Verdict(
            kernel=self.spec.kernel,
            path=self.spec.path,
            outcome=outcome,
            configuration=dict(self.configuration),
            seed=self.seed,
            device=self.info.name,
            basis=self.info.basis,
            case=case,
            checks=tuple(dict.fromkeys(self.checks)),
            skipped=dict(self.skipped),
            notes=tuple(dict.fromkeys(self.notes)),
            seconds=time.monotonic() - self.started,
            warnings=self.warnings,
            launches=() if case is None else self._launches(case),
        )

    def _launches(self, case: CaseId) -> tuple[Launched, ...]:
        bound = bind(self.spec, case.sizes, self.configuration)
        if isinstance(bound, Finding):
            return ()
        return tuple(Launched(each.kernel, each.grid, each.block, each.shared_bytes) for each in bound.launches)


def verify(
    spec: KernelSpec,
    source: SourceFile,
    device: Device,
    *,
    seed: int | None = None,
    configuration: Configuration | None = None,
    report: Report = lambda _: None,
    time_limit: float = 120.0,
    include_dirs: tuple[str, ...] = (),
    defines: Mapping[str, str] | None = None,
    flags: tuple[str, ...] = (),
    sanitize: bool = False,
) -> Verdict:
    """Differential verification of one kernel at one configuration (default: the defaults in the source).

    The same ``seed`` repeats the same inputs and order; None draws a fresh one. ``time_limit`` (seconds) bounds
    the whole, compiling and the reference included (but not what a device prepares once per machine): generated cases
    that do not fit into it are named in ``Verdict.skipped``; an own case that does not is no pass (Unavailable).
    ``sanitize`` adds an execution of a few cases under each of the device's sanitizers.
    """
    chosen = {**spec.default_configuration, **(configuration or {})}
    master = master_seed(seed)
    info = device.info()
    report(Progress(f"preparing {info.name}"))
    unusable = Unavailable(info.unavailable) if info.unavailable is not None else device.prepare()
    state = _State(spec, chosen, info, master, time.monotonic(), time_limit)
    if unusable is not None:
        return state.verdict(unusable)
    cases = plan(spec, chosen, master)
    if isinstance(cases, Finding):
        return state.verdict(LaunchFailed("configuration", cases.message))
    if isinstance(cases, Unavailable):
        return state.verdict(cases)
    refused = {_label(c): exceeded_bounds(source, c.bound) for c in cases}
    first = next((problem for c in cases if c.is_own and (problem := refused[_label(c)]) is not None), None)
    if first is not None:
        return state.verdict(first)
    cases = [c for c in cases if refused[_label(c)] is None]
    deadline = state.started + time_limit
    report(Progress(f"compiling {spec.kernel}", 0, len(cases) + 1))
    artifact = compile_case(spec, source, device, cases[0].bound, include_dirs, defines or {}, deadline, flags)
    if not isinstance(artifact, Artifact):
        return state.verdict(artifact)
    state.notes.extend(m.message for m in artifact.messages if m.severity == "note")
    state.warnings = tuple(m for m in artifact.messages if m.severity == "warning")
    state.checks.extend(("compiles", "spec and signature agree"))
    _note_tolerance(state)
    state.skipped.update(empty_textures(spec, chosen))
    checker = CaseChecker(
        spec,
        device,
        artifact,
        Evaluator.of(spec, deadline),
        unordered=unordered_outputs(spec, source, include_dirs),
        seed=master,
        thresholds=thresholds(spec, source),
    )
    verdict = _check_all(state, checker, cases, report, deadline)
    if sanitize and isinstance(verdict.outcome, Passed):
        return _sanitize(state, checker, cases, report, deadline) or state.verdict(verdict.outcome)
    return verdict


def _note_tolerance(state: _State) -> None:
    tolerance = state.spec.tolerance
    filtered = ", ".join(a.name for a in filtered_textures(state.spec))
    if filtered and tolerance is None:
        state.notes.append(
            f"a GPU filters {filtered} with weights of 8 bits: the tolerance has room for 2^-8 of the spread of "
            "neighbouring texels per dimension"
        )
    if tolerance is not None:
        state.notes.append(
            f"tolerance set in the spec: {tolerance.absolute:g} absolute + {tolerance.relative:g} relative, "
            "instead of the derived one"
        )


def _check_all(
    state: _State, checker: CaseChecker, cases: list[PlannedCase], report: Report, deadline: float
) -> Verdict:
    half = (state.started + deadline) / 2
    unavailable: Unavailable | None = None
    measured: Measured | None = None
    waiting = list(cases)
    postponed: set[str] = set()
    while waiting:
        case = _next(waiting, hurried=time.monotonic() > half)
        label = _label(case)
        report(Progress(f"{state.spec.kernel}: {label}", len(cases) - len(waiting), len(cases) + 1))
        reason = too_large(state.spec, state.info, case, measured, deadline)
        if reason is not None:
            _leave_out(state, case, reason)
            continue
        left = deadline - time.monotonic()
        # Of what is left a part, until a run has ended: two cases may be postponed, and the third then decides.
        limit = min(LARGE_RUN_LIMIT, max(1.0, left)) if measured else min(SMALL_RUN_LIMIT, max(0.5, left / 4))
        result = checker.check(case, limit, deadline)
        state.runs += checker.take_runs()
        if isinstance(result, CaseOpen):
            _leave_out(state, case, result.reason)
        elif isinstance(result, CaseHeld):
            measured = _take(state, case, result) or measured
        elif isinstance(result.outcome, Unavailable):
            unavailable = unavailable or result.outcome
            if result.about_reference or not case.is_own:
                return state.verdict(result.outcome, result.case)
            _leave_out(state, case, result.outcome.reason)
        elif isinstance(result.outcome, TimedOut) and waiting and measured is None and len(postponed) < MOST_POSTPONED:
            postponed.add(label)  # smaller cases tell whether it is the size; a kernel without end has none that do
            waiting.append(case)
        elif isinstance(result.outcome, TimedOut) and state.cases > 0 and explained_by_size(case, measured, limit):
            _leave_out(state, case, f"too large to run in {limit:.0f} s on this device ({state.info.basis})")
        else:
            report(Progress(f"{state.spec.kernel}: finding the smallest failing case", len(cases), len(cases) + 1))
            explained = checker.explain(shrink(checker, case, result, deadline))
            state.runs += checker.take_runs()
            return state.verdict(explained.outcome, explained.case)
    return _sum_up(state, sum(c.is_own for c in cases), unavailable)


def _sanitize(
    state: _State, checker: CaseChecker, cases: list[PlannedCase], report: Report, deadline: float
) -> Verdict | None:
    """The verdict where a sanitizer found something or could not be asked; None where all is well."""
    if state.info.sanitizer is not None:
        if state.info.has_misuse_checks:  # it checks as much in every run
            state.skipped["sanitizer"] = state.info.sanitizer
            return None
        return state.verdict(Unavailable(state.info.sanitizer))
    own = [c for c in cases if c.is_own]
    for case in [*own[:1], *(c for c in cases if not c.is_own)][:SANITIZED_CASES]:
        report(Progress(f"{state.spec.kernel}: sanitizer, {_label(case)}", len(cases), len(cases) + 1))
        left = deadline - time.monotonic()
        if left <= 0:
            return state.verdict(Unavailable("the time limit of the verification was reached before the sanitizer"))
        found = checker.sanitize(case, min(SANITIZER_LIMIT, left))
        state.runs += checker.take_runs()
        if found is not None:
            return state.verdict(found.outcome, found.case)
    state.checks.append("memcheck, racecheck, initcheck and synccheck found nothing")
    return None


def _next(waiting: list[PlannedCase], *, hurried: bool) -> PlannedCase:
    """Takes the next case; once half the time is over the spec's own cases go first, as nothing passes without them."""
    own = next((i for i, c in enumerate(waiting) if c.is_own), None)
    return waiting.pop(own if hurried and own is not None else 0)


def _leave_out(state: _State, case: PlannedCase, reason: str) -> None:
    state.skipped[_label(case)] = reason
    if case.is_own:
        state.undecided[_label(case)] = reason


def _take(state: _State, case: PlannedCase, held: CaseHeld) -> Measured | None:
    state.cases += 1
    state.tally.merge(held.tally)
    state.checks.extend(held.checks)
    state.notes.extend(held.notes)
    if held.seconds <= 0:
        return None
    return Measured(held.seconds, thread_count(case.bound), largest_extent(case.bound))


def _sum_up(state: _State, own: int, unavailable: Unavailable | None) -> Verdict:
    """A pass only where every own case was decided, and every output compared somewhere."""
    for name, count in state.tally.left_out.items():
        if count:
            total = count + state.tally.compared[name]
            state.notes.append(
                f"{count} of {total} elements of {name} were not compared: the reference overflows there"
            )
    if state.undecided:
        label, reason = next(iter(state.undecided.items()))
        if unavailable is not None and own == 1:
            return state.verdict(unavailable)
        within = f" within the limit of {state.limit:g} s" if reason == OUT_OF_TIME else ""
        done = own - len(state.undecided)
        message = f"only {done} of {own} cases could be run{within}; {label}: {reason}"
        return state.verdict(Unavailable(message, None if unavailable is None else unavailable.location))
    never = next((a.name for a in state.spec.outputs if not state.tally.compared.get(a.name)), None)
    if never is not None:
        return state.verdict(unavailable or Unavailable(f"no element of {never} was compared in any case"))
    if not state.info.has_schedules:
        state.skipped["orders of threads"] = "this device cannot choose the order"
    return state.verdict(Passed(state.cases, state.runs, dict(state.tally.worst)))


def _label(case: PlannedCase) -> str:
    sizes = ", ".join(f"{k} = {v}" for k, v in case.bound.sizes.items()) or "no sizes"
    return sizes if case.is_own else f"{sizes} ({case.origin})"

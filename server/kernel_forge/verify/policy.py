"""The verification policy: from a spec to a verdict, cheap checks before dear ones.

The steps are those of the design, section 6. Each is named in ``Verdict.checks`` once made, or in
``Verdict.skipped`` with the reason.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernel_forge.domain.event import Progress, Report
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import (
    CaseId,
    CompileFailed,
    LaunchFailed,
    Outcome,
    Passed,
    TimedOut,
    Unavailable,
    Verdict,
)
from kernel_forge.domain.spec import Configuration, KernelReference, KernelSpec
from kernel_forge.ports import Artifact, Device, DeviceInfo
from kernel_forge.source import SourceFile
from kernel_forge.spec import BoundCase
from kernel_forge.verify.check_case import CaseChecker
from kernel_forge.verify.code import has_float_atomics, thresholds
from kernel_forge.verify.failure import CaseFailure
from kernel_forge.verify.planning import PlannedCase, plan, reference_bound
from kernel_forge.verify.references import Evaluator
from kernel_forge.verify.runs import largest_extent, thread_count
from kernel_forge.verify.shrinking import shrink

EMULATED_CASE_BYTES = 256 << 20
SMALL_RUN_LIMIT = 5.0
LARGE_RUN_LIMIT = 15.0


@dataclass
class _State:
    """What a verification has seen so far."""

    spec: KernelSpec
    configuration: Configuration
    info: DeviceInfo
    seed: int
    started: float
    checks: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cases: int = 0
    runs: int = 0
    worst: dict[str, float] = field(default_factory=dict)

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
        )


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
) -> Verdict:
    """Differential verification of one kernel at one configuration (default: the defaults in the source).

    The same ``seed`` repeats the same inputs and order; None draws a fresh one. ``time_limit`` (seconds) bounds
    the whole: cases that do not fit into it are named in ``Verdict.skipped``.
    """
    chosen = {**spec.default_configuration, **(configuration or {})}
    master = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed % 2**32
    state = _State(spec, chosen, device.info(), master, time.monotonic())
    if state.info.unavailable is not None:
        return state.verdict(Unavailable(state.info.unavailable))
    cases = plan(spec, chosen, master)
    if isinstance(cases, Finding):
        return state.verdict(LaunchFailed("configuration", cases.message))
    report(Progress(f"compiling {spec.kernel}", 0, len(cases) + 1))
    artifact = _compile(spec, source, device, cases[0].bound, include_dirs, defines or {}, flags)
    if not isinstance(artifact, Artifact):
        return state.verdict(artifact)
    state.notes.extend(m.message for m in artifact.messages if m.severity == "note")
    state.checks.extend(("compiles", "spec and signature agree"))
    _note_tolerance(state)
    checker = CaseChecker(
        spec,
        device,
        artifact,
        Evaluator.of(spec),
        float_atomics=has_float_atomics(spec, source),
        seed=master,
        thresholds=thresholds(spec, source),
    )
    return _check_all(state, checker, cases, report, time_limit)


def _compile(
    spec: KernelSpec,
    source: SourceFile,
    device: Device,
    bound: BoundCase,
    include_dirs: tuple[str, ...],
    defines: Mapping[str, str],
    flags: tuple[str, ...],
) -> Artifact | CompileFailed | Unavailable:
    kernels: dict[str, None] = dict.fromkeys(bound.kernels)
    for reference in spec.references.values():
        if isinstance(reference, KernelReference):
            for name in reference_bound(spec, reference, bound).kernels:
                kernels[name] = None
    symbols = tuple(a.name for a in spec.args if getattr(a, "is_symbol", False))
    return device.compile(
        CompileRequest(
            path=source.path,
            text=source.text,
            kernels=tuple(kernels),
            symbols=symbols,
            defines={**defines, **bound.defines},
            include_dirs=include_dirs,
            flags=flags,
        )
    )


def _note_tolerance(state: _State) -> None:
    tolerance = state.spec.tolerance
    if tolerance is not None:
        state.notes.append(
            f"tolerance set in the spec: {tolerance.absolute:g} absolute + {tolerance.relative:g} relative, "
            "instead of the derived one"
        )


def _check_all(
    state: _State, checker: CaseChecker, cases: list[PlannedCase], report: Report, time_limit: float
) -> Verdict:
    deadline = state.started + time_limit
    unavailable: Unavailable | None = None
    timed: tuple[float, int, int] | None = None  # seconds, threads, extent of the last measured run
    for i, case in enumerate(cases):
        label = _label(case)
        report(Progress(f"{state.spec.kernel}: {label}", i + 1, len(cases) + 1))
        reason = _too_large(state, case, timed, deadline)
        if reason is not None:
            state.skipped[label] = reason
            continue
        limit = min(LARGE_RUN_LIMIT if timed is not None else SMALL_RUN_LIMIT, max(1.0, deadline - time.monotonic()))
        result = checker.check(case, limit)
        state.runs += checker.take_runs()
        if isinstance(result, CaseFailure):
            if isinstance(result.outcome, Unavailable):
                unavailable = unavailable or result.outcome
                if result.about_reference or not case.is_own:
                    return state.verdict(result.outcome, result.case)
                state.skipped[label] = result.outcome.reason
                continue
            if isinstance(result.outcome, TimedOut) and _explained_by_size(state, case, timed, limit):
                state.skipped[label] = f"too large to run in {limit:.0f} s on this device ({state.info.basis})"
                continue
            report(Progress(f"{state.spec.kernel}: finding the smallest failing case", i + 1, len(cases) + 1))
            smallest = shrink(checker, case, result, deadline)
            state.runs += checker.take_runs()
            explained = checker.explain(smallest)
            state.runs += checker.take_runs()
            return state.verdict(explained.outcome, explained.case)
        state.cases += 1
        if result.seconds > 0:
            timed = (result.seconds, thread_count(case.bound), largest_extent(case.bound))
        for name, fraction in result.worst.items():
            state.worst[name] = max(state.worst.get(name, 0.0), fraction)
        state.checks.extend(result.checks)
        state.notes.extend(result.notes)
    if state.cases == 0:
        return state.verdict(unavailable or Unavailable("no case could be run on this device"))
    if not state.info.has_schedules:
        state.skipped["orders of threads"] = "this device cannot choose the order"
    return state.verdict(Passed(state.cases, state.runs, dict(state.worst)))


def _label(case: PlannedCase) -> str:
    sizes = ", ".join(f"{k} = {v}" for k, v in case.bound.sizes.items()) or "no sizes"
    return sizes if case.is_own else f"{sizes} ({case.origin})"


def _bytes(bound: BoundCase, spec: KernelSpec) -> int:
    return sum(bound.count(a.name) * a.dtype.itemsize for a in spec.args if hasattr(a, "shape"))


def _too_large(state: _State, case: PlannedCase, timed: tuple[float, int, int] | None, deadline: float) -> str | None:
    left = deadline - time.monotonic()
    if left <= 0:
        return "the time limit of the verification was reached before it"
    if state.info.basis != "emulated":
        return None
    size = _bytes(case.bound, state.spec)
    if size > EMULATED_CASE_BYTES:
        return f"{size >> 20} MiB of buffers; emulation is limited to {EMULATED_CASE_BYTES >> 20} MiB"
    if timed is not None:
        seconds, threads, _ = timed
        predicted = seconds * thread_count(case.bound) / max(1, threads)
        if predicted > min(LARGE_RUN_LIMIT, left):
            return f"about {predicted:.0f} s to emulate, judged by smaller cases; verify it on a GPU"
    return None


def _explained_by_size(state: _State, case: PlannedCase, timed: tuple[float, int, int] | None, limit: float) -> bool:
    """Whether a time-out can be the size's fault: smaller cases ended, and their time grows to it."""
    if timed is None or state.cases == 0:
        return False
    seconds, threads, extent = timed
    growth = thread_count(case.bound) / max(1, threads) * largest_extent(case.bound) / max(1, extent)
    return seconds * growth > limit / 4

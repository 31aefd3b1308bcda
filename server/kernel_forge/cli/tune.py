"""``kernel-forge tune``."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from kernel_forge import __version__
from kernel_forge.cli.applying import Applied, Files, applied_json, applied_lines
from kernel_forge.cli.exit_codes import FAILED, INTERRUPTED, UNAVAILABLE, code_of, worst
from kernel_forge.cli.options import budget, cases, defines, known_sampler, settings, sizes
from kernel_forge.cli.output import can_show_blocks, may_be_closed, warn
from kernel_forge.cli.reading import findings_for, is_failure, lines_of, read_target
from kernel_forge.cli.replacement import check_output, replace_text, write_whole
from kernel_forge.cli.running import job_failure, run_jobs, tune_report
from kernel_forge.cli.targets import Target, find_targets
from kernel_forge.domain.errors import KernelForgeError, UsageError
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Unavailable, Verdict
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.tuning import KernelTuning
from kernel_forge.jobs.client import JobCancelled, TuneEnd
from kernel_forge.jobs.requests import TuneRequest
from kernel_forge.ports import FindLedger
from kernel_forge.source import SourceFile
from kernel_forge.spec import SpecReading
from kernel_forge.views.console import finding_lines, verdict_lines
from kernel_forge.views.report_json import finding_json, verdict_json
from kernel_forge.views.selector import is_selector, selector_text
from kernel_forge.views.tuning import tuning_lines
from kernel_forge.views.tuning_json import tuning_json

Pair = tuple[Target, SourceFile, SpecReading]


@dataclass
class _Row:
    """A file with what came of its kernels, in their order: a result, or a finding where the job gave none.

    Attributes:
        codes: exit codes of the jobs that gave no report.
    """

    target: Target
    source: SourceFile
    reading: SpecReading
    problems: list[Finding]
    results: list[tuple[KernelTuning | Verdict | Finding, Applied | None]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    selector: str | None = None
    is_unwritten: bool = False


def tune_command(options: argparse.Namespace, find_ledger: FindLedger) -> int:
    """Tune every kernel with a spec and tunables; the exit code is 0 where that could be done, whoever won.

    1 where a kernel, or every configuration, is wrong, or a winner could not be applied that should have been; 3 where
    one could not be tuned; 2 or 70 where the job of one failed; the worst of these where there are several kernels,
    whose results are all told. 130 where an interrupt left kernels out.
    """
    known_sampler(options.sampler)
    targets = find_targets(options.targets, warn)
    pairs = [read_target(target, only_file=len(targets) == 1) for target in targets]
    chosen = _chosen(pairs)
    requests = _requests(options, chosen)
    _check_outputs(options, requests, pairs)
    found = run_jobs(requests, find_ledger, hidden=options.json) if requests else []
    ends = list(takewhile(lambda end: not isinstance(end, JobCancelled), found))
    rows = [_Row(*pair, list(pair[2].problems)) for pair in pairs]
    if len(chosen) == 1 and ends and not any(row.problems for row in rows):
        tune_report(ends[0], chosen[0][0][0])  # raises where it failed: there is nothing else to tell
    files = Files([target for target, _, _ in pairs], emulated=options.apply_emulated)
    for (pair, spec), end in zip(chosen, ends, strict=False):  # fewer ends after an interrupt
        _take(options, next(r for r in rows if r.target is pair[0]), spec, end, files)
    with may_be_closed():
        if options.json:
            print(json.dumps(_json(rows), indent=2, allow_nan=False))
        else:
            print("\n".join(text for row in rows for text in _lines(row)))
    if len(ends) < len(chosen):
        warn(f"interrupted before {', '.join(spec.kernel for _, spec in chosen[len(ends) :])}")
        return INTERRUPTED
    return _exit_code(rows)


def _chosen(pairs: list[Pair]) -> list[tuple[Pair, KernelSpec]]:
    """The kernels to tune; those without tunables are left out.

    Raises:
        UsageError: there is none, although the specs can be read.
    """
    wanted = [(p, s) for p in pairs for s in p[2].specs if p[0].kernel in (None, s.kernel)]
    found = [(p, s) for p, s in wanted if s.tunables]
    without = ", ".join(s.kernel for _, s in wanted if not s.tunables)
    if found:
        if without:
            warn(f"left out, as their specs have no [tune] table: {without}")
        return found
    if any(p.severity is Severity.ERROR for _, _, reading in pairs for p in reading.problems):
        return []
    if without:
        raise UsageError(f"nothing to tune: no [tune] table with tunable parameters in the spec of {without}")
    raise UsageError("none of the files has a spec block, so there is nothing to tune")


def _requests(options: argparse.Namespace, chosen: list[tuple[Pair, KernelSpec]]) -> list[TuneRequest]:
    configuration = settings(options.set, [t for _, s in chosen for t in s.tunables]) if chosen else {}
    limits = budget(options.budget)
    common = sizes(options.size)
    asked = cases(options.case, common)
    if options.all_cases and options.case:
        raise UsageError("--all-cases takes the cases of the spec and --case names others: give one of the two")
    return [
        TuneRequest(
            path=str(target.path),
            text=target.text,
            sidecar=target.sidecar,
            kernel=spec.kernel,
            device=options.device,
            seed=options.seed,
            configuration={k: v for k, v in configuration.items() if k in spec.default_configuration},
            include_dirs=tuple(options.include),
            defines=defines(options.define),
            flags=tuple(options.flag),
            time_limit=options.time_limit,
            cases=_cases_of(spec, asked, common, every=options.all_cases),
            budget=limits,
            sampler=options.sampler,
            fresh=options.fresh,
            energy=options.energy,
        )
        for (target, _, _), spec in chosen
    ]


def _cases_of(
    spec: KernelSpec, asked: tuple[dict[str, int], ...], common: dict[str, int], *, every: bool
) -> tuple[dict[str, int], ...]:
    if every:
        asked = tuple({**case, **common} for case in spec.cases)
        asked = tuple(case for i, case in enumerate(asked) if case not in asked[:i])
    for case in asked:
        unknown = next((name for name in case if name not in spec.sizes), None)
        if unknown is not None:
            raise UsageError(f"{spec.kernel} has no size {unknown} (it has: {', '.join(spec.sizes) or 'none'})")
    return asked


def _check_outputs(options: argparse.Namespace, requests: Sequence[TuneRequest], pairs: list[Pair]) -> None:
    """Say now, and not after the search, what could not be written after it."""
    if options.selector is not None and requests:
        if len(requests) != 1:
            raise UsageError("--selector is for one kernel: name it, FILE:KERNEL")
        if len(requests[0].cases) < 2:
            raise UsageError("--selector chooses between cases: name several with --case, or take --all-cases")
        _check_selector(Path(options.selector))
    if options.apply_emulated and not options.apply:
        raise UsageError("--apply-emulated goes with --apply: it lets that write what an emulation chose")
    if options.apply:
        for target, _, _ in pairs:
            for name in (str(target.path), *((target.sidecar[0],) if target.sidecar is not None else ())):
                if not os.access(name, os.W_OK):
                    raise UsageError(f"--apply: {name} cannot be written")


def _take(options: argparse.Namespace, row: _Row, spec: KernelSpec, end: TuneEnd, files: Files) -> None:
    """Note what came of one kernel, and write what is to be written.

    Neither trouble with that nor a job without a report may lose the results of the others, which may be applied.
    """
    try:
        report = tune_report(end, row.target)
    except KernelForgeError as error:
        row.results.append((job_failure(error, f"{spec.kernel} was not tuned", row.target), None))
        row.codes.append(code_of(error))
        return
    row.problems += [p for p in report.problems if p not in row.problems]
    for result in report.results:
        applied = None
        if isinstance(result, KernelTuning) and options.apply:
            try:
                applied = files.apply(result)
            except KernelForgeError as error:
                applied = Applied(reason=str(error))
        row.results.append((result, applied))
        if isinstance(result, KernelTuning) and options.selector is not None:
            try:
                _write(Path(options.selector), selector_text(result, spec))
                row.selector = options.selector
            except (KernelForgeError, ValueError) as error:
                warn(f"no selector is written: {error}")
                row.is_unwritten = True


def _check_selector(path: Path) -> None:
    check_output(path, "--selector", "selector made by kernel-forge tune", is_selector)


def _write(path: Path, text: str) -> None:
    _check_selector(path)  # again: the search took its time
    if path.exists():
        replace_text(path, text)
        return
    try:
        write_whole(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _lines(row: _Row) -> list[str]:
    line_of = lines_of(row.source)
    ascii_only = not can_show_blocks(sys.stdout.encoding)
    lines = [text for problem in row.problems for text in finding_lines(problem, line_of)]
    for result, applied in row.results:
        if isinstance(result, Finding):
            lines.extend(finding_lines(result, line_of))
            continue
        if isinstance(result, Verdict):
            lines.extend(verdict_lines(result, findings_for(result, row.reading), line_of))
            continue
        lines.extend(tuning_lines(result, ascii_only=ascii_only))
        lines.extend(applied_lines(applied, result) if applied is not None else [])
        lines.extend([f"  selector   {row.selector}"] if row.selector is not None else [])
    return lines


def _json(rows: list[_Row]) -> dict[str, object]:
    return {
        "schema": 1,
        "tool": {"name": "kernel-forge", "version": __version__},
        "files": [
            {
                "path": row.source.path,
                "problems": [
                    finding_json(p) for p in (*row.problems, *(r for r, _ in row.results if isinstance(r, Finding)))
                ],
                "tunings": [_tuning(row, r, a) for r, a in row.results if isinstance(r, KernelTuning)],
                "verdicts": [
                    verdict_json(v, findings_for(v, row.reading)) for v, _ in row.results if isinstance(v, Verdict)
                ],
            }
            for row in rows
        ],
    }


def _tuning(row: _Row, tuning: KernelTuning, applied: Applied | None) -> dict[str, Any]:
    return {
        **tuning_json(tuning, lambda v: findings_for(v, row.reading)),
        "applied": None if applied is None else applied_json(applied),
        "selector": row.selector,
    }


def _exit_code(rows: list[_Row]) -> int:
    results = [r for row in rows for r, _ in row.results]
    outcomes = [
        r.outcome if isinstance(r, Verdict) else r.verdict.outcome for r in results if not isinstance(r, Finding)
    ]
    codes = [code for row in rows for code in row.codes]
    codes += [FAILED for row in rows for p in row.problems if p.severity is Severity.ERROR]
    codes += [FAILED for row in rows for _, a in row.results if row.is_unwritten or (a is not None and a.is_failure)]
    codes += [FAILED for outcome in outcomes if is_failure(outcome)]
    codes += [UNAVAILABLE for outcome in outcomes if isinstance(outcome, Unavailable)]
    return worst(codes)

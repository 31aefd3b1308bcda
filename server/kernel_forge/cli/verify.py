"""``kernel-forge verify``."""

import argparse
import json

from rich.console import Console
from rich.text import Text

from kernel_forge import __version__
from kernel_forge.cli.exit_codes import WRONG_USE
from kernel_forge.cli.options import defines, settings
from kernel_forge.cli.output import ReportConsole, may_be_closed, warn
from kernel_forge.cli.reading import findings_for, is_failure, lines_of, read_target
from kernel_forge.cli.running import file_report, run_jobs
from kernel_forge.cli.targets import Target, find_targets
from kernel_forge.domain.errors import DeviceUnavailable, InternalError, UsageError
from kernel_forge.domain.expression import Number
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.jobs.client import JobEnd, JobFailed
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.ports import FindLedger
from kernel_forge.source import SourceFile
from kernel_forge.spec import SpecReading
from kernel_forge.spec.configurations import count_of
from kernel_forge.views.console import finding_lines, verdict_lines
from kernel_forge.views.findings import failure_finding
from kernel_forge.views.report_json import report_json

Shown = list[tuple[Verdict, tuple[Finding, ...]]]


def verify_command(options: argparse.Namespace, find_ledger: FindLedger) -> int:
    """Verify every target; see :mod:`kernel_forge.cli` for the exit code."""
    targets = find_targets(options.targets, warn)
    pairs = [read_target(target, only_file=len(targets) == 1) for target in targets]
    targets = [target for target, _, _ in pairs]
    readings = [reading for _, _, reading in pairs]
    if not any(reading.specs or reading.problems for reading in readings):
        raise UsageError(f"none of the {len(targets)} files has a spec block, so there is nothing to verify")
    # A spec that could not be read may have had the tunable that is asked for.
    judged = None if any(r.problems for r in readings) else [t for r in readings for s in r.specs for t in s.tunables]
    configuration = settings(options.set, judged)
    requests = [_request(options, target, configuration) for target in targets]
    reports = _reports(run_jobs(requests, find_ledger, hidden=options.json), targets)
    code = _exit_code(reports)
    if code == WRONG_USE:
        warn("nothing was verified")
    with may_be_closed():
        _show(options, pairs, reports)
    return code


def _show(
    options: argparse.Namespace, pairs: list[tuple[Target, SourceFile, SpecReading]], reports: list[FileReport]
) -> None:
    console = ReportConsole(highlight=False, soft_wrap=True)
    files = []
    for (target, source, reading), report in zip(pairs, reports, strict=True):
        shown: Shown = [(v, findings_for(v, reading)) for v in report.verdicts]
        files.append((str(target.path), report.problems, shown))
        if not options.json:
            _print(console, source, reading, report, shown, quiet=options.quiet)
    if options.json:
        print(json.dumps(report_json(files, __version__), indent=2, allow_nan=False))


def _request(options: argparse.Namespace, target: Target, configuration: dict[str, Number]) -> VerifyRequest:
    return VerifyRequest(
        path=str(target.path),
        text=target.text,
        sidecar=target.sidecar,
        kernel=target.kernel,
        device=options.device,
        seed=options.seed,
        configuration=configuration,
        include_dirs=tuple(options.include),
        defines=defines(options.define),
        flags=tuple(options.flag),
        time_limit=options.time_limit,
        sanitize=options.sanitize,
    )


def _reports(ends: list[JobEnd], targets: list[Target]) -> list[FileReport]:
    """The reports of all files; a job without one is a problem of its file, and an error where all jobs are such."""
    if not any(isinstance(end, FileReport) or _of_reference(end) for end in ends):
        return [file_report(end, target) for end, target in zip(ends, targets, strict=True)]
    reports = []
    for end, target in zip(ends, targets, strict=True):
        try:
            reports.append(file_report(end, target))
        except (UsageError, DeviceUnavailable, InternalError) as error:
            kind = "unavailable" if isinstance(error, DeviceUnavailable) else "internal"
            problem = failure_finding(kind, str(error), str(target.path), Severity.ERROR)
            reports.append(FileReport((problem,), ()))
    return reports


def _of_reference(end: JobEnd) -> bool:
    return isinstance(end, JobFailed) and end.kind == "reference"


def _print(
    console: Console, source: SourceFile, reading: SpecReading, report: FileReport, shown: Shown, *, quiet: bool
) -> None:
    line_of = lines_of(source)
    for problem in report.problems:
        if quiet and problem.severity is not Severity.ERROR:
            continue
        for text in finding_lines(problem, line_of):
            console.print(Text(text, style="red" if text.startswith(problem.path) else ""))
    for verdict, findings in shown:
        if quiet and isinstance(verdict.outcome, Passed):
            continue
        style = {"✓": "green", "✗": "bold red", "?": "yellow"}
        spec = reading.spec_of(verdict.kernel)
        count = None if spec is None else count_of(spec)
        for text in verdict_lines(verdict, findings, line_of, count):
            console.print(Text(text, style=style.get(text[:1], "")))


def _exit_code(reports: list[FileReport]) -> int:
    verdicts = [v for r in reports for v in r.verdicts]
    errors = any(p.severity is Severity.ERROR for r in reports for p in r.problems)
    if errors or any(is_failure(v.outcome) for v in verdicts):
        return 1
    if not verdicts:
        return WRONG_USE
    return 3 if any(isinstance(v.outcome, Unavailable) for v in verdicts) else 0

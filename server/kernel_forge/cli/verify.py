"""``kernel-forge verify``."""

import argparse
import asyncio
import json
import signal
from dataclasses import replace
from typing import assert_never

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from kernel_forge import __version__
from kernel_forge.cli.options import defines, settings
from kernel_forge.cli.output import ReportConsole, may_be_closed, warn
from kernel_forge.cli.targets import Target, find_targets
from kernel_forge.domain import event
from kernel_forge.domain.errors import DeviceUnavailable, InternalError, UsageError
from kernel_forge.domain.expression import Number
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Outcome, Passed, Unavailable, Verdict
from kernel_forge.domain.text import Location, Range
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd, JobFailed
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import SpecReading, read_specs
from kernel_forge.views.console import finding_lines, verdict_lines
from kernel_forge.views.findings import failure_finding, findings_of
from kernel_forge.views.report_json import report_json

WRONG_USE = 2
Shown = list[tuple[Verdict, tuple[Finding, ...]]]


def verify_command(options: argparse.Namespace) -> int:
    """Verify every target; see :mod:`kernel_forge.cli` for the exit code."""
    targets = find_targets(options.targets, warn)
    pairs = [_read(target, only_file=len(targets) == 1) for target in targets]
    targets = [target for target, _, _ in pairs]
    readings = [reading for _, _, reading in pairs]
    if not any(reading.specs or reading.problems for reading in readings):
        raise UsageError(f"none of the {len(targets)} files has a spec block, so there is nothing to verify")
    # A spec that could not be read may have had the tunable that is asked for.
    judged = None if any(r.problems for r in readings) else [t for r in readings for s in r.specs for t in s.tunables]
    configuration = settings(options.set, judged)
    requests = [_request(options, target, configuration) for target in targets]
    reports = _reports(asyncio.run(_run_all(requests, hidden=options.json)), targets)
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
        shown: Shown = [(v, _findings(v, source, reading)) for v in report.verdicts]
        files.append((str(target.path), report.problems, shown))
        if not options.json:
            _print(console, source, report, shown, quiet=options.quiet)
    if options.json:
        print(json.dumps(report_json(files, __version__), indent=2, allow_nan=False))


def _read(target: Target, *, only_file: bool) -> tuple[Target, SourceFile, SpecReading]:
    source = parse(target.text, str(target.path))
    reading = read_specs(source, target.sidecar)
    name = target.path.name
    if target.kernel is not None:
        spec = reading.spec_of(target.kernel) or reading.spec_of(_in_namespace(source, target.kernel))
        if spec is not None:
            target = replace(target, kernel=spec.kernel)
        elif not reading.problems:
            known = ", ".join(s.kernel for s in reading.specs) or "none"
            raise UsageError(f"{name} has no spec for a kernel {target.kernel} (it has: {known})")
    elif only_file and not reading.specs and not reading.problems:
        kernels = ", ".join(k.name for k in source.kernels)
        hint = f"draft one with: kernel-forge spec {name}:{source.kernels[0].name} --write" if kernels else ""
        found = f"it has the kernels {kernels}" if kernels else "it has no kernel either"
        raise UsageError(f"{name} has no spec block, so there is nothing to verify; {found}. {hint}".rstrip())
    return target, source, reading


def _in_namespace(source: SourceFile, asked: str) -> str:
    """The other way to write a kernel's name: ``k`` for ``ns::k``, and back."""
    for kernel in source.kernels:
        names = (kernel.name, kernel.qualified_name)
        if asked in names:
            return names[1] if asked == names[0] else names[0]
    return asked


async def _run_all(requests: list[VerifyRequest], *, hidden: bool) -> list[JobEnd]:
    client = JobClient()
    client.warm_up()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    if main is not None:
        loop.add_signal_handler(signal.SIGTERM, main.cancel)
    ends: list[JobEnd] = []
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20))
    try:
        with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as bar:
            task = bar.add_task("starting", total=None)

            def report(step: event.Progress) -> None:
                bar.update(task, description=step.message, completed=step.done, total=step.total or None)

            for request in requests:
                ends.append(await client.run(request, report, request.wall_limit))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        await client.close()
    return ends


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
        time_limit=options.time_limit,
        sanitize=options.sanitize,
    )


def _reports(ends: list[JobEnd], targets: list[Target]) -> list[FileReport]:
    """The reports of all files; a job without one is a problem of its file, and an error where all jobs are such."""
    if not any(isinstance(end, FileReport) or _of_reference(end) for end in ends):
        return [_report(end, target) for end, target in zip(ends, targets, strict=True)]
    reports = []
    for end, target in zip(ends, targets, strict=True):
        try:
            reports.append(_report(end, target))
        except (UsageError, DeviceUnavailable, InternalError) as error:
            kind = "unavailable" if isinstance(error, DeviceUnavailable) else "internal"
            problem = failure_finding(kind, str(error), str(target.path), Severity.ERROR)
            reports.append(FileReport((problem,), ()))
    return reports


def _of_reference(end: JobEnd) -> bool:
    return isinstance(end, JobFailed) and end.kind == "reference"


def _report(end: JobEnd, target: Target) -> FileReport:
    match end:
        case FileReport():
            return end
        case JobFailed(kind="reference", message=message, location=location):
            place = location or Location(str(target.path), Range.of_line(0))
            return FileReport((Finding("KF203", Severity.ERROR, message, place.path, place.range),), ())
        case JobFailed(kind="unavailable", message=message):
            raise DeviceUnavailable(message)
        case JobFailed(kind="usage", message=message):
            raise UsageError(message)
        case JobFailed(kind="time-limit", message=message):
            raise UsageError(f"{message}; give more with --time-limit")
        case JobFailed(message=message, log=log):
            raise InternalError(f"the verification crashed: {message}\n{log}".rstrip())
        case JobCancelled():
            raise KeyboardInterrupt
        case _:
            assert_never(end)


def _findings(verdict: Verdict, source: SourceFile, reading: SpecReading) -> tuple[Finding, ...]:
    spec = reading.spec_of(verdict.kernel)
    name_range = spec.name_range if spec is not None else Range.of_line(0)
    return findings_of(verdict, spec, name_range)


def _print(console: Console, source: SourceFile, report: FileReport, shown: Shown, *, quiet: bool) -> None:
    lines = source.text.split("\n")

    def line_of(path: str, number: int) -> str:
        return lines[number].rstrip("\r") if path == source.path and number < len(lines) else ""

    for problem in report.problems:
        if quiet and problem.severity is not Severity.ERROR:
            continue
        for text in finding_lines(problem, line_of):
            console.print(Text(text, style="red" if text.startswith(problem.path) else ""))
    for verdict, findings in shown:
        if quiet and isinstance(verdict.outcome, Passed):
            continue
        style = {"✓": "green", "✗": "bold red", "?": "yellow"}
        for text in verdict_lines(verdict, findings, line_of):
            console.print(Text(text, style=style.get(text[:1], "")))


def _failed(outcome: Outcome) -> bool:
    return outcome.of_spec if isinstance(outcome, Unavailable) else not isinstance(outcome, Passed)


def _exit_code(reports: list[FileReport]) -> int:
    verdicts = [v for r in reports for v in r.verdicts]
    errors = any(p.severity is Severity.ERROR for r in reports for p in r.problems)
    if errors or any(_failed(v.outcome) for v in verdicts):
        return 1
    if not verdicts:
        return WRONG_USE
    return 3 if any(isinstance(v.outcome, Unavailable) for v in verdicts) else 0

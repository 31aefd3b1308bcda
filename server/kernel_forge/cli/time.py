"""``kernel-forge time``."""

import argparse
import json

from kernel_forge import __version__
from kernel_forge.cli.options import defines, settings, sizes
from kernel_forge.cli.output import may_be_closed, warn
from kernel_forge.cli.reading import findings_for, is_failure, lines_of, read_target
from kernel_forge.cli.running import job_failure, run_jobs, time_report
from kernel_forge.cli.targets import Target, find_targets
from kernel_forge.domain.errors import KernelForgeError, UsageError
from kernel_forge.domain.finding import Severity
from kernel_forge.domain.measurement import TimingPlan
from kernel_forge.domain.outcome import Verdict
from kernel_forge.jobs.client import JobFailed, TimeEnd
from kernel_forge.jobs.requests import TimeReport, TimeRequest
from kernel_forge.ports import FindLedger
from kernel_forge.source import SourceFile
from kernel_forge.spec import SpecReading
from kernel_forge.views.console import finding_lines, verdict_lines
from kernel_forge.views.report_json import finding_json, verdict_json
from kernel_forge.views.timing import timing_json, timing_lines

Row = tuple[SourceFile, SpecReading, TimeReport]


def time_command(options: argparse.Namespace, find_ledger: FindLedger) -> int:
    """Time every kernel with a spec; 0 when all have a time, 1 when one is wrong, 3 when one could not be timed."""
    targets = find_targets(options.targets, warn)
    pairs = [read_target(target, only_file=len(targets) == 1) for target in targets]
    specs = [spec for _, _, reading in pairs for spec in reading.specs]
    if not specs and not any(reading.problems for _, _, reading in pairs):
        raise UsageError("none of the files has a spec block, so there is nothing to time")
    configuration = settings(options.set, [t for s in specs for t in s.tunables])
    requests = [
        TimeRequest(
            path=str(target.path),
            text=target.text,
            sidecar=target.sidecar,
            kernel=target.kernel,
            device=options.device,
            seed=options.seed,
            configuration=configuration,
            sizes=sizes(options.size),
            include_dirs=tuple(options.include),
            defines=defines(options.define),
            flags=tuple(options.flag),
            plan=TimingPlan(budget=options.budget, cold=not options.warm),
            profile=options.profile,
            time_limit=options.time_limit,
        )
        for target, _, _ in pairs
    ]
    ends = run_jobs(requests, find_ledger, hidden=options.json)
    reports = _reports(ends, [target for target, _, _ in pairs])
    rows = [(source, reading, report) for (_, source, reading), report in zip(pairs, reports, strict=True)]
    with may_be_closed():
        if options.json:
            print(json.dumps(_json(rows), indent=2, allow_nan=False))
        else:
            for row in rows:
                print("\n".join(_lines(*row)))
    return _exit_code(reports)


def _reports(ends: list[TimeEnd], targets: list[Target]) -> list[TimeReport]:
    """The reports of all files; a job without one is a problem of its file, and an error where all jobs are such."""
    if all(isinstance(end, JobFailed) and end.kind != "reference" for end in ends):
        return [time_report(end, target) for end, target in zip(ends, targets, strict=True)]
    reports = []
    for end, target in zip(ends, targets, strict=True):
        try:
            reports.append(time_report(end, target))
        except KernelForgeError as error:
            reports.append(TimeReport((job_failure(error, f"{target.path.name} was not timed", target),), ()))
    return reports


def _lines(source: SourceFile, reading: SpecReading, report: TimeReport) -> list[str]:
    line_of = lines_of(source)
    lines = [text for problem in report.problems for text in finding_lines(problem, line_of)]
    for result in report.results:
        if isinstance(result, Verdict):
            lines.extend(verdict_lines(result, findings_for(result, reading), line_of))
        else:
            lines.extend(timing_lines(result))
    return lines


def _exit_code(reports: list[TimeReport]) -> int:
    verdicts = [r for report in reports for r in report.results if isinstance(r, Verdict)]
    errors = any(p.severity is Severity.ERROR for report in reports for p in report.problems)
    wrong = any(is_failure(v.outcome) for v in verdicts)
    if errors or wrong:
        return 1
    return 3 if verdicts else 0


def _json(rows: list[Row]) -> dict[str, object]:
    files = []
    for source, reading, report in rows:
        wrong = [r for r in report.results if isinstance(r, Verdict)]
        timings = [timing_json(r) for r in report.results if not isinstance(r, Verdict)]
        verdicts = [verdict_json(v, findings_for(v, reading)) for v in wrong]
        problems = [finding_json(p) for p in report.problems]
        files.append({"path": source.path, "problems": problems, "timings": timings, "verdicts": verdicts})
    return {"schema": 1, "tool": {"name": "kernel-forge", "version": __version__}, "files": files}

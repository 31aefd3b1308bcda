"""Verify the originals and every mutant, and count what is found.

Exit code 1 when fewer than 95 % are killed or an original is refused.
"""

import argparse
import json
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path

from kernel_forge import wiring
from kernel_forge.domain.event import Report
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.text import Range
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device
from kernel_forge.views.findings import findings_of
from kernel_forge.views.words import problem
from tests.mutants.catalogue import MUTANTS, Mutant

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
THRESHOLD = 0.95
NEAR_LINES = 3


@dataclass(frozen=True)
class Result:
    """``state`` is killed, survived, or not run (with ``detail`` saying why)."""

    mutant: Mutant | None
    kernel: str
    state: str
    detail: str
    distance: int | None
    seconds: float


def mutated(mutant: Mutant) -> tuple[str, int]:
    """The broken text and the one-based line of the change.

    Raises:
        ValueError: the text to change is not there exactly once (or ``nth`` does not exist).
    """
    text = (KERNELS / mutant.file).read_text(encoding="utf-8")
    places = [i for i in range(len(text)) if text.startswith(mutant.old, i)]
    if mutant.nth is None and len(places) != 1:
        raise ValueError(f"{mutant.file}: {mutant.old!r} stands {len(places)} times")
    at = places[mutant.nth or 0]
    broken = text[:at] + mutant.new + text[at + len(mutant.old) :]
    if mutant.file == "rms_norm.cu" and "bfloat16" in mutant.new:
        broken = "#include <cuda_bf16.h>\n" + broken
    return broken, text.count("\n", 0, at) + 1


@dataclass(frozen=True)
class Way:
    """How everything is verified: where, from which seed, and whether sanitizers run too."""

    device: str
    seed: int | None
    sanitize: bool

    @property
    def devices(self) -> tuple[Device, Report, Device]:
        """The last arguments of ``verify_file``."""
        return wiring.device(self.device), lambda _: None, wiring.device("emulator")


def request(file: str, text: str, kernel: str | None, way: Way) -> VerifyRequest:
    """A verify request for a text under the name of an example."""
    path = KERNELS / file
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), beside.read_text(encoding="utf-8")) if beside.is_file() else None
    return VerifyRequest(str(path), text, sidecar, kernel, way.device, way.seed, time_limit=60.0, sanitize=way.sanitize)


def run_mutant(work: tuple[Mutant, Way]) -> Result:
    """Verify one mutant."""
    mutant, way = work
    start = time.monotonic()
    text, line = mutated(mutant)
    report = verify_file(request(mutant.file, text, mutant.kernel, way), *way.devices)
    seconds = time.monotonic() - start
    if not report.verdicts:
        return Result(mutant, mutant.kernel, "not run", str([p.message for p in report.problems]), None, seconds)
    verdict = report.verdicts[0]
    if isinstance(verdict.outcome, Unavailable):
        return Result(mutant, mutant.kernel, "not run", verdict.outcome.reason, None, seconds)
    state = "survived" if isinstance(verdict.outcome, Passed) else "killed"
    return Result(mutant, mutant.kernel, state, problem(verdict.outcome), _distance(verdict, line), seconds)


def _distance(verdict: Verdict, line: int) -> int | None:
    """Lines between the change and the line blamed; None where no line was blamed."""
    missing = Range.of_line(10**6)
    for finding in findings_of(verdict, None, missing):
        if finding.range != missing:
            return abs(finding.range.start.line + 1 - line)
    return None


def run_original(work: tuple[str, Way]) -> list[Result]:
    """Verify every kernel of one example."""
    file, way = work
    start = time.monotonic()
    text = (KERNELS / file).read_text(encoding="utf-8")
    report = verify_file(request(file, text, None, way), *way.devices)
    seconds = time.monotonic() - start
    results = []
    for verdict in report.verdicts:
        state = "held" if isinstance(verdict.outcome, Passed) else "refused"
        results.append(Result(None, verdict.kernel, state, problem(verdict.outcome), None, seconds))
    if report.problems or not results:
        messages = "; ".join(p.message for p in report.problems)
        results.append(Result(None, file, "refused", messages or "no spec", None, seconds))
    return results


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--kernel", help="only mutants of this kernel or file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, help="the same inputs every time (default: fresh ones)")
    parser.add_argument("--device", default="emulator")
    parser.add_argument("--sanitize", action="store_true", help="also under the device's sanitizers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    way = Way(options.device, options.seed, options.sanitize)
    chosen = [m for m in MUTANTS if options.kernel in (None, m.kernel, m.file)]
    files = (
        sorted({p.name for p in KERNELS.glob("*.cu")}) if options.kernel is None else sorted({m.file for m in chosen})
    )
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        originals = [r for rs in pool.map(run_original, [(f, way) for f in files], 1) for r in rs]
        results = []
        for result in pool.imap(run_mutant, [(m, way) for m in chosen], 1):
            results.append(result)
            if not options.json:
                print(_line(result), flush=True)
    _print(results, originals, time.monotonic() - start, as_json=options.json)
    killed = sum(r.state == "killed" for r in results)
    refused = [r for r in originals if r.state != "held"]
    return 1 if refused or killed < THRESHOLD * len(results) else 0


def _line(result: Result) -> str:
    assert result.mutant is not None
    far = "" if result.distance is None else f", {result.distance} lines off"
    return f"{result.state:9} {result.kernel:14} {result.mutant.kind:34} {result.detail}{far} ({result.seconds:.1f} s)"


def _print(results: list[Result], originals: list[Result], seconds: float, *, as_json: bool) -> None:
    killed = [r for r in results if r.state == "killed"]
    refused = [r for r in originals if r.state != "held"]
    near = [r for r in killed if r.distance is not None and r.distance <= NEAR_LINES]
    located = [r for r in killed if r.distance is not None]
    if as_json:
        rows = [
            {"file": r.mutant.file, "kernel": r.kernel, "kind": r.mutant.kind, "state": r.state, "detail": r.detail}
            for r in results
            if r.mutant is not None
        ]
        summary = {"killed": len(killed), "total": len(results), "false_alarms": len(refused), "mutants": rows}
        print(json.dumps(summary, indent=2))
        return
    for r in (r for r in results if r.state != "killed"):
        assert r.mutant is not None
        why = r.mutant.why or "no explanation is known"
        print(f"not killed: {r.mutant.file} {r.kernel}: {r.mutant.kind}: {r.mutant.old!r} -> {r.mutant.new!r}: {why}")
    for r in refused:
        print(f"false alarm: {r.kernel}: {r.detail}")
    share = 100 * len(killed) / max(1, len(results))
    alarms = f"false alarms {len(refused)} of {len(originals)} kernels"
    print(f"killed {len(killed)} / {len(results)} ({share:.1f} %), {alarms}")
    print(
        f"a line was blamed in {len(located)}; within {NEAR_LINES} lines of the change in {len(near)}; {seconds:.0f} s"
    )

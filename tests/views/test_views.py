"""Every outcome on every surface."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CaseId,
    CompileFailed,
    CompilerMessage,
    Launched,
    LaunchFailed,
    MemoryFault,
    Mismatch,
    MismatchKind,
    Outcome,
    Passed,
    RaceFound,
    Thread,
    TimedOut,
    Unavailable,
    Verdict,
)
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.text import Location, Position, Range
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.views.console import finding_lines, quote, verdict_lines
from kernel_forge.views.findings import findings_of
from kernel_forge.views.hover import hover_text
from kernel_forge.views.report_json import report_json, verdict_json
from kernel_forge.views.words import seconds_text, title

NAME = Range(Position(9, 16), Position(9, 17))
LINE = Location("/a.cu", Range(Position(4, 2), Position(4, 9)))
OTHER = Location("/a.cu", Range(Position(6, 2), Position(6, 9)))
THREAD = Thread((3, 0, 0), (17, 0, 0))
SCHEMA = json.loads((Path(__file__).parent / "report.schema.json").read_text(encoding="utf-8"))


def mismatch(kind: MismatchKind, **fields: Any) -> Mismatch:
    values = {"expected": 1.0, "got": 2.0, "owner": THREAD, "location": LINE, "message": "y[3] is 2, not 1", **fields}
    return Mismatch(kind, "y", 1, 10, (3,), tolerance=1e-6, max_absolute=1.0, **values)


CASES: list[tuple[Outcome, str]] = [
    (mismatch(MismatchKind.WRONG_VALUE, got=math.nan, max_relative=math.inf, max_ulp=3.0), "KF301"),
    (mismatch(MismatchKind.NOT_WRITTEN, got=None, owner=None, location=None), "KF302"),
    (mismatch(MismatchKind.INSENSITIVE), "KF303"),
    (mismatch(MismatchKind.UNWRITTEN_READ), "KF305"),
    (LaunchFailed("assert", "assert(x) failed", LINE, THREAD), "KF306"),
    (TimedOut(5.0, "did not end", LINE), "KF307"),
    *(
        (MemoryFault(kind, "reads past x", LINE, THREAD, "x", -4, False), code)
        for kind, code in (
            ("out-of-bounds", "KF401"),
            ("null", "KF402"),
            ("misaligned", "KF403"),
            ("read-only", "KF404"),
            ("guard-band", "KF405"),
            ("stack-overflow", "KF406"),
            ("unwritten", "KF305"),
        )
    ),
    (RaceFound("the order matters", (LINE, OTHER), THREAD), "KF411"),
    (BarrierDivergence("barrier", "not all arrive", (LINE, OTHER)), "KF421"),
    (BarrierDivergence("warp-mask", "lanes are gone", ()), "KF422"),
    (BarrierDivergence("deadlock", "for ever", (LINE,)), "KF423"),
    (Unavailable("no textures here", LINE), "KF203"),
    (CompileFailed((CompilerMessage("error", "no such name", LINE, "clang"),)), "KF201"),
    (CompileFailed((CompilerMessage("warning", "unused", None, "clang"),)), "KF202"),
]
FAILED = [(o, c) for o, c in CASES if not isinstance(o, Unavailable | CompileFailed)]
IDS = [f"{type(o).__name__}-{c}" for o, c in CASES]
PASSED = Passed(3, 9, {"y": 0.25, "z": math.inf})


def verdict(outcome: Outcome) -> Verdict:
    case = CaseId({"n": 77}, "spikes", 5, "case 1")
    return Verdict(
        "k", "/a.cu", outcome, {"B": 64}, 7, "emulator", "emulated", case, ("cases",), {"clock": "no"}, ("n",)
    )


def spec() -> KernelSpec:
    text = (
        '// /// kernel-forge\n// kernel = "k"\n// cases = [{ n = 3 }]\n// reference = { y = "x" }\n//\n// [args]\n'
        '// x = { shape = ["n"] }\n'
        '// y = { shape = ["n"], role = "out" }\n//\n// [launch]\n// grid = 1\n// block = 32\n// ///\n'
        "__global__ void k(const float* x, float* y, int n) { y[0] = x[0]; }\n"
    )
    reading = read_specs(parse(text, "/a.cu"), None)
    assert reading.specs, reading.problems
    return reading.specs[0]


def test_a_failure_shows_the_launches_of_its_case() -> None:
    one = replace(verdict(FAILED[0][0]), launches=(Launched("k<4>", (4, 1, 1), (64, 2, 1), 5120),))
    said = "grid (4,1,1), block (64,2,1), 5,120 bytes of dynamic shared memory"
    lines = verdict_lines(one, (), lambda path, line: "")
    assert lines[lines.index("  case    n = 77, inputs spikes (case 1)") + 1] == f"  launch  {said}"
    assert f"Launched there: `k<4>`, {said}." in hover_text(spec(), one, stale=False, running=None)
    two = replace(one, launches=(*one.launches, Launched("f", (1, 1, 1), (32, 1, 1))))
    lines = verdict_lines(two, (), lambda path, line: "")
    assert f"  launch  k<4>: {said}" in lines and "  launch  f: grid (1,1,1), block (32,1,1)" in lines
    assert verdict_json(two, ())["launches"][1] == {
        "kernel": "f",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_bytes": 0,
    }


@pytest.mark.parametrize("outcome", [PASSED, LaunchFailed("assert", "assert(x) failed", LINE, THREAD)])
def test_warnings_of_the_compiler_stand_beside_every_outcome(outcome: Outcome) -> None:
    warning = CompilerMessage("warning", "variable a is used before its value is set", OTHER, "NVRTC 13")
    warned = replace(verdict(outcome), warnings=(warning,))
    found = findings_of(warned, spec(), NAME)
    assert (found[-1].code, found[-1].severity, found[-1].range) == ("KF202", Severity.WARNING, OTHER.range)
    assert len(found) == (1 if outcome is PASSED else 2)
    lines = verdict_lines(warned, found, lambda path, line: "")
    assert any(line.startswith("  warning at /a.cu:7:3: variable a is used before") for line in lines)
    assert lines[0].startswith("✓" if outcome is PASSED else "✗")


def test_every_outcome_is_tested() -> None:
    assert {type(o) for o, _ in CASES} | {Passed} == set(get_args(Outcome))


@pytest.mark.parametrize(("outcome", "code"), CASES, ids=IDS)
def test_findings(outcome: Outcome, code: str) -> None:
    (finding,) = findings_of(verdict(outcome), spec(), NAME)
    assert finding.code == code
    known = getattr(outcome, "location", None) or next(iter(getattr(outcome, "locations", ())), None)
    if isinstance(outcome, CompileFailed):
        known = outcome.messages[0].location
    assert finding.range == (known.range if known is not None else NAME)


@pytest.mark.parametrize(("outcome", "code"), FAILED, ids=[c for _, c in FAILED])
def test_a_failure_tells_its_basis_everywhere(outcome: Outcome, code: str) -> None:
    made = verdict(outcome)
    assert "(emulated)" in title(made)
    (finding,) = findings_of(made, spec(), NAME)
    assert "emulated" in finding.message
    assert finding.severity is Severity.ERROR
    lines = verdict_lines(made, (finding,), lambda _path, _line: "")
    assert lines[0].startswith("✗ k: ")
    assert "(emulated)" in lines[0]
    assert "  repeat  --seed 7 --set B=64" in lines
    assert "emulated" in hover_text(spec(), made, stale=False, running=None)


def test_a_race_shows_both_places() -> None:
    (finding,) = findings_of(verdict(RaceFound("m", (LINE, OTHER))), spec(), NAME)
    assert OTHER in [r.location for r in finding.related]


def test_passed_shows_no_finding_and_its_basis() -> None:
    assert findings_of(verdict(PASSED), spec(), NAME) == ()
    assert title(verdict(PASSED)).startswith("verified (emulated) · 3 cases · 1 skipped")
    assert "✓ Verified, **emulated**" in hover_text(spec(), verdict(PASSED), stale=False, running=None)


def test_a_verdict_that_holds_names_its_configuration_and_how_many_there_are() -> None:
    """One configuration was checked, and eleven were not."""
    made = verdict_lines(verdict(PASSED), (), lambda _path, _line: "", 12)
    assert made[0].endswith(" · B = 64 (1 of 12 configurations)")
    plain = replace(verdict(PASSED), configuration={})
    assert "configuration" not in verdict_lines(plain, (), lambda _path, _line: "", 1)[0]


def test_unavailable_is_no_failure() -> None:
    made = verdict(Unavailable("no textures here"))
    text = hover_text(spec(), made, stale=False, running=None)
    assert "? **not verified**: no textures here" in text
    assert "✗" not in text
    assert verdict_lines(made, (), lambda _path, _line: "")[0] == "? k: not verified: no textures here"
    assert findings_of(made, None, NAME)[0].severity is Severity.INFORMATION


def test_hover_of_a_stale_and_a_running_one() -> None:
    text = hover_text(spec(), verdict(PASSED), stale=True, running="case 2")
    assert "_case 2…_" in text
    assert "older text" in text
    assert "Not verified yet" in hover_text(spec(), None, stale=False, running=None)


def test_the_caret_stands_under_its_place_behind_tabs() -> None:
    place = Location("/a.cu", Range(Position(0, 3), Position(0, 6)))
    assert quote(place, lambda _path, _line: "\t\ta[0] = 1;") == ["  1 | \t\ta[0] = 1;", "    | \t\t ^^^"]


@pytest.mark.parametrize(
    "place", [Range.of_line(0), Range(Position(0, 50), Position(0, 60)), Range(Position(0, 2), Position(3, 1))]
)
def test_the_caret_stays_on_the_line(place: Range) -> None:
    line, carets = quote(Location("/a.cu", place), lambda _path, _line: "abcdef")
    assert "^" in carets
    assert len(carets) <= len(line) + 1


def test_an_empty_line_is_not_quoted() -> None:
    assert quote(LINE, lambda _path, _line: "  ") == []


def test_a_finding_as_compilers_print_it() -> None:
    finding = Finding("KF101", Severity.WARNING, "odd", "/a.cu", LINE.range)
    assert finding_lines(finding, lambda _path, _line: "")[0] == "/a.cu:5:3: warning: odd [KF101]"


@pytest.mark.parametrize("outcome", [PASSED, *(o for o, _ in CASES)], ids=["Passed", *IDS])
def test_the_report_keeps_to_its_schema(outcome: Outcome) -> None:
    made = verdict(outcome)
    problem = Finding("KF101", Severity.ERROR, "m", "/a.cu", LINE.range)
    report = report_json([("/a.cu", (problem,), [(made, findings_of(made, spec(), NAME))])], "0")
    jsonschema.validate(json.loads(json.dumps(report, allow_nan=False)), SCHEMA)
    (shown,) = report["files"][0]["verdicts"]
    assert shown["passed"] is isinstance(outcome, Passed)
    if isinstance(outcome, RaceFound | BarrierDivergence):
        assert len(shown["outcome"]["locations"]) == len(outcome.locations)


def test_seconds() -> None:
    assert [seconds_text(s) for s in (0.0123, 0.25, 12.34)] == ["12 ms", "0.2 s", "12.3 s"]

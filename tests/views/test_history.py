"""Lines of the ledger: what kind of number it is stands in each."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kernel_forge.domain.record import Anchor, Audit, BadEntry, Entry, Json, Kind, Platform, Record, Subject
from kernel_forge.views.history import audit_lines, entry_json, entry_line, entry_lines, outcome_words

MOMENT = datetime(2026, 12, 2, 23, 10, 5, tzinfo=UTC)
RECORD = Record(
    kind=Kind.VERIFY,
    basis="emulated",
    tool="0.1.0",
    started=MOMENT,
    outcome={"type": "Passed", "cases": 22},
    subject=Subject("src/k.cu", "k", "ab" * 32, "// kernel"),
    platform=Platform("emulator", "emulated", "on the CPU", {}, "g++ 12"),
    configuration={"BLOCK": 64},
    seed=7,
)
ENTRY = Entry(12, MOMENT, RECORD, "cd" * 32, "0" * 64, "ef" * 32)
TIME: dict[str, Json] = {"seconds": 1.25e-5, "low": 1.24e-5, "high": 1.27e-5, "basis": "measured on NVIDIA H200"}


def line(**changes: object) -> str:
    return entry_line(replace(ENTRY, record=replace(RECORD, **changes)))  # type: ignore[arg-type]


def test_a_line() -> None:
    expected = "  12  2026-12-02 23:10Z  verify    src/k.cu:k  ✓ passed, 22 cases (emulated)  BLOCK=64"
    assert line() == expected


@pytest.mark.parametrize("basis", ["emulated", "measured on NVIDIA H200", "replayed", "predicted"])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("outcome", ["Passed", "MemoryFault", "Unavailable", "JobFailed", "Timed", "Mismatch"])
def test_the_basis_is_in_every_line(basis: str, kind: Kind, outcome: str) -> None:
    for measurement in (None, TIME):
        text = line(basis=basis, kind=kind, outcome={"type": outcome}, measurement=measurement)
        assert f"({basis}" in text


def test_times_say_what_they_are() -> None:
    time = {"kind": Kind.TIME, "outcome": {"type": "Timed"}, "sizes": {"n": 1000}}
    measured = line(**time, measurement=TIME, basis="measured on NVIDIA H200")
    assert "✓ 12.5 us ± 1.2 % (measured on NVIDIA H200)  n=1000 BLOCK=64" in measured
    emulated = line(**time, measurement={**TIME, "basis": "CPU time of an emulation"})
    assert "(emulated: CPU time of an emulation)" in emulated
    assert "✓ 2 ms (replayed)" in line(**time, measurement={"seconds": 0.002}, basis="replayed")


def test_of_few_samples_no_interval_is_shown() -> None:
    time = {"kind": Kind.TIME, "outcome": {"type": "Timed"}, "measurement": {**TIME, "samples": 5}}
    assert "✓ 12.5 us with too few samples for an interval (emulated: measured on NVIDIA H200)" in line(**time)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"type": "MemoryFault", "kind": "guard-band"}, "memory fault: guard-band"),
        ({"type": "Mismatch", "kind": "wrong value", "output": "y", "index": [3, 4]}, "wrong value: y[3, 4]"),
        ({"type": "CompileFailed", "messages": []}, "compile failed"),
        ({"type": "Unavailable", "reason": "no GPU"}, "not verified: no GPU"),
        ({"type": "JobFailed", "kind": "crashed", "message": "a\nb"}, "no verdict (crashed): a"),
        ({}, "?"),
    ],
)
def test_outcomes_in_words(outcome: dict[str, Json], words: str) -> None:
    assert outcome_words(outcome) == words


def test_a_terminal_is_told_nothing() -> None:
    """An escape sequence or a line break in a ledger that came from elsewhere."""
    subject = Subject("\x1b[2Ja\nb.cu", "k", "00", "a\x1b[0m\n\tb")
    assert "\\x1b[2Ja\\nb.cu:k" in line(subject=subject)
    shown = entry_lines(replace(ENTRY, record=replace(RECORD, subject=subject)), "/l")
    assert all(c.isprintable() or c == "\t" for text in shown for c in text)


def test_a_trial_is_named_by_its_run() -> None:
    trial = replace(RECORD, kind=Kind.TRIAL, subject=None, platform=None, run=12)
    assert "run 12" in entry_line(replace(ENTRY, record=trial))
    assert "src/k.cu:k" in entry_line(replace(ENTRY, record=trial), ENTRY)


def test_one_in_full() -> None:
    text = "\n".join(entry_lines(ENTRY, "/p/ledger.sqlite"))
    for part in ("run 12 of /p/ledger.sqlite", "(emulated)", "ab" * 32, "BLOCK = 64", "g++ 12", "ef" * 32, "// kernel"):
        assert part in text


def test_json_has_everything() -> None:
    data = entry_json(ENTRY)
    assert (data["run"], data["kind"], data["basis"], data["seed"]) == (12, "verify", "emulated", 7)
    assert data["started"] == "2026-12-02T23:10:05+00:00"
    assert data["subject"]["path"] == "src/k.cu"
    assert (data["belongs_to"], data["hash"]) == (None, "ef" * 32)


def test_an_audit_in_words() -> None:
    sound = Audit(Anchor(3, "ab" * 32, ()), None)
    assert (
        audit_lines(sound, "/l", anchored=True)[0] == "✓ /l: 3 entries, each as it was written and against the anchor"
    )
    assert "anchor alone" in audit_lines(sound, "/l", anchored=False)[0]
    bad = Audit(Anchor(1, "ab" * 32, ()), BadEntry(2, "is missing: entry 3 comes next"))
    assert audit_lines(bad, "/l", anchored=True)[0] == "✗ /l: entry 2 is missing: entry 3 comes next"
    altered = replace(sound, altered=("the triggers are gone",))
    assert audit_lines(altered, "/l", anchored=True) == ["✗ /l: the triggers are gone"]


TUNE = replace(ENTRY, record=replace(RECORD, kind=Kind.TUNE, outcome={"type": "Begun"}, configuration={}))


def end_of(outcome: dict[str, Json], **more: object) -> Entry:
    shared = {"kind": Kind.TUNE_END, "subject": None, "platform": None, "run": 12, "outcome": outcome}
    return replace(ENTRY, number=15, record=replace(RECORD, **{**shared, **more}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (None, "? unfinished (emulated)"),
        (
            end_of({"type": "Tuned", "improved": True}, measurement=TIME, details={"speedup": {"value": 1.5}}),
            "✓ tuned, 1.5 times as fast, 12.5 us ± 1.2 % (emulated: measured on NVIDIA H200)  BLOCK=64",
        ),
        (end_of({"type": "Tuned", "improved": True}, measurement=TIME), "✓ tuned, 12.5 us"),
        (end_of({"type": "Tuned", "improved": False}, measurement=TIME), "✓ default stays, 12.5 us"),
        (end_of({"type": "MemoryFault", "kind": "guard-band"}), "✗ memory fault: guard-band (emulated)"),
        (end_of({"type": "Unavailable", "reason": "no GPU"}), "? not verified: no GPU (emulated)"),
    ],
)
def test_a_search_says_how_it_ended(end: Entry | None, words: str) -> None:
    text = entry_line(TUNE, end=end)
    assert f"tune      src/k.cu:k  {words}" in text
    assert words.partition("  ")[0] in entry_lines(TUNE, "/l", end)[1]


CASES: Json = [{"n": 1000}, {"n": 1000000}]
TUNED: dict[str, Json] = {"type": "Tuned", "improved": True}


def test_of_several_cases_each_has_its_time() -> None:
    """The ratio is a geometric mean: beside the time of one case it would be taken for that one's."""
    begun = replace(TUNE, record=replace(TUNE.record, sizes={"n": 1000}, details={"cases": CASES}))
    details: dict[str, Json] = {"cases": CASES, "seconds": [1.25e-5, 2e-3], "speedup": {"value": 1.5}}
    text = entry_line(begun, end=end_of(TUNED, measurement=TIME, details=details))
    assert text.endswith(
        "✓ tuned, 1.5 times as fast in the mean, 12.5 us at n=1000, 2 ms at n=1000000 (emulated)  BLOCK=64"
    )
    del details["seconds"]  # as version 0.1 wrote it
    text = entry_line(begun, end=end_of(TUNED, measurement=TIME, details=details))
    assert "1.5 times as fast in the mean, 12.5 us ± 1.2 % at n=1000, the first of 2 cases (" in text
    full = entry_lines(begun, "/l", end_of(TUNED, measurement=TIME, details=details))
    assert "  cases      n=1000; n=1000000" in full


def test_a_stopped_search_says_so() -> None:
    stopped = end_of(TUNED, measurement=TIME, details={"ended": "stopped"})
    assert "12.5 us ± 1.2 % (emulated: measured on NVIDIA H200), stopped on request  BLOCK" in entry_line(
        TUNE, end=stopped
    )
    same = end_of({"type": "Tuned", "improved": False}, measurement=TIME, details={"ended": "stopped"})
    assert ", stopped on request  BLOCK" in entry_line(TUNE, end=same)


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (
            {"trials": 9, "failed": 2, "early": 3, "ended": "stopped"},
            "9 trials, 2 failed, 3 given up early; stopped on request",
        ),
        ({"trials": 9, "failed": 0, "ended": "patience"}, "9 trials; no new best in 30 trials"),
        ({"trials": 9}, "9 trials"),
        ({}, None),
    ],
)
def test_a_search_in_full_says_how_much_was_tried(details: dict[str, Json], words: str | None) -> None:
    begun = replace(TUNE, record=replace(TUNE.record, details={"budget": {"patience": 30}}))
    lines = entry_lines(begun, "/l", end_of(TUNED, measurement=TIME, details=details))
    assert [text for text in lines if text.startswith("  search ")] == ([f"  search     {words}"] if words else [])


def test_a_trial_given_up_early_says_so() -> None:
    details: dict[str, Json] = {"seconds": [1.25e-5], "early": True}
    shared = {"kind": Kind.TRIAL, "subject": None, "platform": None, "run": 12, "details": details}
    assert "✓ 12.5 us (emulated), given up early" in line(**shared, outcome={"type": "Timed"})


@pytest.mark.parametrize(
    ("outcome", "seconds", "words"),
    [
        ({"type": "Timed"}, [1.25e-5], "✓ 12.5 us (emulated)"),
        ({"type": "Timed"}, [1.25e-5, 2e-3], "✓ 12.5 us, 2 ms (emulated)"),
        ({"type": "Timed"}, ["x"], "✓ ? (emulated)"),
        ({"type": "Failed", "message": "does not compile: too many registers"}, None, "✗ does not compile: too many"),
        ({"type": "Failed"}, None, "✗ failed (emulated)"),
    ],
)
def test_a_trial_has_its_times_or_its_reason(outcome: dict[str, Json], seconds: Json, words: str) -> None:
    shared = {"kind": Kind.TRIAL, "subject": None, "platform": None, "run": 12, "details": {"seconds": seconds}}
    assert words in line(**shared, outcome=outcome)

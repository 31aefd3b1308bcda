"""A search in the ledger: every trial is there before the next, and another process goes on from it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.event import Progress
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.record import BadEntry, Entry, Json, Kind, Record, Selection
from kernel_forge.domain.tuning import KernelTuning
from kernel_forge.jobs.tune import tune_file
from kernel_forge.ledger import SqliteLedger
from tests.jobs.tune.played_device import PlayedDevice, Values, request, text
from tests.ledger.records import forge, tamper


def product(values: Values, _n: int) -> float:
    return 1.0 / (values["BLOCK"] * values["ITEMS"])


class _Died(Exception):
    """Stands for a kill: raised where progress is told, so right after a trial was written down."""


def died_after(trials: int, ledger: SqliteLedger, device: PlayedDevice, path: str, **more: object) -> None:
    def report(progress: Progress) -> None:
        if progress.search is not None and progress.search.trials == trials:
            raise _Died

    with pytest.raises(_Died):
        tune_file(request(path=path, **more), device, report, lambda _: ledger)


def finished(ledger: SqliteLedger, device: PlayedDevice, path: str, **more: object) -> KernelTuning:
    (result,) = tune_file(request(path=path, **more), device, lambda _: None, lambda _: ledger).results
    assert isinstance(result, KernelTuning)
    return result


def trials(ledger: SqliteLedger, run: int | None) -> list[Entry]:
    return [*reversed(ledger.entries(Selection(kinds=(Kind.TRIAL,), run=run)))]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "w.cu").write_text(text())
    return str(tmp_path / "w.cu")


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path.resolve())


def test_a_search_its_trials_and_its_end_are_recorded(ledger: SqliteLedger, path: str) -> None:
    found = finished(ledger, PlayedDevice(product), path, trials=5)
    kinds = [e.record.kind for e in reversed(ledger.entries(Selection()))]
    assert kinds == [Kind.TUNE, *[Kind.TRIAL] * 5, Kind.TUNE_END]
    begun, *_, ended = reversed(ledger.entries(Selection()))
    assert begun.record.subject is not None
    assert begun.record.subject.kernel == "twice"
    assert begun.record.seed == 1
    assert begun.record.details["sampler"] == "portfolio"
    assert found.run == begun.number == ended.record.run
    assert ended.record.configuration == found.winner.configuration
    assert ended.record.details["parameters"] == ["BLOCK", "ITEMS"]
    assert [dict(e.record.configuration) for e in trials(ledger, begun.number)] == [
        dict(t.configuration) for t in found.trials
    ]
    assert ledger.audit().is_sound


def test_a_search_goes_on_where_it_died_and_repeats_no_trial(ledger: SqliteLedger, path: str) -> None:
    first, second = PlayedDevice(product), PlayedDevice(product)
    died_after(4, ledger, first, path, seed=None)
    assert len(trials(ledger, 1)) == 4
    found = finished(ledger, second, path, seed=None)
    assert (found.resumed, found.run, found.ended) == (4, 1, "exhausted")
    assert len(found.trials) == 9
    tried = [tuple(e.record.configuration.values()) for e in trials(ledger, 1)]
    assert len(tried) == len(set(tried)) == 9
    assert [t.configuration for t in found.trials[:4]] == [dict(e.record.configuration) for e in trials(ledger, 1)[:4]]
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}


def test_failed_trials_are_taken_over_too(ledger: SqliteLedger, path: str) -> None:
    def seconds(values: Values, n: int) -> float:
        return product(values, n)

    wrong = PlayedDevice(seconds, wrong=lambda v, _: v["ITEMS"] == 4)
    died_after(8, ledger, wrong, path)
    assert sum(e.record.outcome["type"] == "Failed" for e in trials(ledger, 1)) in (2, 3)
    found = finished(ledger, wrong, path)
    assert found.resumed == 8
    assert len(trials(ledger, 1)) == 9  # one was left to try
    assert found.failed == 3
    assert {t.failure for t in found.trials if t.seconds is None} == {"wrong: y[0] wrong value"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"source": text().replace("{}", "{ }")}, "the file"),
        ({"source": text(blocks="[64, 128]")}, "the file, the spec"),
        ({"sampler": "random"}, "the sampler"),
        ({"cases": ({"n": 512},)}, "the cases"),
        ({"configuration": {"BLOCK": 64}}, "the tunables that are --set"),
        ({"seed": 2}, "the seed"),
        ({"defines": {"N": "1"}, "sampler": "random"}, "include folders or macros, the sampler"),
        ({"flags": ("-use_fast_math",)}, "the compiler's flags"),
        ({"fresh": True}, None),
    ],
)
def test_another_search_begins_anew_and_says_why(
    change: dict[str, object], what: str | None, ledger: SqliteLedger, path: str
) -> None:
    died_after(3, ledger, PlayedDevice(product), path)
    found = finished(ledger, PlayedDevice(product), path, **change)
    assert found.resumed == 0
    said = f"the unfinished search, run 1, is not gone on with, because of what has changed: {what}"
    assert [n for n in found.notes if "unfinished" in n] == ([] if what is None else [said])
    again = finished(ledger, PlayedDevice(product), path, **change)  # by now run 1 is history
    assert not [n for n in again.notes if "unfinished" in n]


def test_the_tunables_of_a_resumed_search_are_in_the_order_of_the_spec(ledger: SqliteLedger, path: str) -> None:
    """A ledger keeps no order of names; here [tune] has them in another than the alphabet's."""
    source = text().replace("BLOCK", "WIDTH")
    seconds: Callable[[Values, int], float] = lambda v, _: 1.0 / (v["WIDTH"] * v["ITEMS"])  # noqa: E731
    died_after(4, ledger, PlayedDevice(seconds), path, source=source)
    found = finished(ledger, PlayedDevice(seconds), path, source=source)
    assert found.resumed == 4 and found.baseline is not None
    assert {tuple(t.configuration) for t in (*found.trials, found.baseline, found.winner)} == {("WIDTH", "ITEMS")}


def test_an_ended_search_is_not_gone_on_with(ledger: SqliteLedger, path: str) -> None:
    finished(ledger, PlayedDevice(product), path)
    assert finished(ledger, PlayedDevice(product), path).resumed == 0


def test_a_wrong_default_ends_the_search(ledger: SqliteLedger, path: str) -> None:
    tune_file(request(path=path), PlayedDevice(product, wrong=lambda *_: True), lambda _: None, lambda _: ledger)
    begun, ended = reversed(ledger.entries(Selection()))
    assert (begun.record.kind, ended.record.kind) == (Kind.TUNE, Kind.TUNE_END)
    assert ended.record.outcome["type"] == "Mismatch"


def test_trouble_with_the_ledger_is_a_note(path: str, tmp_path: Path) -> None:
    class Full(SqliteLedger):
        def append(self, record: Record) -> Entry:
            if record.kind is Kind.TRIAL:
                raise LedgerUnavailable("the disk is full")
            return super().append(record)

    found = finished(Full(tmp_path.resolve()), PlayedDevice(product), path)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}
    assert sum("the disk is full" in note for note in found.notes) == 1


def test_without_a_ledger_nothing_is_kept(path: str) -> None:
    (result,) = tune_file(request(path=path), PlayedDevice(product), lambda _: None).results
    assert isinstance(result, KernelTuning)
    assert result.run is None


def test_the_winner_of_an_earlier_search_is_tried_right_after_the_default(ledger: SqliteLedger, path: str) -> None:
    finished(ledger, PlayedDevice(product), path)
    found = finished(ledger, PlayedDevice(product), path, cases=({"n": 512},), trials=2)
    assert [dict(t.configuration) for t in found.trials] == [
        {"BLOCK": 128, "ITEMS": 1},
        {"BLOCK": 256, "ITEMS": 4},
    ]
    assert [t.reason for t in found.trials] == ["the default of the source", "the best of this kernel at n = 4096"]


def test_a_search_that_still_runs_is_not_taken_over(ledger: SqliteLedger, path: str) -> None:
    died_after(3, ledger, PlayedDevice(product), path)
    release = ledger.claim(1)
    assert release is not None
    assert ledger.claim(1) is None
    other = finished(ledger, PlayedDevice(product), path, sampler="random")
    assert not [n for n in other.notes if "unfinished" in n]  # somebody is at it
    assert finished(ledger, PlayedDevice(product), path).resumed == 0
    release()


def test_a_search_with_a_large_seed_is_gone_on_with(ledger: SqliteLedger, path: str) -> None:
    died_after(3, ledger, PlayedDevice(product), path, seed=99999999999)
    assert finished(ledger, PlayedDevice(product), path, seed=99999999999).resumed == 3


def test_trials_without_an_answer_are_tried_again(ledger: SqliteLedger, path: str) -> None:
    gone = PlayedDevice(lambda v, n: product(v, n) if v["BLOCK"] == 128 else Unavailable("gone"))
    died_after(8, ledger, gone, path)
    found = finished(ledger, PlayedDevice(product), path)
    assert found.failed == 0
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}


@pytest.mark.parametrize("seconds", [["abc"], [], [-1.0], [1.0, 2.0], "x"])
def test_what_is_no_trial_of_ours_is_not_taken_over(seconds: Json, ledger: SqliteLedger, path: str) -> None:
    died_after(2, ledger, PlayedDevice(product), path)
    made = trials(ledger, 1)[0].record
    ledger.append(replace(made, configuration={"BLOCK": 256, "ITEMS": 4}, details={"seconds": seconds}))
    ledger.append(replace(made, configuration={"BLOCK": 33, "ITEMS": 4}, details={"seconds": [1e-9]}))
    found = finished(ledger, PlayedDevice(product), path)
    assert len(found.trials) == 9
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}


class _Troubled(SqliteLedger):
    """Fails in ``what``, for a search that is there."""

    what = ""

    def entries(self, selection: Selection) -> tuple[Entry, ...]:
        self._may_fail("entries" if selection.run is not None else "")
        return super().entries(selection)

    def claim(self, run: int) -> Callable[[], None] | None:
        self._may_fail("claim")
        return super().claim(run)

    def check(self, run: int) -> BadEntry | None:
        self._may_fail("check")
        return super().check(run)

    def _may_fail(self, doing: str) -> None:
        if doing == self.what:
            raise LedgerUnavailable(f"no {doing}")


@pytest.mark.parametrize("what", ["entries", "claim", "check"])
@pytest.mark.parametrize("fresh", [False, True])
def test_trouble_while_a_search_is_taken_over_or_begun_is_a_note(
    what: str, fresh: bool, ledger: SqliteLedger, path: str
) -> None:
    died_after(3, ledger, PlayedDevice(product), path)
    troubled = _Troubled(ledger.project)
    troubled.what = what
    found = finished(troubled, PlayedDevice(product), path, fresh=fresh)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}
    is_hit = what == "claim" or not fresh
    said = f"this search is not recorded and cannot be gone on with: no {what}"
    assert [note for note in found.notes if f"no {what}" in note] == ([said] if is_hit else [])
    assert (found.run is None) == is_hit
    release = ledger.claim(1)
    assert release is not None  # nobody holds it any more
    release()


def test_a_search_that_ends_while_it_is_claimed_is_not_taken_over(ledger: SqliteLedger, path: str) -> None:
    died_after(3, ledger, PlayedDevice(product), path)

    class Late(SqliteLedger):
        def claim(self, run: int) -> Callable[[], None] | None:
            if run == 1:
                finished(ledger, PlayedDevice(product), path)  # the other process ends it right now
            return super().claim(run)

    found = finished(Late(ledger.project), PlayedDevice(product), path)
    ends = ledger.entries(Selection(kinds=(Kind.TUNE_END,)))
    assert found.resumed == 0
    assert sorted(e.record.run for e in ends if e.record.run is not None) == [1, found.run]


def test_a_ledger_that_is_removed_in_the_middle_is_said_and_gets_no_parts(ledger: SqliteLedger, path: str) -> None:
    def report(progress: Progress) -> None:
        if progress.search is not None and progress.search.trials == 3 and ledger.file.exists():
            shutil.rmtree(ledger.file.parent)

    (found,) = tune_file(request(path=path), PlayedDevice(product), report, lambda _: ledger).results
    assert isinstance(found, KernelTuning)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}
    assert found.run is None
    assert sum("was removed or replaced" in note for note in found.notes) == 1
    assert not ledger.file.exists()


def test_trials_that_were_changed_are_not_gone_on_from(ledger: SqliteLedger, path: str) -> None:
    died_after(3, ledger, PlayedDevice(product), path)
    ledger.close()
    faster = "UPDATE entries SET content = replace(content, '\"seconds\":[', '\"seconds\":[1e-9, ') WHERE number = 3"
    tamper(ledger.file, lambda c: c.execute(faster))
    found = finished(ledger, PlayedDevice(product), path)
    assert found.resumed == 0
    (note,) = [note for note in found.notes if "run 1" in note]
    assert "is not gone on with: entry 3 of " in note
    assert "was changed: its hash does not belong to it; kernel-forge audit says more" in note


def test_no_two_trials_of_a_search_have_the_same_number(ledger: SqliteLedger, path: str) -> None:
    """Those without an answer are tried again, and their numbers are taken."""
    gone = PlayedDevice(lambda v, n: product(v, n) if v["BLOCK"] == 128 else Unavailable("gone"))
    died_after(8, ledger, gone, path)
    assert finished(ledger, PlayedDevice(product), path).resumed == 3
    assert [e.record.details["number"] for e in trials(ledger, 1)] == list(range(8 + 6))


def test_a_search_leaves_no_lock(ledger: SqliteLedger, path: str) -> None:
    finished(ledger, PlayedDevice(product), path)
    assert [f.name for f in ledger.file.parent.glob("*.lock")] == []


def test_what_is_none_of_ours_is_passed_over(ledger: SqliteLedger, path: str) -> None:
    """With hashes that are right: somebody who knows the format wrote it."""
    died_after(3, ledger, PlayedDevice(product), path)
    ledger.close()

    def write(entries: list[dict[str, Any]]) -> None:
        begun, one = entries[:2]
        for seconds in ([10**400], [True], [-1.0], [float("nan")]):
            fast = {"configuration": {"BLOCK": 256, "ITEMS": 4}, "details": {"seconds": seconds}}
            entries.append({**one, **fast})
        named = {"kernel": "twice", "parameters": ["BLOCK", "ITEMS"], "cases": [{"n": 10**400}]}
        entries.append({**begun, "seed": -1})
        entries.append({**begun, "subject": {**begun["subject"], "files": {"a": 1, "b": "x"}}})
        entries.append({**one, "kind": "tune-end", "run": len(entries), "details": named})

    forge(ledger.file, write)
    assert ledger.audit().is_sound
    found = finished(ledger, PlayedDevice(product), path)
    assert (found.resumed, found.run) == (3, 1)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 4}

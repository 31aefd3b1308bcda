"""``kernel-forge tune``: real ones on the emulator, and what is made of results made by hand."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.cli import applying, running
from kernel_forge.cli import tune as tune_module
from kernel_forge.cli.main import Adapters, run
from kernel_forge.cli.options import BUDGET_FORMS, budget, cases
from kernel_forge.cli.output import can_show_blocks
from kernel_forge.cli.running import run_jobs
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.outcome import Outcome, Unavailable
from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import Budget, CaseChoice, Contender, KernelTuning
from kernel_forge.jobs.client import JobCancelled, JobFailed, TuneEnd
from kernel_forge.jobs.requests import TuneReport, TuneRequest
from kernel_forge.views.tuning import STAYS
from kernel_forge.views.words import EMULATION
from tests.cli.test_cli import BODY, GOOD, NO_SPEC, SPEC, write
from tests.views.tunings import BEST, DEFAULT, EMULATED, PROGRESS, TUNING, time_of, verdict_of, wrong

FASTER: Configuration = {"BLOCK": 32}
SECOND = SPEC.format(name="f").replace("BLOCK", "WIDTH") + BODY.format(name="f", factor=2)


def forge(*words: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel_forge", "tune", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, cwd=cwd)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.cu", GOOD)


def tuned(
    path: Path, configuration: Configuration = FASTER, outcome: Outcome | None = None, **more: Any
) -> KernelTuning:
    """The kernel ``k`` of ``path``, whose default is BLOCK = 64."""
    return replace(
        TUNING,
        kernel="k",
        path=str(path),
        baseline=Contender({"BLOCK": 64}, DEFAULT.times, DEFAULT.speedup),
        winner=Contender(configuration, BEST.times, BEST.speedup),
        verdict=verdict_of(configuration, outcome),
        **more,
    )


def tuned_second(path: Path) -> KernelTuning:
    """The kernel ``f`` of ``SECOND``."""
    return replace(tuned(path, {"WIDTH": 32}), kernel="f", baseline=replace(DEFAULT, configuration={"WIDTH": 64}))


class Played:
    """In place of the jobs: notes the requests, and gives a result for each."""

    def __init__(self, *results: Any, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.results, self.meanwhile = results, meanwhile
        self.requests: list[TuneRequest] = []

    def __call__(self, requests: Sequence[TuneRequest], find_ledger: object, *, hidden: bool) -> list[TuneEnd]:
        self.requests = list(requests)
        self.meanwhile()
        return [r if isinstance(r, JobFailed | JobCancelled) else TuneReport((), (r,)) for r in self.results]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def call(played: Played, *words: object) -> int:
        monkeypatch.setattr(tune_module, "run_jobs", played)
        unused: Any = None
        return run(["tune", *map(str, words)], Adapters(unused, unused, unused, unused, lambda _: None, unused))

    return call


def test_on_the_emulator_the_winner_is_verified_and_its_times_have_their_caveat(good: Path) -> None:
    done = forge(good, "--json", "--seed", "3", "--budget", "5")
    assert done.returncode == 0, done.stderr
    (file,) = json.loads(done.stdout)["files"]
    (found,) = file["tunings"]
    assert (file["problems"], file["verdicts"]) == ([], [])
    assert (found["kernel"], found["basis"], found["caveat"], found["seed"]) == ("k", "emulated", EMULATION, 3)
    assert found["space"] == {"combinations": 2, "valid": 2, "parameters": {"BLOCK": [32, 64]}}
    assert (found["ended"], len(found["trials"])) == ("exhausted", 2)
    assert found["verdict"]["passed"] is True
    assert found["winner"]["configuration"]["BLOCK"] in (32, 64)
    assert found["applied"] is None
    assert good.read_text(encoding="utf-8") == GOOD


def test_a_wrong_kernel_is_not_tuned(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.cu", SPEC.format(name="k") + BODY.format(name="k", factor=3))
    done = forge(bad, "--budget", "5")
    assert done.returncode == 1
    assert "✗ k: wrong: y[" in done.stdout
    assert " us" not in done.stdout


def test_requests(good: Path, command: Callable[..., int]) -> None:
    played = Played(tuned(good))
    words = ["--budget", "200", "--budget", "5m", "--sampler", "local", "--case", "n=1000", "--case", "n=5", "--fresh"]
    assert (
        command(played, good, *words, "--seed", 9, "--set", "BLOCK=32", "--energy", "-D", "A=1", "--time-limit", 7) == 0
    )
    (request,) = played.requests
    assert request.budget == Budget(200, 300.0, None)
    assert (request.sampler, request.cases, request.seed) == ("local", ({"n": 1000}, {"n": 5}), 9)
    assert (request.fresh, request.energy, request.configuration) == (True, True, {"BLOCK": 32})
    assert (request.kernel, request.device, request.defines, request.time_limit) == ("k", "auto", {"A": "1"}, 7.0)


def test_requests_without_options(good: Path, command: Callable[..., int]) -> None:
    played = Played(tuned(good))
    assert command(played, good) == 0
    (request,) = played.requests
    assert (request.budget, request.cases, request.configuration, request.fresh) == (Budget(100, 60.0), (), {}, False)


def test_all_cases(tmp_path: Path, command: Callable[..., int]) -> None:
    text = GOOD.replace("cases = [{ n = 100 }]", "cases = [{ n = 100 }, { n = 7 }]")
    played = Played(tuned(write(tmp_path / "k.cu", text)))
    assert command(played, tmp_path / "k.cu", "--all-cases") == 0
    assert played.requests[0].cases == ({"n": 100}, {"n": 7})


def test_a_kernel_without_tunables_is_left_out(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = SPEC.format(name="f").replace("// [tune]\n// BLOCK = [32, 64]\n", "").partition("#ifndef")[0]
    fixed = fixed.replace("BLOCK", "64") + BODY.format(name="f", factor=2)
    path = write(tmp_path / "two.cu", GOOD + fixed)
    played = Played(tuned(path))
    assert command(played, path) == 0
    assert [r.kernel for r in played.requests] == ["k"]
    assert "left out, as their specs have no [tune] table: f" in capsys.readouterr().err
    assert command(played, f"{path}:f") == 2
    assert "nothing to tune" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "5x"], BUDGET_FORMS),
        (["--budget", "patience"], BUDGET_FORMS),
        (["--budget", "-3"], BUDGET_FORMS),
        (["--budget", "0"], "above 0"),
        (["--budget", "25h"], "up to 86400 seconds"),
        (["--budget", "10", "--budget", "20"], "a second limit of trials"),
        (["--sampler", "porfolio"], "did you mean portfolio?"),
        (["--case", "m=3"], "k has no size m (it has: n)"),
        (["--case", "n"], "NAME=VALUE"),
        (["--case", "n=-1"], "integer from 0"),
        (["--case", "n=1,n=2"], "named twice"),
        (["--case", "n=1", "--case", "n=1"], "named twice"),
        (["--case", "n=1", "--all-cases"], "give one of the two"),
        (["--size", "q=1"], "no size q"),
        (["--set", "BLOK=1"], "did you mean BLOCK?"),
        (["--selector", "s.h"], "--selector chooses between cases"),
        (["--selector", "/nonesuch/s.h", "--case", "n=1", "--case", "n=2"], "cannot be written"),
    ],
)
def test_wrong_use(
    good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    played = Played()
    assert command(played, good, *words) == 2
    assert message in capsys.readouterr().err
    assert played.requests == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], Budget(100, 60.0, None)),
        (["200"], Budget(200, None, None)),
        (["90s"], Budget(None, 90.0, None)),
        (["5m"], Budget(None, 300.0, None)),
        (["1.5h"], Budget(None, 5400.0, None)),
        (["patience=30"], Budget(None, None, 30)),
        (["patience=30", "1h", "500"], Budget(500, 3600.0, 30)),
    ],
)
def test_a_budget_named_is_the_only_limit(texts: list[str], expected: Budget) -> None:
    assert budget(texts) == expected


def test_sizes_of_all_cases_and_of_one() -> None:
    assert cases(["n=1, m=2", "m=5"], {"k": 3, "m": 4}) == ({"k": 3, "m": 2, "n": 1}, {"k": 3, "m": 5})
    assert cases([], {"k": 3}) == ({"k": 3},)
    assert cases([], {}) == ()
    with pytest.raises(UsageError, match="named twice"):
        cases(["n=1", "n=1"], {})


def test_apply(good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Played(tuned(good)), good, "--apply") == 0
    assert good.read_text(encoding="utf-8") == GOOD.replace("BLOCK 64", "BLOCK 32")
    assert f"applied    BLOCK = 32 is the default now in {good}" in capsys.readouterr().out


def test_what_an_emulation_chose_is_applied_only_on_request(
    good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    emulated = tuned(good, basis="emulated")
    assert command(Played(emulated), good, "--apply") == 1
    assert "not applied: it was chosen by CPU times of an emulation" in capsys.readouterr().out
    assert good.read_text(encoding="utf-8") == GOOD
    played = Played()
    assert command(played, good, "--apply-emulated") == 2
    assert played.requests == []
    assert command(Played(emulated), good, "--apply", "--apply-emulated") == 0
    assert good.read_text(encoding="utf-8") == GOOD.replace("BLOCK 64", "BLOCK 32")
    assert f"is the default now in {good}, chosen by CPU times of an emulation\n" in capsys.readouterr().out


def test_without_apply_nothing_is_written(good: Path, command: Callable[..., int]) -> None:
    assert command(Played(tuned(good)), good) == 0
    assert good.read_text(encoding="utf-8") == GOOD


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"configuration": {"BLOCK": 64}}, 0, STAYS),
        ({"outcome": wrong()}, 1, "the winner is not verified"),
        ({"configuration": {"BLOCK": 48}}, 1, "none of its values"),
    ],
)
def test_why_it_is_not_applied(
    good: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    code: int,
    reason: str,
) -> None:
    assert command(Played(tuned(good, **changes)), good, "--apply") == code
    assert f"not applied: {reason}" in capsys.readouterr().out.replace("BLOCK = 48 is ", "")
    assert good.read_text(encoding="utf-8") == GOOD


def test_a_file_that_changed_meanwhile_is_left_alone(good: Path, command: Callable[..., int]) -> None:
    theirs = GOOD + "// mine\n"
    played = Played(tuned(good), meanwhile=lambda: good.write_text(theirs, encoding="utf-8"))
    assert command(played, good, "--apply") == 1
    assert good.read_text(encoding="utf-8") == theirs
    played = Played(tuned(good), meanwhile=good.unlink)
    assert command(played, good, "--apply") == 1
    assert not good.exists()


def test_a_result_is_shown_although_it_cannot_be_written(
    good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, text: str) -> None:
        raise UsageError(f"{path} is unchanged: no space")

    monkeypatch.setattr("kernel_forge.cli.applying.replace_text", fails)
    assert command(Played(tuned(good)), good, "--apply") == 1
    out = capsys.readouterr().out
    assert "✓ k: 10 us" in out
    assert "not applied" in out
    assert "no space" in out


def test_two_kernels_of_a_file_are_applied_one_after_the_other(tmp_path: Path, command: Callable[..., int]) -> None:
    path = write(tmp_path / "two.cu", GOOD + SECOND)
    assert command(Played(tuned(path), tuned_second(path)), path, "--apply") == 0
    text = path.read_text(encoding="utf-8")
    assert text == (GOOD + SECOND).replace("BLOCK 64", "BLOCK 32").replace("WIDTH 64", "WIDTH 32")


@pytest.mark.parametrize(
    ("failed", "code"),
    [
        (JobFailed("usage", "the space is empty"), 2),
        (JobFailed("unavailable", "no GPU"), 3),
        (JobFailed("time-limit", "too slow"), 2),
        (JobFailed("crashed", "the worker is gone", "a trace"), 70),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_failed_job_loses_no_result_of_the_others(
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    failed: JobFailed,
    code: int,
    first: bool,
) -> None:
    path = write(tmp_path / "two.cu", GOOD + SECOND)
    played = Played(failed, tuned_second(path)) if first else Played(tuned(path), failed)
    assert command(played, path, "--apply") == code
    kernel, now = ("f", "WIDTH") if first else ("k", "BLOCK")
    assert path.read_text(encoding="utf-8") == (GOOD + SECOND).replace(f"define {now} 64", f"define {now} 32")
    out = capsys.readouterr().out
    assert f"applied    {now} = 32 is the default now in {path}" in out
    shown = [out.index(f"{'k' if first else 'f'} was not tuned: "), out.index(f"✓ {kernel}: ")]
    assert failed.message in out
    assert shown == sorted(shown, reverse=not first)  # in the order of the kernels


def test_the_worst_code_of_several_kernels(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "two.cu", GOOD + SECOND)
    empty, gone = JobFailed("usage", "the space is empty"), JobFailed("crashed", "gone")
    assert command(Played(empty, gone), path, "--json") == 70
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [p["message"].partition(" was")[0] for p in file["problems"]] == ["k", "f"]
    bad = replace(verdict_of({}, wrong()), kernel="k", path=str(path))
    assert command(Played(bad, JobFailed("unavailable", "no GPU")), path) == 1


def test_a_job_that_was_cancelled_loses_no_result(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "two.cu", GOOD + SECOND)
    assert command(Played(tuned(path), JobCancelled()), path, "--apply") == 130
    shown = capsys.readouterr()
    assert "BLOCK = 32 is the default now" in shown.out
    assert "interrupted before f" in shown.err


def test_a_file_that_was_written_before_another_failed_is_named(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLOCK stands in the source, the list of DEPTH in the sidecar."""
    spec = SPEC.format(name="k").partition("#ifndef")[0].replace("cdiv(n, BLOCK)", "cdiv(n, BLOCK) * DEPTH")
    lines = [line.removeprefix("//").removeprefix(" ") for line in spec.splitlines()]
    path = write(tmp_path / "k.cu", "#ifndef BLOCK\n#define BLOCK 64\n#endif\n" + NO_SPEC)
    beside = write(tmp_path / "k.forge.toml", "\n".join(lines[1:-1]) + "\nDEPTH = [1, 2]\n")
    real = applying.replace_text

    def fails(name: Path, text: str) -> None:
        if name == beside:
            raise UsageError(f"{name} is unchanged: no space")
        real(name, text)

    monkeypatch.setattr(applying, "replace_text", fails)
    result = tuned(path, {"BLOCK": 32, "DEPTH": 2})
    assert command(Played(result), path, "--apply") == 1
    assert "#define BLOCK 32" in path.read_text(encoding="utf-8")
    out = capsys.readouterr().out
    assert f"written in {path} only" in out
    assert f"{beside} is unchanged: no space" in out


def test_apply_as_json(good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Played(tuned(good)), good, "--apply", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["files"][0]["tunings"]
    assert found["applied"] == {"written": [str(good)], "reason": None, "notes": []}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_cannot_be_written_is_said_before_the_search(good: Path, command: Callable[..., int]) -> None:
    good.chmod(0o444)
    played = Played()
    assert command(played, good, "--apply") == 2
    assert played.requests == []


def test_a_selector(
    good: Path, tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    choices = (CaseChoice({"n": 10}, {"BLOCK": 32}, 1e-6, None), CaseChoice({"n": 9999}, {"BLOCK": 64}, 1e-5, None))
    result = tuned(good, cases=({"n": 10}, {"n": 9999}), choices=choices)
    result = replace(result, winner=replace(result.winner, times=(time_of(1e-6), time_of(1e-5))))
    result = replace(
        result, baseline=replace(DEFAULT, configuration={"BLOCK": 64}, times=(time_of(2e-6), time_of(1e-5)))
    )
    header = tmp_path / "selector.h"
    words = ["--case", "n=10", "--case", "n=9999", "--selector", header]
    assert command(Played(result), good, *words) == 0
    assert "namespace k_tuning" in header.read_text(encoding="utf-8")
    assert f"selector   {header}" in capsys.readouterr().out
    assert command(Played(result), good, *words) == 0  # over its own, too
    assert command(Played(replace(result, choices=())), good, *words) == 1
    assert "no selector is written" in capsys.readouterr().err


def test_a_selector_replaces_no_other_file(
    good: Path, tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link.h"
    link.symlink_to(good)
    empty = write(tmp_path / "empty.h", "")
    words = ["--case", "n=10", "--case", "n=9999", "--selector"]
    played = Played()
    for path in (good, link, empty):
        assert command(played, good, *words, path) == 2
        assert "is no selector" in capsys.readouterr().err
    assert command(played, good, *words, tmp_path / "none" / "s.h") == 2
    assert f"the folder {tmp_path / 'none'} does not exist" in capsys.readouterr().err
    assert played.requests == []
    assert good.read_text(encoding="utf-8") == GOOD
    assert link.is_symlink()
    # A file that appears during the search is left alone as well.
    choices = (CaseChoice({"n": 10}, {"BLOCK": 32}, 1e-6, None), CaseChoice({"n": 9999}, {"BLOCK": 64}, 1e-5, None))
    header = tmp_path / "s.h"
    played = Played(tuned(good, choices=choices), meanwhile=lambda: write(header, "mine"))
    assert command(played, good, *words, header) == 1
    assert header.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("result", "code", "stream"),
    [
        (Unavailable("no GPU"), 3, "? k: not verified: no GPU"),
        (wrong(), 1, "✗ k: wrong: y[3]"),
        (Unavailable("bad spec", of_spec=True), 1, "? k"),
    ],
)
def test_exit_codes_of_verdicts(
    good: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str], result: Outcome, code: int, stream: str
) -> None:
    verdict = replace(verdict_of({}, result), kernel="k", path=str(good))
    assert command(Played(verdict), good) == code
    assert stream in capsys.readouterr().out


def test_exit_codes_of_jobs_and_specs(good: Path, tmp_path: Path, command: Callable[..., int]) -> None:
    assert command(Played(JobFailed("unavailable", "no GPU")), good) == 3
    assert command(Played(JobFailed("usage", "the space is empty")), good) == 2
    assert command(Played(JobFailed("crashed", "gone")), good) == 70
    played = Played()
    assert command(played, write(tmp_path / "broken.cu", GOOD.replace("reference", "refrence"))) == 1
    assert played.requests == []
    assert command(played, write(tmp_path / "bare.cu", NO_SPEC)) == 2


def test_the_sparkline_is_ascii_where_the_terminal_has_no_more() -> None:
    assert can_show_blocks("utf-8")
    assert not can_show_blocks("ascii")
    assert not can_show_blocks("latin-1")
    assert not can_show_blocks(None)
    assert not can_show_blocks("nonesuch")


class PlayedClient:
    """In place of the owner of workers: a search that ends when it is asked to, or when ``patience`` runs out."""

    starts: list[str | None]
    interrupts = 1

    def __init__(self, recorder: object) -> None:
        pass

    def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def run(
        self, request: TuneRequest, report: Callable[[Progress], None], limit: float, finish: asyncio.Event
    ) -> TuneReport:
        self.starts.append(request.kernel)
        report(Progress("k: searching", 1, 2, PROGRESS))
        for _ in range(self.interrupts):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        if self.interrupts:
            await asyncio.wait_for(finish.wait(), 5)
        return TuneReport((), (EMULATED,))


@pytest.fixture
def played_client(monkeypatch: pytest.MonkeyPatch) -> type[PlayedClient]:
    made = type("Client", (PlayedClient,), {"starts": []})
    monkeypatch.setattr(running, "JobClient", made)
    return made


GOES_ON = " goes on with it while the file stays as it is"
REQUESTS = [TuneRequest("/a.cu", "", kernel="k"), TuneRequest("/a.cu", "", kernel="f")]


def test_the_first_interrupt_ends_the_search_with_its_best(
    played_client: type[PlayedClient], capsys: pytest.CaptureFixture[str]
) -> None:
    (end,) = run_jobs(REQUESTS, lambda _: None, hidden=True)
    assert isinstance(end, TuneReport)
    assert played_client.starts == ["k"]  # the next is not begun
    said = capsys.readouterr().err
    assert "finishing with the best so far, which ends this search: the same command would begin anew. " in said
    assert "Ctrl-C again stops at once; then the search is lost, as it is not recorded" in said
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_stops_at_once(
    played_client: type[PlayedClient], capsys: pytest.CaptureFixture[str]
) -> None:
    played_client.interrupts = 2
    with pytest.raises(KeyboardInterrupt):
        run_jobs(REQUESTS, lambda _: None, hidden=True)
    assert played_client.starts == ["k"]
    assert "stopped at once; the search is not recorded, and is lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        (False, "then the search is recorded, and the same command" + GOES_ON),
        (
            True,
            "then the search is recorded, and the same command without --fresh" + GOES_ON,
        ),
    ],
)
def test_what_becomes_of_a_recorded_search(
    played_client: type[PlayedClient], capsys: pytest.CaptureFixture[str], fresh: bool, words: str
) -> None:
    class Kept:
        def close(self) -> None:
            pass

    kept: Any = Kept()
    run_jobs([replace(REQUESTS[0], fresh=fresh)], lambda _: kept, hidden=True)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        (
            True,
            "the worker ended; the search is recorded, and the same command" + GOES_ON,
        ),
        (False, "the worker ended; the search is not recorded, and is lost"),
    ],
)
def test_what_becomes_of_a_search_whose_worker_was_killed(
    monkeypatch: pytest.MonkeyPatch, recorded: bool, words: str
) -> None:
    class Killed(PlayedClient):
        async def run(self, *_: Any) -> Any:
            return JobFailed("crashed", "the worker ended", "its log")

    class Kept:
        def close(self) -> None:
            pass

    monkeypatch.setattr(running, "JobClient", Killed)
    kept: Any = Kept() if recorded else None
    (end,) = run_jobs(REQUESTS[:1], lambda _: kept, hidden=True)
    assert isinstance(end, JobFailed)
    assert (end.message, end.log) == (words, "its log")


def test_without_an_interrupt_all_are_tuned(played_client: type[PlayedClient]) -> None:
    played_client.interrupts = 0
    assert len(run_jobs(REQUESTS, lambda _: None, hidden=True)) == 2
    assert played_client.starts == ["k", "f"]


def test_kernels_that_an_interrupt_left_out_are_named(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "two.cu", GOOD + SECOND)
    assert command(Played(tuned(path)), path) == 130
    shown = capsys.readouterr()
    assert "✓ k" in shown.out
    assert "interrupted before f" in shown.err

"""*Autotune* through a real server. The workers are scripted (``scripted_worker.py``): what they find is known."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire import Json, Wire

HERE = Path(__file__).parent
SCALE = (HERE / "scale.cu").read_text(encoding="utf-8")
SERVER = (sys.executable, str(HERE / "scripted_server.py"))
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True},
    },
    "window": {"workDoneProgress": True},
}


DEFAULTS = {"tuneTrials": 100, "tuneSampler": "portfolio", "tuningHints": True}


class Editor:
    """One file open in a server with its settings."""

    def __init__(self, wire: Wire, path: Path, text: str = SCALE, *, trusted: bool = True, **settings: object) -> None:
        self.wire, self.text, self.version = wire, text, 1
        self.uri = path.as_uri()
        self._begun = len(wire.received)
        wire.notify("workspace/didChangeConfiguration", {"settings": {"kernelForge": {**DEFAULTS, **settings}}})
        wire.notify("kernelForge/trust", {"trusted": trusted})
        wire.open(self.uri, text)
        wire.diagnostics(self.uri)

    def shown(self) -> list[str]:
        """Messages to the person since it was opened."""
        received = self.wire.received[self._begun :]
        return [m["params"]["message"] for m in received if m.get("method") == "window/showMessage"]

    def close(self) -> None:
        self.wire.close(self.uri)

    def change(self, old: str, new: str) -> None:
        assert self.text.count(old) == 1
        self.text = self.text.replace(old, new)
        self.version += 1
        self.wire.change(self.uri, {"text": self.text}, version=self.version)
        self.wire.diagnostics(self.uri, version=self.version)

    def autotune(self, kernel: str | None = "scale") -> Json:
        return self.wire.command("kernelForge.autotune", self.uri, kernel)

    def lenses(self) -> list[str]:
        found = self.wire.request("textDocument/codeLens", {"textDocument": {"uri": self.uri}})["result"]
        return [lens["command"]["title"] for lens in found]

    def actions(self) -> dict[str, Json]:
        """Code actions at the kernel, by the last word of their kind."""
        line = next(i for i, t in enumerate(self.text.split("\n")) if "void scale(" in t)
        at = {"line": line, "character": 20}
        parameters = {"textDocument": {"uri": self.uri}, "range": {"start": at, "end": at}}
        found = self.wire.request("textDocument/codeAction", {**parameters, "context": {"diagnostics": []}})["result"]
        return {action["kind"].rpartition(".")[2]: action for action in found}

    def hover(self) -> str:
        line = next(i for i, t in enumerate(self.text.split("\n")) if "void scale(" in t)
        at = {"line": line, "character": self.text.split("\n")[line].index("scale(")}
        parameters = {"textDocument": {"uri": self.uri}, "position": at}
        text: str = self.wire.request("textDocument/hover", parameters)["result"]["contents"]["value"]
        return text

    def hints(self) -> list[Json]:
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
        parameters = {"textDocument": {"uri": self.uri}, "range": whole}
        found: list[Json] = self.wire.request("textDocument/inlayHint", parameters)["result"]
        return found

    def until_lens(self, part: str) -> str:
        return until(lambda: next((title for title in self.lenses() if part in title), None))

    def tuned(self) -> None:
        self.autotune()
        self.until_lens("tuned: 1.50x")

    def progress(self) -> list[Json]:
        return [m["params"] for m in self.wire.received[self._begun :] if m.get("method") == "$/progress"]


def until(test: Callable[[], Any], seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = test()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("not reached")


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(tmp_path_factory.mktemp("log") / "stderr", SERVER) as server:
        server.request("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        server.notify("initialized", {})
        yield server
        assert server.end() == 0
        assert "Traceback" not in server.log()


Open = Callable[..., Editor]


@pytest.fixture
def open_file(wire: Wire, tmp_path: Path) -> Iterator[Open]:
    """Opens a file of some text; what still runs for it ends with the test."""
    opened: list[Editor] = []

    def open_it(text: str = SCALE, **options: Any) -> Editor:
        opened.append(Editor(wire, tmp_path / f"{len(opened)}.cu", text, **options))
        return opened[-1]

    yield open_it
    for editor in opened:
        editor.close()


@pytest.fixture
def editor(open_file: Open) -> Editor:
    return open_file()


def script(word: str) -> str:
    return f"// script: {word}\n{SCALE}"


def test_a_kernel_with_a_tune_table_has_a_second_lens_and_an_action(editor: Editor) -> None:
    assert editor.lenses() == ["not verified · Verify", "Autotune"]
    action = editor.actions()["autotune"]
    assert action["kind"] == "refactor.rewrite.kernelForge.autotune" and "disabled" not in action
    assert action["command"]["command"] == "kernelForge.autotune"
    assert action["command"]["arguments"] == [editor.uri, "scale"]


def test_without_a_tune_table_the_action_says_why_it_is_disabled(open_file: Open) -> None:
    text = (
        SCALE.replace("// [tune]\n// BLOCK = [64, 128, 256]\n", "").replace('"BLOCK"', "128").replace("BLOCK)", "128)")
    )
    editor = open_file(text)
    assert editor.wire.diagnostics(editor.uri) == []
    assert editor.actions()["autotune"]["disabled"] == {"reason": "its spec has no [tune] table"}
    assert editor.lenses() == ["not verified · Verify"]
    editor.autotune()
    assert editor.shown()[-1] == "Not tuned: scale: its spec has no [tune] table."


def test_nothing_is_tuned_untrusted(open_file: Open) -> None:
    editor = open_file(trusted=False)
    assert "not trusted" in editor.actions()["autotune"]["disabled"]["reason"]
    assert len(editor.lenses()) == 1
    editor.autotune()
    editor.autotune(None)
    assert all("not trusted" in shown for shown in editor.shown()) and len(editor.shown()) == 2
    assert not editor.progress()


def test_the_result_shows_in_lens_hover_hint_and_message(editor: Editor) -> None:
    editor.tuned()
    assert editor.lenses()[1] == "tuned: 1.50x (emulated, CPU times)"
    text = editor.hover()
    # 3 us over 2 us; the interval is that of scripted_worker.contender.
    assert "best is **BLOCK = 256** (verified)" in text
    assert "**1.5 times as fast as the default (95 % interval 1.47 to 1.53)**" in text
    assert "CPU times of an emulation" in text and "Convergence: `" in text
    assert "100 trials, 1 failed" in text and "3 valid configurations" in text and "--sampler portfolio" in text
    (hint,) = editor.hints()
    assert hint["label"] == "3 us → 2 us ± 1 %, 1.50x (emulated)"
    line = editor.text.split("\n")[hint["position"]["line"]]
    assert "void scale(" in line and hint["position"]["character"] == len(line)
    assert "BLOCK = 256" in hint["tooltip"]["value"]
    assert editor.shown() == ["scale: tuned: 1.50x (emulated, CPU times)."]


def test_the_default_that_a_tuning_verified_is_verified(editor: Editor) -> None:
    # 5 and 7 cases are those of scripted_worker's verdicts of the default and of the winner.
    editor.tuned()
    assert editor.lenses()[0] == "verified (emulated) · 5 cases · 0 ms"
    assert "✓ Verified, **emulated**: 5 cases" in editor.hover() and "Configuration: BLOCK = 128" in editor.hover()
    editor.change("#define BLOCK 128", "#define BLOCK 256")
    editor.until_lens("applied")
    assert editor.lenses()[0] == "verified (emulated) · 7 cases · 0 ms"
    editor.change("#define BLOCK 256", "#define BLOCK 64")  # which nobody has verified
    editor.until_lens("changed since")
    assert editor.lenses()[0] == "changed since: verified (emulated) · 7 cases · 0 ms"
    editor.change("#define BLOCK 64", "#define BLOCK 128")
    assert until(lambda: editor.lenses()[0]) == "verified (emulated) · 5 cases · 0 ms"
    editor.change("y[i] = a * x[i];", "y[i] = a * x[i] + 0;")
    assert editor.lenses()[0] == "changed since: verified (emulated) · 5 cases · 0 ms"


def test_a_verification_of_its_own_is_not_replaced_by_that_of_a_tuning(editor: Editor) -> None:
    editor.wire.command("kernelForge.verify", editor.uri, "scale")
    editor.until_lens("1 case")
    editor.tuned()
    assert editor.lenses()[0] == "verified (emulated) · 1 case · 0 ms"


def test_a_default_that_a_tuning_found_wrong_is_shown_as_wrong(open_file: Open) -> None:
    editor = open_file(script("late-wrong-default"))
    editor.tuned()
    assert editor.lenses()[0] == "wrong: y[3] (emulated)"
    (shown,) = editor.wire.diagnostics(editor.uri)
    assert shown["code"] == "KF301" and "y[3] is 1, should be 2" in shown["message"]


def test_progress_has_percentage_best_rest_and_a_curve(open_file: Open) -> None:
    editor = open_file(tuneTrials=10)
    editor.tuned()
    shown = [p["value"] for p in editor.progress()]
    assert shown[0]["kind"] == "begin" and shown[0]["title"] == "Autotune scale" and shown[0]["cancellable"]
    assert shown[-1]["kind"] == "end"
    last = [v for v in shown if v["kind"] == "report" and "tried" in v["message"]][-1]
    assert last["percentage"] == 100
    # The last of ten trials takes 2 us (1 + 1/9), the default 3 us.
    assert "best 2.222 us, 1.35x the default" in last["message"] and "about 1 s left" in last["message"]
    assert any(c in last["message"] for c in "▁▂▃▄▅▆▇█")


def test_apply_best_is_a_versioned_edit_and_then_it_is_gone(editor: Editor) -> None:
    editor.tuned()
    action = editor.actions()["applyBest"]
    assert "isPreferred" not in action and action["title"] == "Apply best to scale (emulated): BLOCK = 256"
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": editor.uri, "version": 1}
    (edit,) = change["edits"]
    lines = editor.text.split("\n")
    start, end = edit["range"]["start"], edit["range"]["end"]
    assert lines[start["line"]] == "#define BLOCK 128"
    assert (start["character"], end["character"], edit["newText"]) == (14, 17, "256")
    editor.change("#define BLOCK 128", "#define BLOCK 256")
    assert "applyBest" not in editor.actions()
    assert editor.lenses()[1] == "tuned: 1.50x, applied (emulated, CPU times)"
    assert editor.hints()[0]["label"] == "2 us ± 1 %, 1.50x (emulated)"


def test_an_edit_elsewhere_moves_the_edit_and_one_of_the_kernel_takes_it_away(editor: Editor) -> None:
    editor.tuned()
    editor.change("#include <cuda_runtime.h>\n", "// a comment\n#include <cuda_runtime.h>\n")
    editor.change("  return 0;\n", "  return 1;\n")  # host code
    editor.change("y[i] = x[i] + b;", "y[i] = x[i] + b + 0;")  # another kernel
    editor.change("// /// kernel-forge\n", "\n\n// /// kernel-forge\n")
    editor.change("#define BLOCK 128", "#define BLOCK 64")  # another default: the best is still the best
    (change,) = editor.actions()["applyBest"]["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == editor.version
    (edit,) = change["edits"]
    start, end = edit["range"]["start"], edit["range"]["end"]
    line = editor.text.split("\n")[start["line"]]
    assert line[start["character"] : end["character"]] == "64" and edit["newText"] == "256"
    editor.change("y[i] = a * x[i];", "y[i] = a * x[i] + 0;")
    assert "applyBest" not in editor.actions()
    assert editor.lenses()[1] == "changed since: tuned: 1.50x (emulated, CPU times)"
    assert editor.hints() == []
    assert "older text" in editor.hover()


def test_a_value_that_the_spec_no_longer_has_is_not_applied(editor: Editor) -> None:
    editor.tuned()
    editor.change("BLOCK = [64, 128, 256]", "BLOCK = [64, 128]")
    assert "applyBest" not in editor.actions()
    assert editor.lenses()[1].startswith("changed since")


def test_typing_while_it_runs_ages_what_it_finds(open_file: Open) -> None:
    editor = open_file(script("slow"), tuneTrials=12)
    editor.autotune()
    editor.until_lens("tuning ")
    editor.change("y[i] = a * x[i];", "y[i] = a * x[i] + 0;")
    editor.until_lens("changed since: tuned")
    assert "applyBest" not in editor.actions()


def test_a_tie_keeps_the_default(open_file: Open) -> None:
    editor = open_file(script("default-best"))
    editor.autotune()
    assert editor.until_lens("default stays") == "default stays, nothing is faster for sure (emulated, CPU times)"
    assert "applyBest" not in editor.actions()
    assert "nothing is faster for sure" in editor.hover()


def test_a_rejected_configuration_shows(open_file: Open) -> None:
    editor = open_file(script("rejected"))
    editor.tuned()
    assert "but rejected: BLOCK = 64: **wrong: y[3]**: y[3] is 1, should be 2" in editor.hover()


def test_a_wrong_default_is_not_tuned(open_file: Open) -> None:
    editor = open_file(script("wrong-default"))
    editor.autotune()
    assert editor.until_lens("not tuned") == "not tuned: launch failed: trap (emulated)"
    assert editor.shown() == ["scale was not tuned: launch failed: trap: the kernel trapped."]
    assert editor.hints() == [] and "applyBest" not in editor.actions()


def test_a_worker_that_dies_is_a_message(open_file: Open) -> None:
    editor = open_file(script("crash"), tuneTrials=3)
    editor.autotune()
    until(editor.shown)
    assert editor.shown() == ["scale was not tuned: crashed: the worker ended."]
    assert editor.lenses()[1] == "Autotune"


def test_cancel_on_the_progress_pauses(open_file: Open) -> None:
    editor = open_file(script("slow"))
    editor.autotune()
    title = editor.until_lens("tuning 5/100")
    # The fifth trial takes 2 us (1 + 1/4), the default 3 us.
    assert title == "tuning 5/100, best 1.20x · Finish" and "Pause" in editor.lenses()
    editor.wire.notify("window/workDoneProgress/cancel", {"token": editor.progress()[0]["token"]})
    editor.until_lens("tuning paused after")
    (shown,) = editor.shown()
    assert shown.startswith("Autotune of scale was stopped after ")
    assert shown.endswith("trials, which are not kept: no runs are recorded here.")  # this server has no ledger
    assert editor.progress()[-1]["value"]["kind"] == "end"
    editor.change("y[i] = x[i] + b;", "y[i] = x[i] + b + 0;")
    assert editor.lenses()[1] == "Autotune"  # of another text the record has nothing


def test_pausing_before_the_first_trial(open_file: Open) -> None:
    editor = open_file(script("silent"))
    editor.autotune()
    editor.until_lens("tuning: preparing emulator")
    editor.wire.command("kernelForge.autotune.finish", editor.uri, "scale")
    editor.wire.command("kernelForge.autotune.pause", editor.uri, "scale")
    editor.until_lens("Autotune")
    expected = ["scale: nothing has been tried yet.", "Autotune of scale was stopped before it tried anything."]
    assert editor.shown() == expected


def test_pausing_before_the_client_has_shown_the_bar(open_file: Open) -> None:
    editor = open_file(script("slow"))
    wire = editor.wire
    wire.held = "window/workDoneProgress/create"
    editor.autotune()
    wire.command("kernelForge.autotune.pause", editor.uri)
    wire.release()
    until(editor.shown)
    assert editor.shown() == ["Autotune of scale was stopped before it tried anything."]
    assert editor.lenses()[1].startswith("Autotune")


def test_a_newer_text_replaces_a_run_that_the_client_has_not_shown_yet(open_file: Open) -> None:
    editor = open_file(script("slow"), tuneTrials=6)
    editor.wire.held = "window/workDoneProgress/create"
    editor.autotune()
    editor.change("y[i] = a * x[i];", "y[i] = x[i] * a;")
    editor.autotune()
    editor.wire.release()
    assert editor.until_lens("tuned: 1.50x") == "tuned: 1.50x (emulated, CPU times)"
    assert editor.shown() == ["scale: tuned: 1.50x (emulated, CPU times)."]


def test_finish_ends_with_the_best_so_far(open_file: Open) -> None:
    editor = open_file(script("slow"))
    editor.autotune()
    editor.until_lens("tuning 3/100")
    editor.wire.command("kernelForge.autotune.finish", editor.uri)
    editor.until_lens("tuned: 1.50x")
    assert "stopped on request" in editor.hover()


def test_verifying_does_not_wait_for_tuning(open_file: Open) -> None:
    editor = open_file(script("slow"))
    editor.autotune()
    editor.until_lens("tuning 2/100")
    editor.wire.save(editor.uri)
    editor.until_lens("verified (emulated)")
    assert any(title.startswith("tuning ") for title in editor.lenses())
    editor.wire.command("kernelForge.cancel", editor.uri)  # of verifications
    editor.wire.command("kernelForge.autotune", editor.uri, "scale")
    assert editor.shown() == ["scale is being tuned already."]
    editor.wire.command("kernelForge.autotune.pause", editor.uri)
    editor.until_lens("tuning paused after")


def test_files_are_tuned_in_turn(open_file: Open) -> None:
    one = open_file(script("slow"), tuneTrials=8)
    other = open_file(tuneTrials=8)
    one.autotune()
    one.until_lens("tuning 1/8")
    other.autotune()
    assert other.lenses()[1] == "tuning: waiting"
    one.until_lens("tuned: 1.50x")
    other.until_lens("tuned: 1.50x")
    assert len(one.hints()) == len(other.hints()) == 1


def test_closing_the_file_stops_its_tuning(open_file: Open) -> None:
    editor = open_file(script("slow"))
    editor.autotune()
    editor.until_lens("tuning 2/100")
    editor.wire.close(editor.uri)
    until(editor.shown)
    assert "was stopped after" in editor.shown()[0]


def test_a_paused_run_goes_on_from_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With real workers, on the emulator."""
    monkeypatch.setenv("KERNEL_FORGE_LEDGER", "on")
    text = SCALE.replace("[64, 128, 256]", "[32, 64, 96, 128, 160, 192, 224, 256, 288, 320]")
    with Wire(tmp_path / "stderr") as wire:
        wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        wire.notify("initialized", {})
        editor = Editor(wire, tmp_path / "a.cu", text, tuneTrials=6, device="emulator", verifyOnSave=False)
        editor.autotune()
        until(lambda: any(t.startswith("tuning 1/6") for t in editor.lenses()), 120)
        wire.command("kernelForge.autotune.pause", editor.uri)
        editor.until_lens("tuning paused after")
        (shown,) = until(editor.shown)  # the record is looked up after the lens is set
        kept = re.search(r"The record keeps (\d+):", shown)
        assert kept is not None and int(kept.group(1)) >= 1
        editor.autotune()
        until(lambda: len(editor.shown()) == 2, 120)
        assert "(emulated, CPU times)" in editor.shown()[1]
        assert f"6 trials, {kept.group(1)} of them from an earlier run" in editor.hover()
        assert wire.end() == 0


def test_settings_reach_the_search(open_file: Open) -> None:
    editor = open_file(tuneTrials=5, tuneSampler="random", tuningHints=False)
    editor.tuned()
    assert "5 trials" in editor.hover() and "--sampler random" in editor.hover()
    assert editor.hints() == []


def test_no_kernel_named_is_the_only_one_that_can_be_tuned(editor: Editor) -> None:
    editor.autotune(None)
    editor.until_lens("tuned: 1.50x")
    assert editor.autotune("no_such")["result"] is None
    assert "no spec block of a kernel no_such" in editor.shown()[-1]

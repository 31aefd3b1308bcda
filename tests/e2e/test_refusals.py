"""What does not fit the protocol is answered with its error code, and shows the person nothing.

The codes are those of JSON-RPC 2.0 (section 5.1) and of the Language Server Protocol 3.17 (ErrorCodes).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.wire import Json, Wire

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NOT_INITIALIZED = -32700, -32600, -32601, -32602, -32002
URI = "file:///nowhere/a.cu"
DOCUMENT = {"uri": URI}
ORIGIN = {"line": 0, "character": 0}
TEXT = "__global__ void k(float* y) {\n  /* 🚀 */ y[0] = 1;\n}\n"


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(tmp_path_factory.mktemp("log") / "stderr") as server:
        server.initialize(trusted=False)
        server.open(URI, TEXT)
        yield server


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Wire]:
    with Wire(tmp_path / "stderr") as server:
        yield server


def at(line: object, character: object) -> Json:
    return {"textDocument": DOCUMENT, "position": {"line": line, "character": character}}


def untroubled(wire: Wire, shown: int) -> None:
    """Still answering, and neither a trace nor a message since."""
    assert wire.request("textDocument/codeLens", {"textDocument": DOCUMENT})["result"] == []
    assert wire.shown()[shown:] == []
    assert "Traceback" not in wire.log()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/hover", at(-1, 0)),
        ("textDocument/hover", at(2**40, 2**40)),
        ("textDocument/hover", at("1", 0)),
        ("textDocument/hover", at(1.5, 0)),
        ("textDocument/hover", at(True, 0)),
        ("textDocument/hover", None),
        ("textDocument/hover", []),
        ("textDocument/hover", {}),
        ("textDocument/hover", {"textDocument": {"uri": None}, "position": ORIGIN}),
        ("textDocument/completion", at(0, -5)),
        ("textDocument/codeLens", "text"),
        ("textDocument/codeAction", {"textDocument": DOCUMENT, "range": None, "context": None}),
        (
            "textDocument/codeAction",
            {
                "textDocument": DOCUMENT,
                "range": {"start": ORIGIN, "end": ORIGIN},
                "context": {"diagnostics": [], "only": "quickfix"},
            },
        ),
        ("workspace/executeCommand", None),
        ("workspace/executeCommand", {}),
        ("workspace/executeCommand", {"command": 5}),
        ("workspace/executeCommand", {"command": "kernelForge.verify", "arguments": {"uri": URI}}),
        ("workspace/executeCommand", {"command": "kernelForge.verify", "arguments": [5]}),
        ("workspace/executeCommand", {"command": "kernelForge.verify", "arguments": [URI, {}]}),
        ("workspace/executeCommand", {"command": "kernelForge.cancel", "arguments": [[URI]]}),
        ("workspace/executeCommand", {"command": "kernelForge.autotune", "arguments": [URI, 5]}),
        ("workspace/executeCommand", {"command": "kernelForge.autotune.finish", "arguments": [5]}),
        ("workspace/executeCommand", {"command": "kernelForge.autotune.pause", "arguments": [{}]}),
        ("workspace/executeCommand", {"command": "no.such.command", "arguments": []}),
    ],
)
def test_bad_parameters_are_answered(wire: Wire, method: str, params: object) -> None:
    shown = len(wire.shown())
    error = wire.request(method, params)["error"]
    assert error["code"] == INVALID_PARAMS
    assert len(error["message"]) > len("Invalid Params")  # and why
    untroubled(wire, shown)


def test_the_reason_names_the_place(wire: Wire) -> None:
    message = wire.request("textDocument/hover", at("one", 0))["error"]["message"]
    assert message == "Invalid Params of textDocument/hover: expected int, got str at params.position.line"
    message = wire.command("kernelForge.verify", URI, 7)["error"]["message"]
    assert "argument kernel: expected a string or null, got int" in message


def test_a_request_without_parameters_or_unknown(wire: Wire) -> None:
    shown = len(wire.shown())
    absent = wire.ask({"jsonrpc": "2.0", "id": "h", "method": "textDocument/hover"})
    assert (absent["id"], absent["error"]["code"]) == ("h", INVALID_PARAMS)
    for extra in ({}, {"params": None}, {"params": [1]}, {"params": {"type_name": "1 2"}, "more": 1}):
        answer = wire.ask({"jsonrpc": "2.0", "id": 7, "method": "foo/bar", **extra})
        assert (answer["id"], answer["error"]["code"]) == (7, METHOD_NOT_FOUND)
    untroubled(wire, shown)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"hello", PARSE_ERROR),
        (b"\xff\xfe\xfd", PARSE_ERROR),
        (b"[" * 40000, PARSE_ERROR),
        ([], INVALID_REQUEST),
        (None, INVALID_REQUEST),
        ({}, INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 4, "method": "textDocument/hover"}, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 4, "method": None}, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": [4], "method": "textDocument/hover"}, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 4, "method": "textDocument/didSave", "params": {"textDocument": DOCUMENT}},
         INVALID_REQUEST),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_what_is_no_request_is_refused(wire: Wire, message: object, code: int) -> None:
    shown = len(wire.shown())
    answer = wire.ask(message) if isinstance(message, dict) else (wire.send(message), wire.answer())[1]
    known = isinstance(message, dict) and message.get("id") == 4
    assert (answer["id"], answer["error"]["code"]) == (4 if known else None, code)
    untroubled(wire, shown)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", None),
        ("textDocument/didOpen", {"textDocument": {"uri": "u", "languageId": "c", "version": 1, "text": None}}),
        ("textDocument/didChange", {"textDocument": {"uri": URI, "version": 1}, "contentChanges": [{"text": None}]}),
        ("textDocument/didChange", {"textDocument": {"uri": URI, "version": None}, "contentChanges": []}),
        ("textDocument/didSave", [URI]),
        ("textDocument/didClose", {}),
        ("notebookDocument/didClose", {"notebookDocument": {"uri": "n"}, "cellTextDocuments": []}),
        ("$/cancelRequest", None),
        ("$/cancelRequest", {"id": [1]}),
        ("$/cancelRequest", {"id": 999}),
        ("$/setTrace", {"value": "all"}),
        ("window/workDoneProgress/cancel", {"token": [1]}),
        ("window/workDoneProgress/cancel", {"token": "unknown"}),
        ("kernelForge/trust", None),
        ("kernelForge/trust", {"trusted": "yes", "type_name": "1 2"}),
        ("$/unknown", {"a": {"jsonrpc": "2.0"}}),
        ("workspace/didChangeConfiguration", None),
        ("textDocument/hover", at(0, 0)),  # a request, but without an id
    ],
)
def test_bad_notifications_are_only_logged(wire: Wire, method: str, params: object) -> None:
    shown = len(wire.shown())
    wire.notify(method, params)
    untroubled(wire, shown)


def test_answers_to_nothing_are_only_logged(wire: Wire) -> None:
    shown = len(wire.shown())
    for answer in ({"id": 77, "result": 1}, {"id": [1], "result": 1}, {"id": 77, "error": 5}, {"id": None}):
        wire.send({"jsonrpc": "2.0", **answer})
    untroubled(wire, shown)


@pytest.mark.parametrize("settings", [None, "text", 5, [], {"kernelForge": None}, {"kernelForge": [1]}])
def test_settings_that_are_no_object_change_nothing(wire: Wire, settings: object) -> None:
    shown = len(wire.shown())
    wire.notify("workspace/didChangeConfiguration", {"settings": settings})
    untroubled(wire, shown)


def test_a_wrong_setting_is_named_once_and_shortly(wire: Wire) -> None:
    shown = len(wire.shown())
    deep: object = "x" * 10000
    for _ in range(100):
        deep = {"jsonrpc": "2.0", "deep": [deep, 1]}
    wire.notify("workspace/didChangeConfiguration", {"settings": {"kernelForge": {"device": deep, "defines": [1]}}})
    wire.request("textDocument/codeLens", {"textDocument": DOCUMENT})
    new = wire.shown()[shown:]
    assert len(new) == 2 and all(len(text) < 400 for text in new)
    assert "kernelForge.device" in new[0] and "kernelForge.defines" in new[1]
    assert "Traceback" not in wire.log()


@pytest.mark.parametrize(("line", "character"), [(0, 999), (999, 0), (2**31 - 1, 2**31 - 1), (1, 6)])
def test_positions_beyond_the_text_or_inside_a_pair_are_answered(wire: Wire, line: int, character: int) -> None:
    place = {"line": line, "character": character}
    for method in ("textDocument/hover", "textDocument/completion"):
        assert "result" in wire.request(method, at(line, character))
    reversed_range = {"start": place, "end": ORIGIN}
    params = {"textDocument": DOCUMENT, "range": reversed_range, "context": {"diagnostics": []}}
    actions = wire.request("textDocument/codeAction", params)["result"]
    assert [a["title"] for a in actions] == ["Add spec block for k (with gaps to fill)"]


def test_requests_before_initialize_wait_for_it(fresh: Wire) -> None:
    assert fresh.request("textDocument/hover", at(0, 0))["error"]["code"] == NOT_INITIALIZED
    assert fresh.request("shutdown", None)["error"]["code"] == NOT_INITIALIZED
    fresh.open(URI, TEXT)  # to be dropped, says the protocol
    assert fresh.request("initialize", {"capabilities": 5})["error"]["code"] == INVALID_PARAMS
    assert "capabilities" in fresh.initialize(trusted=False)["result"]
    assert fresh.initialize()["error"]["code"] == INVALID_REQUEST
    assert fresh.request("shutdown", None)["result"] is None
    assert fresh.request("textDocument/hover", at(0, 0))["error"]["code"] == INVALID_REQUEST
    assert fresh.request("shutdown", None)["error"]["code"] == INVALID_REQUEST
    fresh.save(URI)
    assert fresh.shown() == [] and "Traceback" not in fresh.log()
    assert fresh.end() == 0  # exit after shutdown


def test_exit_before_anything_else_is_no_orderly_end(fresh: Wire) -> None:
    fresh.notify("exit", None)
    assert fresh.wait() == 1


@pytest.mark.parametrize("root", ["http://[", "", "//", "\ud800", "file:///x%00y"])
def test_a_root_that_is_no_folder(fresh: Wire, root: str) -> None:
    folders = [{"uri": root, "name": ""}]
    params = {"processId": None, "capabilities": {}, "rootUri": root, "rootPath": root, "workspaceFolders": folders}
    assert "result" in fresh.request("initialize", params)
    fresh.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": folders, "removed": folders}})
    assert fresh.end() == 0 and "Traceback" not in fresh.log()


def test_trust_is_given_later(fresh: Wire) -> None:
    fresh.initialize(trusted=False)
    text = (Path(__file__).parent / "scale.cu").read_text(encoding="utf-8")
    fresh.open(URI, text)
    fresh.diagnostics(URI)

    def titles() -> list[str]:
        lenses = fresh.request("textDocument/codeLens", {"textDocument": DOCUMENT})["result"]
        return [lens["command"]["title"] for lens in lenses]

    assert titles() == ["not verified: this workspace is not trusted: nothing is compiled or run"]
    fresh.notify("kernelForge/trust", {"trusted": True})
    assert titles() == ["not verified · Verify", "Autotune"]


def test_wrong_initialization_options_are_named(fresh: Wire) -> None:
    fresh.initialize(trusted=False, timeLimit="soon", verifyOnSave=1)
    fresh.request("textDocument/codeLens", {"textDocument": DOCUMENT})
    assert len(fresh.shown()) == 2 and "kernelForge.timeLimit: 'soon' is not a number" in fresh.shown()[0]

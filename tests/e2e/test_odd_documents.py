"""Documents that are no file, or a file with an odd name: read as any other, and the server goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.wire import Json, Wire

HERE = Path(__file__).parent
RIGHT = (HERE / "scale.cu").read_text(encoding="utf-8")
UNKNOWN_KEY = RIGHT.replace("block = ", "blok = ")
NO_FILES = {
    "empty": "",
    "root": "file:///",
    "folder": "file:///tmp/",
    "NUL": "file:///x%00y.cu",
    "lone surrogate": "file:///tmp/\ud800.cu",
    "lone surrogate in a name": "untitled:\udc80",
    "untitled": "untitled:Untitled-1",
    "http": "http://host/x.cu",
    "another machine": "file://server/share/x.cu",
    "no address": "http://[x.cu",
    "relative": "file:x.cu",
    "a word": "x.cu",
    "sidecar": "untitled:x.forge.toml",
}


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(tmp_path_factory.mktemp("log") / "stderr") as server:
        server.initialize()
        yield server


def untroubled(wire: Wire) -> None:
    assert wire.request("textDocument/codeLens", {"textDocument": {"uri": "file:///none"}})["result"] == []
    assert "Traceback" not in wire.log()
    assert not any("Error in server" in text for text in wire.shown())


def codes(diagnostics: list[Json]) -> list[str]:
    return [found["code"] for found in diagnostics]


@pytest.mark.parametrize("uri", [u for name, u in NO_FILES.items() if name != "sidecar"])
def test_what_is_no_file_is_read_and_said_to_be_unverifiable(wire: Wire, uri: str) -> None:
    shown = len(wire.shown())
    wire.open(uri, UNKNOWN_KEY)
    assert codes(wire.diagnostics(uri, version=1)) == ["KF103"]
    start = {"line": 0, "character": 0}
    wire.change(uri, {"range": {"start": start, "end": start}, "text": "// a line more\n"})
    assert codes(wire.diagnostics(uri, version=2)) == ["KF103"]
    wire.save(uri)
    place = {"start": start, "end": start}
    params = {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": []}}
    assert wire.request("textDocument/codeAction", params)["result"] == []
    assert wire.shown()[shown:] == []  # nobody asked
    assert "result" in wire.command("kernelForge.verify", uri)
    assert wire.shown()[shown:] == [
        "Not verified: only a file on this machine can be verified; save the document as one first."
    ]
    wire.close(uri)
    untroubled(wire)


@pytest.mark.parametrize("uri", [*NO_FILES.values(), "file:///nowhere/never/opened.cu", "file:///no/x.forge.toml"])
def test_documents_that_were_never_opened(wire: Wire, uri: str) -> None:
    shown = len(wire.shown())
    wire.change(uri, {"text": RIGHT})
    wire.save(uri)
    wire.close(uri)
    document = {"uri": uri}
    place = {"line": 1, "character": 1}
    for method in ("hover", "completion", "codeLens", "codeAction"):
        params = {"textDocument": document, "position": place, "range": {"start": place, "end": place}}
        answer = wire.request(f"textDocument/{method}", {**params, "context": {"diagnostics": [], "triggerKind": 1}})
        assert not answer["result"]
    assert wire.shown()[shown:] == []
    untroubled(wire)


@pytest.mark.parametrize("arguments", [[], [None], ["file:///never/opened.cu"], ["file:///never/opened.cu", "k"]])
def test_verify_without_an_open_document_says_so(wire: Wire, arguments: list[object]) -> None:
    shown = len(wire.shown())
    assert wire.command("kernelForge.verify", *arguments)["result"] is None
    assert wire.shown()[shown:] == ["Open the file in the editor first."]
    assert wire.command("kernelForge.cancel", *arguments)["result"] is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a\nb.cu", "the file's path has a line break or another control character; rename it"),
        ("a\x1bb.cu", "the file's path has a line break or another control character; rename it"),
        ("a" * 5000 + ".cu", "the file's path cannot be used (File name too long)"),
    ],
    ids=["newline", "escape", "long"],
)
def test_a_name_that_no_tool_takes_is_told_once(wire: Wire, tmp_path: Path, name: str, reason: str) -> None:
    shown = len(wire.shown())
    uri = (tmp_path / name).as_uri()
    wire.open(uri, UNKNOWN_KEY)
    assert codes(wire.diagnostics(uri)) == ["KF103"]
    wire.command("kernelForge.verify", uri)
    assert wire.shown()[shown:] == [f"Not verified: {reason}."]
    untroubled(wire)


ODD = "a \"b\" 'c' \\d %41 \u00e9\U0001f680 ?x #y"


def test_other_odd_names_are_verified(wire: Wire, tmp_path: Path) -> None:
    # Every character that a compiler, a shell or a URI could take for its own, and a name that is not UTF-8.
    folder = tmp_path / ODD
    folder.mkdir()
    for name in (b"plain.cu", b"\xff\xfe.cu"):
        uri = (folder / name.decode("utf-8", "surrogateescape")).as_uri()
        (folder / "two.h").write_text("#define FACTOR 2\n", encoding="utf-8")
        wire.open(
            uri,
            RIGHT.replace("a * x[i];", "FACTOR * a * x[i];").replace("__global__", '#include "two.h"\n__global__', 1),
        )
        assert "result" in wire.command("kernelForge.verify", uri)
        found = wire.diagnostics(uri)
        assert codes(found) == ["KF301"], found  # twice the right value, so the header was found
        wire.close(uri)
    untroubled(wire)


def test_a_binary_text_edited_in_parts(wire: Wire) -> None:
    # By hand: the second line is "\U0001f680\0", its NUL is UTF-16 unit 2. The form feed ends no line.
    uri = "file:///nowhere/binary.cu"
    wire.open(uri, "int\fa;\r\n\U0001f680\0" + "\n" + UNKNOWN_KEY)
    assert codes(wire.diagnostics(uri, version=1)) == ["KF902"]
    place = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 0}}
    wire.change(uri, {"range": place, "text": "//"})
    assert codes(wire.diagnostics(uri, version=2)) == ["KF103"]
    place = {"start": {"line": 999, "character": 0}, "end": {"line": 0, "character": 0}}
    wire.change(uri, {"range": place, "text": "\0"}, {"text": UNKNOWN_KEY}, version=3)
    assert codes(wire.diagnostics(uri, version=3)) == ["KF103"]
    untroubled(wire)


def test_edits_that_overlap_go_one_after_the_other(wire: Wire) -> None:
    # The second edit counts in the text that the first one left: "blok" -> "xblok" -> "block".
    uri = "file:///nowhere/overlap.cu"
    wire.open(uri, UNKNOWN_KEY)
    assert codes(wire.diagnostics(uri, version=1)) == ["KF103"]
    lines = UNKNOWN_KEY.split("\n")
    line = next(i for i, text in enumerate(lines) if "blok" in text)
    column = lines[line].index("blok")

    def edit(start: int, end: int, text: str) -> Json:
        ends = [{"line": line, "character": column + at} for at in (start, end)]
        return {"range": {"start": ends[0], "end": ends[1]}, "text": text}

    wire.change(uri, edit(0, 0, "x"), edit(5, 0, "block"))
    assert codes(wire.diagnostics(uri, version=2)) == []
    untroubled(wire)


def test_a_lone_surrogate_in_the_text(wire: Wire, tmp_path: Path) -> None:
    uri = (tmp_path / "surrogate.cu").as_uri()
    wire.open(uri, "// \ud800\n" + RIGHT)
    wire.command("kernelForge.verify", uri)
    assert codes(wire.diagnostics(uri)) == []
    wire.close(uri)
    untroubled(wire)


@pytest.mark.parametrize("answer", [{"error": {"code": 1, "message": "no"}}, {"result": 5}, {"error": "no"}, {}])
def test_a_client_that_answers_nothing_sound(tmp_path: Path, answer: Json) -> None:
    with Wire(tmp_path / "stderr") as server:
        for method in ("workspace/configuration", "window/workDoneProgress/create", "workspace/codeLens/refresh"):
            server.answers[method] = answer
        server.initialize()
        uri = (tmp_path / "a.cu").as_uri()
        server.open(uri, RIGHT)
        server.command("kernelForge.verify", uri)
        lens = server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})["result"][0]
        assert "verified (emulated)" in lens["command"]["title"]
        assert server.shown() == [] and "Traceback" not in server.log()


def test_a_kernel_that_is_not_there(wire: Wire, tmp_path: Path) -> None:
    shown = len(wire.shown())
    uri = (tmp_path / "a.cu").as_uri()
    wire.open(uri, RIGHT)
    assert "result" in wire.command("kernelForge.verify", uri, "absent")
    assert wire.shown()[shown:] == ["Not verified: this file has no spec block of a kernel absent."]


def test_shutdown_while_a_command_runs(tmp_path: Path) -> None:
    with Wire(tmp_path / "stderr") as server:
        server.initialize()
        uri = (tmp_path / "endless.cu").as_uri()
        server.open(uri, RIGHT.replace("y[i] = a * x[i];", "while (true) y[i] = a * x[i];"))
        server.diagnostics(uri)
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "run",
                "method": "workspace/executeCommand",
                "params": {"command": "kernelForge.verify", "arguments": [uri]},
            }
        )
        server.send({"jsonrpc": "2.0", "id": "end", "method": "shutdown"})
        answers = {answer["id"]: answer for answer in (server.answer(), server.answer())}
        assert set(answers) == {"run", "end"}
        assert "result" in answers["end"]
        server.notify("exit", None)
        assert server.wait() == 0
        assert "Traceback" not in server.log()

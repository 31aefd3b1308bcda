"""The language server over stdio, driven by pytest-lsp."""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from kernel_forge.processes import descendants
from kernel_forge.wiring import cache_folder

HERE = Path(__file__).parent
CONFIG = ClientServerConfig(server_command=[sys.executable, "-m", "kernel_forge", "serve"])
RIGHT = (HERE / "scale.cu").read_text(encoding="utf-8")


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.split("\n")) if part in line)


async def initialize(client: LanguageClient, **options: object) -> None:
    capabilities = client_capabilities("visual-studio-code")

    @client.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)
    def refresh(_params: None = None) -> None:
        """Visual Studio Code would ask for the lenses again."""

    await client.initialize_session(
        lsp.InitializeParams(capabilities=capabilities, initialization_options=options or None)
    )


@pytest_lsp.fixture(config=CONFIG)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    await initialize(lsp_client)
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=CONFIG)
async def untrusted(lsp_client: LanguageClient) -> AsyncIterator[None]:
    await initialize(lsp_client, trusted=False)
    yield
    await lsp_client.shutdown_session()


def open_text(client: LanguageClient, path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    uri = path.as_uri()
    item = lsp.TextDocumentItem(uri=uri, language_id="cuda", version=1, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    return uri


def change_text(client: LanguageClient, uri: str, text: str, version: int) -> None:
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
            content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
        )
    )


def save(client: LanguageClient, uri: str) -> None:
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=uri)))


async def until(client: LanguageClient, uri: str, test: object, seconds: float = 60.0) -> list[lsp.Diagnostic]:
    """Diagnostics of ``uri`` once ``test`` holds for them."""
    assert callable(test)
    for _ in range(int(seconds / 0.02)):
        found = list(client.diagnostics.get(uri, []))
        if test(found):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"not reached: {client.diagnostics.get(uri)}")


def codes(diagnostics: list[lsp.Diagnostic]) -> list[object]:
    return [d.code for d in diagnostics]


def workers(among: Iterable[int] | None = None) -> set[int]:
    """Process ids of job workers below this process, or ``among`` others, wherever these are by now."""
    found = set()
    for pid in descendants(os.getpid()) if among is None else among:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"job-worker" in command:
            found.add(pid)
    return found


async def lens(client: LanguageClient, uri: str) -> str:
    params = lsp.CodeLensParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
    lenses = await client.text_document_code_lens_async(params)
    return " | ".join(found.command.title for found in lenses or () if found.command)


async def test_spec_error_at_its_range_in_utf16(client: LanguageClient, tmp_path: Path) -> None:
    # The rocket is two UTF-16 units; "shap" starts at code point 13 of its line, so at unit 14.

    text = RIGHT.replace('x = { shape = ["n"] }', 'x = { init = "🚀", shap = ["n"] }')
    uri = open_text(client, tmp_path / "a.cu", text)
    found = await until(client, uri, lambda ds: "KF103" in codes(ds))
    unknown = next(d for d in found if d.code == "KF103")
    line = text.split("\n")[unknown.range.start.line]
    assert unknown.range.start.character == len(line[: line.index("shap")].encode("utf-16-le")) // 2
    assert "shape" in unknown.message
    assert unknown.code_description is not None and unknown.code_description.href.endswith("KF103.md")


async def test_a_saved_bug_is_found_and_follows_the_text(client: LanguageClient, tmp_path: Path) -> None:
    wrong = RIGHT.replace("a * x[i];", "a + x[i];")
    uri = open_text(client, tmp_path / "b.cu", wrong)
    save(client, uri)
    found = await until(client, uri, lambda ds: "KF301" in codes(ds))
    bug = next(d for d in found if d.code == "KF301")
    assert bug.range.start.line == line_of(wrong, "a + x[i];")
    assert bug.related_information is not None
    places = {r.location.range.start.line for r in bug.related_information}
    assert line_of(wrong, "reference =") in places and line_of(wrong, "void scale(") in places
    assert "emulated" in await lens(client, uri)

    def insert(line: int, text: str, version: int) -> None:
        at = lsp.Position(line=line, character=0)
        change = lsp.TextDocumentContentChangePartial(range=lsp.Range(start=at, end=at), text=text)
        identifier = lsp.VersionedTextDocumentIdentifier(uri=uri, version=version)
        client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(text_document=identifier, content_changes=[change])
        )

    insert(0, "// above\n", 2)
    moved = await until(client, uri, lambda ds: ds and ds[0].range.start.line == bug.range.start.line + 1, 5)
    assert codes(moved) == ["KF301"]
    assert "changed since" in await lens(client, uri)
    insert(bug.range.start.line + 1, " ", 3)
    await until(client, uri, lambda ds: "KF301" not in codes(ds), 5)


async def test_the_newest_save_wins(client: LanguageClient, tmp_path: Path) -> None:
    endless = RIGHT.replace("y[i] = a * x[i];", "while (true) y[i] = a * x[i];")
    uri = open_text(client, tmp_path / "c.cu", endless)
    save(client, uri)
    await asyncio.sleep(1.0)
    change_text(client, uri, RIGHT, 2)
    save(client, uri)
    for _ in range(300):
        if "verified (emulated)" in await lens(client, uri):
            break
        await asyncio.sleep(0.02)
    title = await lens(client, uri)
    assert "verified (emulated)" in title and "changed" not in title
    assert codes(list(client.diagnostics[uri])) == []


async def test_cancel_stops_the_kernel_and_its_processes(client: LanguageClient, tmp_path: Path) -> None:
    endless = RIGHT.replace("y[i] = a * x[i];", "while (true) y[i] = a * x[i];")
    uri = open_text(client, tmp_path / "d.cu", endless)
    save(client, uri)
    for _ in range(200):
        if client.progress_reports:
            break
        await asyncio.sleep(0.02)
    for _ in range(1000):
        if _kernels_running():
            break
        await asyncio.sleep(0.02)
    token = next(iter(client.progress_reports))
    assert _kernels_running(), "the kernel should be running by now"
    client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token=token))
    for _ in range(100):
        if not _kernels_running():
            break
        await asyncio.sleep(0.02)
    assert not _kernels_running()
    for _ in range(100):  # the kernel is gone before the server has heard of it
        if "running" not in await lens(client, uri):
            break
        await asyncio.sleep(0.02)
    assert "not verified" in await lens(client, uri)


def _kernels_running() -> list[str]:
    """Kernels below this process: other tests run theirs beside, from the same cache."""
    folder_of_kernels = re.escape(str(cache_folder().resolve()))
    found = []
    for pid in descendants(os.getpid()):
        try:
            target = str(Path(f"/proc/{pid}/exe").readlink())
        except OSError:
            continue
        if re.search(rf"{folder_of_kernels}/.*artifacts/[0-9a-f]{{64}}/kernel$", target):
            found.append(target)
    return found


async def test_quick_fix_draft_hover_completion(client: LanguageClient, tmp_path: Path) -> None:
    text = RIGHT.replace("block = ", "blok = ")
    uri = open_text(client, tmp_path / "e.cu", text)
    found = await until(client, uri, lambda ds: "KF103" in codes(ds))
    unknown = next(d for d in found if d.code == "KF103")
    document = lsp.TextDocumentIdentifier(uri=uri)
    actions = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            text_document=document, range=unknown.range, context=lsp.CodeActionContext(diagnostics=[unknown])
        )
    )
    rename = next(a for a in actions or () if isinstance(a, lsp.CodeAction) and "block" in a.title)
    assert rename.is_preferred and rename.edit is not None and rename.edit.document_changes
    change_text(client, uri, RIGHT, 2)
    await until(client, uri, lambda ds: codes(ds) == [], 5)
    at = lsp.Position(line=line_of(RIGHT, "void shift("), character=20)
    drafts = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            text_document=document, range=lsp.Range(start=at, end=at), context=lsp.CodeActionContext(diagnostics=[])
        )
    )
    assert any(isinstance(a, lsp.CodeAction) and a.title.startswith("Add spec block for shift") for a in drafts or ())
    line = line_of(RIGHT, "// grid = ")
    hover = await client.text_document_hover_async(
        lsp.HoverParams(text_document=document, position=lsp.Position(line=line, character=4))
    )
    assert hover is not None and "Blocks per dimension" in hover.contents.value  # type: ignore[union-attr]
    items = await client.text_document_completion_async(
        lsp.CompletionParams(text_document=document, position=lsp.Position(line=line, character=3))
    )
    assert {"grid", "block", "shared"} <= {i.label for i in items or ()}  # type: ignore[union-attr]


async def test_nothing_runs_untrusted(untrusted: LanguageClient, tmp_path: Path) -> None:
    before = workers()
    wrong = RIGHT.replace("a * x[i];", "a + x[i];")
    uri = open_text(untrusted, tmp_path / "f.cu", wrong)
    save(untrusted, uri)
    params = lsp.ExecuteCommandParams(command="kernelForge.verify", arguments=[uri, "scale"])
    await untrusted.workspace_execute_command_async(params)
    await asyncio.sleep(0.5)
    assert workers() <= before
    assert "KF301" not in codes(list(untrusted.diagnostics.get(uri, [])))
    assert any("not trusted" in m.message for m in untrusted.messages)
    assert "not trusted" in await lens(untrusted, uri)


@pytest.mark.parametrize("text", ["int x;\0", "// " + "x" * (9 << 20)], ids=["binary", "9 MB"])
async def test_what_is_no_cuda_text_gives_one_diagnostic(client: LanguageClient, tmp_path: Path, text: str) -> None:
    uri = open_text(client, tmp_path / "g.cu", text)
    found = await until(client, uri, lambda ds: len(ds) > 0)
    assert codes(found) == ["KF902"]


async def test_a_sidecar_problem_lies_in_the_sidecar(client: LanguageClient, tmp_path: Path) -> None:
    kernels = HERE.parent / "kernels"
    shutil.copy(kernels / "cross_entropy.py", tmp_path)
    sidecar = (kernels / "cross_entropy.forge.toml").read_text(encoding="utf-8").replace("block = 64", "blocks = 64")
    (tmp_path / "cross_entropy.forge.toml").write_text(sidecar, encoding="utf-8")
    open_text(client, tmp_path / "cross_entropy.cu", (kernels / "cross_entropy.cu").read_text(encoding="utf-8"))
    uri = (tmp_path / "cross_entropy.forge.toml").as_uri()
    found = await until(client, uri, lambda ds: "KF103" in codes(ds))
    assert found[0].range.start.line == line_of(sidecar, "blocks = 64")


async def test_no_worker_survives_a_killed_server(tmp_path: Path) -> None:
    before = workers()
    server = await asyncio.create_subprocess_exec(
        *CONFIG.server_command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdin is not None
    for body in (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}',
        b'{"jsonrpc":"2.0","method":"initialized","params":{}}',
    ):
        server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    for _ in range(200):
        if workers() - before:
            break
        await asyncio.sleep(0.05)
    started = workers() - before
    assert started
    os.kill(server.pid, signal.SIGKILL)
    await server.wait()
    for _ in range(100):
        if not workers(started):
            break
        await asyncio.sleep(0.02)
    assert not workers(started)
    server._transport.close()  # type: ignore[attr-defined]

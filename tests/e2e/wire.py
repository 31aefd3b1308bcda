"""A client on the server's stdio that sends anything, also what no sound client would."""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


SERVE = (sys.executable, "-m", "kernel_forge", "serve")


class Wire:
    """One server process. ``received`` has every message from it; its standard error goes to ``log``.

    ``answers`` has what to answer to the server's own requests, by method; the others get null. Those of the
    method ``held`` are answered by :meth:`release`.
    """

    def __init__(self, log: Path, command: Sequence[str] = SERVE) -> None:
        self.received: list[Json] = []
        self.answers: dict[str, Json] = {}
        self.held: str | None = None
        self._held: list[Json] = []
        self._log = log
        self._answers: queue.Queue[Json | None] = queue.Queue()
        self._ids = 0
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def initialize(self, **options: object) -> Json:
        capabilities = {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"configuration": True, "codeLens": {"refreshSupport": True}},
            "window": {"workDoneProgress": True},
        }
        parameters = {"processId": None, "rootUri": None, "capabilities": capabilities}
        answer = self.request("initialize", {**parameters, "initializationOptions": options})
        self.notify("initialized", {})
        return answer

    def _read(self) -> None:
        out = self._process.stdout
        assert out is not None
        while header := out.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                header = out.readline()
            message = json.loads(out.read(length))
            self.received.append(message)
            if "method" not in message:
                self._answers.put(message)
            elif "id" in message and message["method"] == self.held:
                self._held.append(message)
            elif "id" in message:
                self._answer(message)
        self._answers.put(None)

    def _answer(self, message: Json) -> None:
        answer = self.answers.get(message["method"], {"result": None})
        self.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    def release(self) -> None:
        """Answer what was held, in the order in which it came; nothing is held any more."""
        self.held = None
        while self._held:
            self._answer(self._held.pop(0))

    def send(self, message: object) -> None:
        """Any JSON value, or bytes as the body of a message."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, message: Json, seconds: float = 30.0) -> Json:
        """The answer to a message as it stands."""
        self.send(message)
        return self.answer(seconds)

    def answer(self, seconds: float = 30.0) -> Json:
        """The next answer."""
        found = self._answers.get(timeout=seconds)
        assert found is not None, f"the server ended: {self.log()}"
        return found

    def request(self, method: str, params: object, seconds: float = 30.0) -> Json:
        """The answer (with ``result`` or ``error``) to a request."""
        self._ids += 1
        answer = self.ask({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}, seconds)
        assert answer["id"] == self._ids
        return answer

    def command(self, name: str, *arguments: object) -> Json:
        return self.request("workspace/executeCommand", {"command": name, "arguments": list(arguments)}, 60)

    def open(self, uri: str, text: str) -> None:
        item = {"uri": uri, "languageId": "cuda", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, *changes: Json, version: int = 2) -> None:
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    def save(self, uri: str) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, seconds: float = 30.0, *, version: int | None = None) -> list[Json]:
        """The newest diagnostics of ``uri``, once there are some of that version."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for message in reversed(self.received):
                params = message.get("params") or {}
                if message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri:
                    if version in (None, params.get("version")):
                        found: list[Json] = params["diagnostics"]
                        return found
                    break
            time.sleep(0.02)
        raise AssertionError(f"no diagnostics of {uri!r}: {self.log()}")

    def shown(self) -> list[str]:
        """Messages shown to the person so far."""
        return [m["params"]["message"] for m in self.received if m.get("method") == "window/showMessage"]

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> int:
        """The exit code after an orderly end."""
        with contextlib.suppress(OSError):
            self.request("shutdown", None)
            self.notify("exit", None)
        return self.wait()

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        return self._process.wait(30)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes the pipes
            self._process.kill()
            self._reader.join(30)

"""``scripts/bench source`` and ``scripts/bench server``: times of the parser and of the language server."""

import argparse
import json
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNEL = """
// /// kernel-forge
// kernel = "k{i}"
// reference = {{ y = "x * 2" }}
// cases = [{{ n = 1000 }}]
//
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
//
// [launch]
// grid = "cdiv(n, 128)"
// block = 128
// ///
__global__ void k{i}(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
{body}  if (i < n) y[i] = 2.0f * x[i];
}}
"""


def large_source(kernels: int = 200, lines: int = 10_000) -> str:
    """A file of that many kernels with specs and about that many lines."""
    filler = lines // kernels - KERNEL.count("\n") + 1
    body = "".join(f"  float v{j} = x[i % n] * {j}.0f + threadIdx.x;\n" for j in range(filler))
    return "".join(KERNEL.format(i=i, body=body) for i in range(kernels))


def measure_source() -> dict[str, float]:
    """Milliseconds to parse the large file, and to read its kernels again after one typed character."""
    from kernel_forge.domain.text import Position, Range
    from kernel_forge.source import parse

    text = large_source()
    parses, edits = [], []
    for _ in range(7):
        start = time.perf_counter()
        source = parse(text, "large.cu")
        _ = source.kernels
        parses.append(time.perf_counter() - start)
    _ = source.kernels, source.blocks
    for n in range(21):
        at = Position(5000, 4)
        start = time.perf_counter()
        source = source.edit(Range(at, at), " " if n % 2 else "a")
        _ = source.kernels
        edits.append(time.perf_counter() - start)
    return {
        "lines": text.count("\n"),
        "parse_ms": 1000 * statistics.median(parses),
        "edit_ms": 1000 * statistics.median(edits),
    }


class Client:
    """A language client that speaks just enough of the protocol."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "kernel_forge", "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.answers: dict[int, queue.Queue[Any]] = {}
        self.diagnostics: queue.Queue[Any] = queue.Queue()
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not line:
                return
            message = json.loads(self.process.stdout.read(length))
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif "id" in message:
                self.answers[message["id"]].put(message)
            elif message.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics.put(message["params"])

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: object) -> Any:
        """Send a request and wait for its result."""
        self.number += 1
        number = self.number
        self.answers[number] = queue.Queue()
        self._send({"id": number, "method": method, "params": params})
        answer = self.answers[number].get(timeout=60)
        del self.answers[number]
        return answer.get("result")

    def start(self) -> None:
        """Initialize."""
        self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.notify("initialized", {})

    def open(self, path: Path, text: str) -> str:
        """Open a document."""
        uri = path.as_uri()
        item = {"uri": uri, "languageId": "cuda", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def close(self) -> None:
        """Shut the server down."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(30)


def measure_server() -> dict[str, float]:
    """Seconds from start to initialized, seconds from a save to its diagnostic, milliseconds of hovers under load."""
    starts = []
    for _ in range(5):
        begin = time.perf_counter()
        client = Client()
        client.start()
        starts.append(time.perf_counter() - begin)
        client.close()
    folder = Path(tempfile.mkdtemp(prefix="kernel-forge-bench-"))
    try:
        saves = _saves(folder)
        hovers = _hovers(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    hovers.sort()
    return {
        "start_s": statistics.median(starts),
        "save_to_diagnostic_s": statistics.median(saves),
        "hover_p50_ms": 1000 * hovers[len(hovers) // 2],
        "hover_p99_ms": 1000 * hovers[int(len(hovers) * 0.99)],
    }


def _saves(folder: Path) -> list[float]:
    path = folder / "scale.cu"
    right = (ROOT / "tests/e2e/scale.cu").read_text(encoding="utf-8")
    client = Client()
    client.start()
    uri = client.open(path, right)
    version = 1
    times = []
    for n in range(11):
        version += 1
        wrong = right.replace("a * x[i]", f"a * x[i] + {n + 1}.0f")
        change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": wrong}]}
        client.notify("textDocument/didChange", change)
        time.sleep(0.5)
        while not client.diagnostics.empty():
            client.diagnostics.get()
        begin = time.perf_counter()
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        while True:
            params = client.diagnostics.get(timeout=60)
            if any(d.get("code") == "KF301" for d in params["diagnostics"]):
                break
        times.append(time.perf_counter() - begin)
    client.close()
    return times[1:]  # the first one builds the emulator where the cache is empty


def _hovers(folder: Path) -> list[float]:
    client = Client()
    client.start()
    text = large_source()
    path = folder / "large.cu"
    uri = client.open(path, text)
    client.diagnostics.get(timeout=60)
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})  # verifies 200 kernels meanwhile
    time.sleep(1.0)
    line = next(i for i, content in enumerate(text.split("\n")) if "void k100(" in content)
    column = text.split("\n")[line].index("k100") + 1
    times = []
    for _ in range(500):
        begin = time.perf_counter()
        hover = client.request(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        )
        times.append(time.perf_counter() - begin)
        assert hover and "k100" in json.dumps(hover)
        time.sleep(0.01)
    client.process.kill()
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("what", choices=["source", "server"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure_source() if options.what == "source" else measure_server()
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:24} {value:.3g}")


if __name__ == "__main__":
    main()

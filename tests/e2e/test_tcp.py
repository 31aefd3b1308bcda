"""``serve --tcp``: however a client ends, the server ends too, and prints no traceback."""

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.test_tuning import SCALE

INITIALIZE = {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}


class Client:
    """A socket to a server of its own."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = free.getsockname()
        command = (sys.executable, "-m", "kernel_forge", "serve", "--tcp", "{}:{}".format(*self.address))
        self.server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.socket = self.connect()

    def connect(self) -> socket.socket:
        end = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(self.address, 10)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """The next message of the server, after this one of ours."""
        self.send(message)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        length, body = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]), b""
        while len(body) < length:
            body += self.socket.recv(length - len(body))
        found: dict[str, Any] = json.loads(body)
        return found

    def end(self) -> tuple[int, str]:
        """The server's exit code and what it printed."""
        self.socket.close()
        printed = self.server.communicate(timeout=20)[1]
        return self.server.returncode, printed


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.socket.close()
    if made.server.poll() is None:
        made.server.kill()
        made.server.communicate()


def reset(client: Client) -> None:
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def shut_down(client: Client) -> None:
    assert client.request({"id": 2, "method": "shutdown"})["result"] is None
    client.send({"method": "exit"})


def work(client: Client) -> None:
    client.send({"method": "initialized", "params": {}})
    document = {"uri": "file:///nowhere/a.cu", "languageId": "cuda", "version": 1, "text": SCALE}
    client.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    client.send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": document["uri"]}}})
    time.sleep(0.5)
    reset(client)


ENDS: dict[str, Callable[[Client], object]] = {
    "an orderly end": shut_down,
    "closed": lambda client: None,
    "reset": reset,
    "closed within a message": lambda client: client.socket.sendall(b"Content-Length: 100\r\n\r\n{"),
    "a header without an end": lambda client: client.socket.sendall(b"x" * 200_000),
    "reset at work": work,
}


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_the_client_is_the_servers(client: Client, how: str) -> None:
    assert "capabilities" in client.request(INITIALIZE)["result"]
    ENDS[how](client)
    code, printed = client.end()
    assert (code, "Traceback" in printed) == (0, False), printed


def test_a_second_client_is_refused_and_the_first_is_served(client: Client) -> None:
    client.request(INITIALIZE)
    with client.connect() as second:
        assert second.recv(1) == b""  # closed
    assert client.request({"id": 2, "method": "shutdown"})["result"] is None


def test_a_port_in_use_is_wrong_use(client: Client) -> None:
    where = "{}:{}".format(*client.address)
    command = (sys.executable, "-m", "kernel_forge", "serve", "--tcp", where)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert ended.stderr == f"kernel-forge: --tcp {where} cannot be listened on: Address already in use\n"

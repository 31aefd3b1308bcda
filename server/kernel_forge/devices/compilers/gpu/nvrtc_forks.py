"""Child process: loads NVRTC once, and forks for every job that comes over a socket. Imports little, as its forks do.

To load the library and to use it for the first time takes as long as to compile a small kernel. A fork has both behind
it, and is still a process of its own, which may crash, hang or be killed.

Arguments: the number of an inherited socket, the library, and folders of headers. Each message on the socket brings two
descriptors: a stream on which a job comes and a line break and the answer go (see ``nvrtc_child``; ``time_limit`` is in
seconds), and where the fork writes errors to. When the socket ends, all processes end. After a while without work this
one ends by itself.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator

from kernel_forge.devices.compilers.nvrtc_child import compiled
from kernel_forge.processes import end_after, end_with_parent, give_way

IDLE_SECONDS = 60.0
BEGUN = b"\n"
"""Goes before an answer: a job without it has not begun, and can be given to another."""
_FIRST = {
    "text": "__global__ void k(float* x) { x[0] = 1; }",
    "name": "first.cu",
    "expressions": ["k"],
    "image": os.devnull,
    "headers": {},
    "dropped": [],
    "flags": [],
    "defines": {},
}


def main() -> None:
    """Serve until the socket ends."""
    give_way()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    jobs = socket.socket(fileno=int(sys.argv[1]))
    library = sys.argv[2]
    with contextlib.suppress(OSError, AttributeError):  # whoever asks is told the same
        compiled(ctypes.CDLL(library), {**_FIRST, "includes": sys.argv[3:]})
    for stream, errors in _descriptors(jobs):
        if os.fork() == 0:
            try:
                end_with_parent()
                os.dup2(errors, 2)
                _answer(library, socket.socket(fileno=stream))
            finally:  # not the way of the process that forked
                os._exit(0)
        os.close(stream)
        os.close(errors)


def _descriptors(jobs: socket.socket) -> Iterator[tuple[int, int]]:
    jobs.settimeout(IDLE_SECONDS)
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(jobs, 1, 2)
        except TimeoutError:
            if _has_forks():
                continue
            return
        if not message:
            os.killpg(0, signal.SIGKILL)
        yield descriptors[0], descriptors[1]


def _has_forks() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _answer(library: str, stream: socket.socket) -> None:
    with stream, stream.makefile("rb") as read:
        job = json.load(read)
        end_after(job["time_limit"])
        stream.sendall(BEGUN)
        try:
            stream.sendall(json.dumps(compiled(ctypes.CDLL(library), job)).encode())
        except Exception:
            traceback.print_exc()  # while the stream is open: when it ends, all is read


if __name__ == "__main__":
    main()

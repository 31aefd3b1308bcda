"""Child process: run commands one after the other and let nothing outlive them. Uses the standard library alone.

Arguments: for each command the number of its words, then the words. Started as the leader of a process group that
every compiler pass joins. The group is killed, this process with it, when the last command has ended, and when the
standard input is closed: its other end belongs to the caller, so that the caller's death closes it too.
Output: the exit status of the last command that ran, as text.
"""

import os
import select
import signal
import sys


def main() -> None:
    """Run the commands until one fails; never returns."""
    os.nice(10)  # whoever measures meanwhile goes first, as with kernel_forge.processes.give_way
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    words = sys.argv[1:]
    status = 0
    while words and status == 0:
        count = int(words[0])
        status = _run(words[1 : count + 1], woken)
        words = words[count + 1 :]
    os.write(1, str(status).encode())
    os.killpg(0, signal.SIGKILL)


def _run(command: list[str], woken: int) -> int:
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    try:
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        return 127
    finally:
        os.close(null)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([0, woken], [], [])
        if 0 in ready:
            os.killpg(0, signal.SIGKILL)
        os.read(woken, 4096)


if os.getpgrp() == os.getpid():  # never kill a group that is not ours
    main()

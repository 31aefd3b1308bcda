"""Resource usage from what ptxas says with ``-v``, the same through nvcc and NVRTC."""

import re

from kernel_forge.domain.resources import Resources

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def read_resources(log: str) -> dict[str, Resources]:
    """Linker name of each kernel -> its resources."""
    found: dict[str, Resources] = {}
    entry: re.Match[str] | None = None
    frame = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, frame = match, (0, 0, 0)
        elif match := _FRAME.search(line):
            # Lines about device functions that were not inlined have no "Used" line and follow their own header.
            frame = (int(match[1]), int(match[2]), int(match[3]))
        elif entry is not None and (match := _USED.search(line)):
            shared = _SHARED.search(line)
            found[entry["name"]] = Resources(int(match[1]), int(shared[1]) if shared else 0, *frame, entry["arch"])
            entry = None
    return found

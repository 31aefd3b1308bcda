"""Takes absolute paths out of a text: they name users, machines and projects."""

import re
from functools import cache
from pathlib import Path

REPLACEMENT = "<path>"

_USUAL = (
    "Applications Library System Users Volumes bin dev etc home lib media mnt opt private proc root run srv tmp usr var"
)


def without_paths(text: str) -> str:
    """``text`` with each absolute path (POSIX, Windows, of a share, below ``~``) replaced by ``<path>``.

    A POSIX path is one that begins at a folder of this machine's root or a usual one, so that divisions stay whole.
    """
    return _absolute().sub(REPLACEMENT, text)


@cache
def _absolute() -> re.Pattern[str]:
    try:
        here = {entry.name for entry in Path("/").iterdir() if entry.is_dir()}
    except OSError:
        here = set()
    roots = "|".join(re.escape(name) for name in sorted({*here, *_USUAL.split()}, key=len, reverse=True))
    start = rf"(?:/(?:{roots})(?=[/\"'<>\s:;,)]|$)|~/(?=\w)|[A-Za-z]:[\\/](?=\w\w|\\)|\\\\[\w.-]+\\(?=\w))"
    # In quotes or angle brackets a path may hold spaces, up to the end of them; elsewhere it ends at one.
    quoted = rf"(?<=[\"'<]){start}[^\"'<>\n]*"
    plain = rf"(?<![\w.)\]/\\])(?:file://)?{start}[^\s\"'<>:;,(){{}}\[\]`|]*"
    option = rf"(?<=-[ILo]){start}[^\s\"'<>:;,]*"
    return re.compile(f"{quoted}|{plain}|{option}", re.MULTILINE)

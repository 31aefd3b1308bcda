"""Adds the version and hash of every changed prompt to ``prompts/lock.toml``; ``--check`` only says what is wrong.

A version that is in the lock keeps its hash for ever: kernels on record name it.
"""

import argparse
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from kernel_forge.generate.prompts import Prompt, read_prompts

FOLDER = Path(__file__).resolve().parent.parent / "prompts"
HEAD = """\
# Version = hash of every prompt, written by scripts/lock_prompts.py. Lines are added and never changed.
"""
Lock = Mapping[str, Mapping[str, str]]
"""Prompt -> version -> hash."""


def problems(prompts: Mapping[str, Prompt], lock: Lock) -> list[str]:
    """What keeps the lock from being renewed: a text changed without its version, a version that fell or skipped."""
    found = []
    for prompt in prompts.values():
        versions = lock.get(prompt.id, {})
        latest = max(map(int, versions), default=0)
        locked = versions.get(str(prompt.version))
        if prompt.version < latest:
            found.append(f"{prompt.id}: its version is {prompt.version}, and {latest} is in the lock already")
        elif locked is not None and locked != prompt.hash:
            found.append(
                f"{prompt.id}: its text changed and its version did not: "
                f"make it {latest + 1}, with a line in its changelog"
            )
        elif prompt.version > latest + 1:
            found.append(f"{prompt.id}: its version is {prompt.version}; the next is {latest + 1}")
    found += [f"{name}: is in the lock and has no file" for name in sorted(lock.keys() - prompts.keys())]
    return found


def renewed(prompts: Mapping[str, Prompt], lock: Lock) -> Lock:
    """The lock with the present versions added."""
    return {name: {**lock.get(name, {}), str(p.version): p.hash} for name, p in sorted(prompts.items())}


def text_of(lock: Lock) -> str:
    """The lock as TOML."""
    tables = [f"[{name}]\n" + "".join(f'{v} = "{h}"\n' for v, h in rows.items()) for name, rows in lock.items()]
    return "\n".join([HEAD, *tables])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the lock is not up to date")
    options = parser.parse_args()
    path = FOLDER / "lock.toml"
    lock: Lock = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    prompts = read_prompts(FOLDER)
    found = problems(prompts, lock)
    if not found and options.check and renewed(prompts, lock) != lock:
        found = ["a new version is not in the lock: python scripts/lock_prompts.py"]
    if found:
        print("\n".join(found), file=sys.stderr)
    elif not options.check:
        path.write_text(text_of(renewed(prompts, lock)), encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""The hardware table ``kb/hardware.toml``."""

import tomllib
from collections.abc import Mapping
from functools import cache

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.resources import kb_folder

_KIB = 1024


def known_capabilities() -> tuple[tuple[int, int], ...]:
    """The compute capabilities of the table, rising."""
    return tuple(sorted(_table()))


def limits_of(capability: tuple[int, int]) -> HardwareLimits:
    """The limits of a compute capability.

    Raises:
        UsageError: the table does not have it; its numbers are never guessed from a neighbour's.
    """
    table = _table()
    if capability not in table:
        known = ", ".join(f"{major}.{minor}" for major, minor in sorted(table))
        raise UsageError(f"nothing is known of compute capability {capability[0]}.{capability[1]} (known: {known})")
    return table[capability]


@cache
def _table() -> Mapping[tuple[int, int], HardwareLimits]:
    text = (kb_folder() / "hardware.toml").read_text(encoding="utf-8")
    rows: dict[str, dict[str, int]] = tomllib.loads(text)["capability"]
    return {key: _limits(key, row) for name, row in rows.items() for key in [_capability(name)]}


def _capability(name: str) -> tuple[int, int]:
    major, _, minor = name.partition(".")
    return int(major), int(minor)


def _limits(capability: tuple[int, int], row: Mapping[str, int]) -> HardwareLimits:
    return HardwareLimits(
        capability,
        row["threads"],
        row["blocks"],
        row["registers"],
        row["shared_kib"] * _KIB,
        row["threads_per_block"],
        row["registers_per_block"],
        row["shared_kib_per_block"] * _KIB,
        row["cluster_blocks"],
    )

"""Where the key to a provider comes from: the environment or the system's keyring, never a file of a workspace."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

VARIABLE = "ANTHROPIC_API_KEY"
SERVICE = "kernel-forge"
USER = "anthropic"


class _Keyring(Protocol):
    def get_password(self, service: str, user: str) -> str | None: ...


def find_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """The key, or None where there is none. The keyring is asked where ``keyring`` is installed."""
    key = environment.get(VARIABLE, "").strip()
    if key:
        return key
    try:
        keyring = cast(_Keyring, import_module("keyring"))
    except ImportError:
        return None
    try:
        return keyring.get_password(SERVICE, USER) or None
    except Exception:  # its back ends raise what they like; a locked or absent one has no key for us
        return None

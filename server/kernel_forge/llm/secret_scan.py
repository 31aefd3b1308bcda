"""Finds likely secrets in a text, with the detectors of detect-secrets, used as a library and without its settings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector

# A public address is no secret, and version numbers look like one.
_LEFT_OUT = frozenset({"IPPublicDetector"})

# The detector of keywords goes by the file's ending: one where values stand in quotes, and one where they do not.
_FILES = ("text", "text.ini")


class ModelProviderKey(RegexBasedDetector):
    """Keys of model providers and hubs that the library does not know."""

    secret_type = "Model provider key"
    denylist = (
        re.compile(r"sk-ant-[\w-]{16,}"),
        re.compile(r"sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{32,}"),
        re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
        re.compile(r"\bAIza[\w-]{35}"),
    )


@dataclass(frozen=True, slots=True)
class Leak:
    """A likely secret: the line (from 1) and what it looks like, never the secret itself."""

    line: int
    kind: str


def scan(text: str) -> tuple[Leak, ...]:
    """The likely secrets of ``text``, by line. Comments that ask a scanner to look away change nothing."""
    found = {
        Leak(number, str(secret.type))
        for number, line in enumerate(text.splitlines(), 1)
        for detector in _detectors()
        for name in _FILES
        for secret in detector.analyze_line(filename=name, line=line, line_number=number)
    }
    return tuple(sorted(found, key=lambda leak: (leak.line, leak.kind)))


@cache
def _detectors() -> tuple[BasePlugin, ...]:
    # Called directly: the library's own scan honours comments that exempt a line, and its settings are global.
    known: Iterable[type[BasePlugin]] = get_mapping_from_secret_type_to_class().values()
    return (*(plugin() for plugin in known if plugin.__name__ not in _LEFT_OUT), ModelProviderKey())

"""Front matter: a table in TOML between two lines ``+++`` at the top of a text file."""

import re
import tomllib
from typing import Any

_FORM = re.compile(r"\+\+\+\n(?P<table>.*?\n)\+\+\+\n(?P<body>.*)", re.DOTALL)


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The table and what follows it; lines end with ``\\n``.

    Raises:
        ValueError: the text does not begin with front matter, or that is no TOML.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("it does not begin with TOML between two lines +++")
    try:
        return tomllib.loads(found["table"]), found["body"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"its front matter is no TOML: {error}") from None

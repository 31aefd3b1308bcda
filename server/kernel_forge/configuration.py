"""The user's configuration file, as TOML; each reader knows its own tables."""

import tomllib
from pathlib import Path
from typing import Any

from kernel_forge.domain.errors import UsageError


def read_configuration(file: Path) -> dict[str, Any]:
    """The tables of ``file``; none where there is no file.

    Raises:
        UsageError: it cannot be read; the message names it.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits
        raise UsageError(f"{file}: {error}") from None

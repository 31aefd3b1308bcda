"""Whether runs are recorded: ``KERNEL_FORGE_LEDGER``, else the user's configuration file.

```toml
[ledger]
enabled = false
```
"""

from collections.abc import Mapping
from pathlib import Path

from kernel_forge.configuration import read_configuration
from kernel_forge.domain.errors import UsageError

VARIABLE = "KERNEL_FORGE_LEDGER"
_WORDS = {"": True, "on": True, "1": True, "off": False, "0": False}


def is_recording(environment: Mapping[str, str], file: Path) -> bool:
    """Whether to record; the variable goes before the ``file``, which need not exist.

    Raises:
        UsageError: neither can be understood; the message names which.
    """
    if VARIABLE in environment:
        word = environment[VARIABLE]
        if word.lower() not in _WORDS:
            raise UsageError(f"{VARIABLE}={word}: write on or off")
        return _WORDS[word.lower()]
    table = read_configuration(file).get("ledger", {})
    if not isinstance(table, dict) or not table.keys() <= {"enabled"}:
        raise UsageError(f"{file}: [ledger] has one key, enabled")
    enabled = table.get("enabled", True)
    if not isinstance(enabled, bool):
        raise UsageError(f"{file}: [ledger]: enabled is true or false")
    return enabled

"""The user's configuration file, as far as all its readers are concerned."""

from pathlib import Path

import pytest

from kernel_forge.configuration import read_configuration
from kernel_forge.domain.errors import UsageError


def test_its_tables(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert read_configuration(file) == {}
    file.write_text("[ledger]\nenabled = false\n")
    assert read_configuration(file) == {"ledger": {"enabled": False}}


@pytest.mark.parametrize("content", [b"[a", b"a = \xff", b"a = " + b"9" * 5000, b"a = " + b"[" * 5000])
def test_what_cannot_be_read_names_the_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"config\.toml"):
        read_configuration(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_configuration(tmp_path)

"""Which URIs name a file here (RFC 8089: an empty host or localhost is this machine)."""

import pytest

from kernel_forge.lsp.convert import is_file_path, path_of, unverifiable, uri_of


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/c.cu", "/a b/c.cu"),
        ("file://localhost/a.cu", "/a.cu"),
        ("file:/a.cu", "/a.cu"),
        ("file:///%ff.cu", "/\udcff.cu"),  # how Python names the byte FF
    ],
)
def test_files(uri: str, path: str) -> None:
    assert path_of(uri) == path and is_file_path(path)
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize(
    "uri",
    ["", "file:", "file:///", "file:///tmp/", "file:///x%00y.cu", "file://host/a.cu", "http://[a", "a.cu", "\ud800"],
)
def test_what_is_no_file_is_its_own_name(uri: str) -> None:
    assert path_of(uri) == uri and not is_file_path(uri)
    assert unverifiable(uri) is not None


def test_a_file_that_is_not_there_yet_can_be_verified() -> None:
    assert unverifiable("/nowhere/new.cu") is None

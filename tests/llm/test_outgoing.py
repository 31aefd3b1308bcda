"""Nothing leaves with a path or a likely secret in it."""

from pathlib import Path

import pytest

from kernel_forge.domain.model import FailureKind, ModelFailure, ModelRequest, Part, PartKind
from kernel_forge.llm import Outgoing, outgoing
from kernel_forge.llm.paths import without_paths
from kernel_forge.llm.secret_scan import scan


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/ann/x.cu:3: error", "<path>:3: error"),
        ('#include "/home/ann lee/x.h"', '#include "<path>"'),
        ("file:///Users/bob/k.cu", "<path>"),
        ("-I/usr/include -L/opt/x", "-I<path> -L<path>"),
        (r"C:\Users\ann\k.cu(3)", "<path>(3)"),
        (r"\\server\share\x", "<path>"),
        ("~/code/k.cu", "<path>"),
        ("in (/root), twice: /tmp", "in (<path>), twice: <path>"),
    ],
)
def test_absolute_paths_are_replaced(text: str, clean: str) -> None:
    assert without_paths(text) == clean


def test_a_folder_that_only_this_machine_has_is_known() -> None:
    top = next(entry.name for entry in Path("/").iterdir() if entry.is_dir())
    assert without_paths(f"see /{top}/deep/x.cu") == "see <path>"


@pytest.mark.parametrize(
    "text",
    [
        "y = a /n/m + b/c; z = a/ (b)/2; w = ~b/c;",
        "x / tmp",
        "sum(x)/tmp/2",
        "https://docs.nvidia.com/home/x",
        "#include <cuda/std/x>",
        "src/home/x and ./tmp/a and ../usr/b",
        r'printf("x:\n%d\\n\\t", a);',
    ],
)
def test_code_and_relative_paths_stay_as_they_are(text: str) -> None:
    assert without_paths(text) == text


# Made up for this test, in the form of the real ones.
SECRETS = [
    ("AKIAIOSFODNN7EXAMPLE", "AWS Access Key"),
    ("-----BEGIN RSA PRIVATE KEY-----", "Private Key"),
    ("ghp_" + "a1B2" * 9, "GitHub Token"),
    ("sk-ant-api03-" + "abcd" * 6, "Model provider key"),
    ("export DB_PASSWORD=abcd1234efgh", "Secret Keyword"),
    ('api_key = "abc123"', "Secret Keyword"),
    ('x = "q7Xk2LmZ9vR4tWbN8cYpHs3D"', "Base64 High Entropy String"),
    ("AKIAIOSFODNN7EXAMPLE  # pragma: allowlist secret", "AWS Access Key"),
]


@pytest.mark.parametrize(("line", "kind"), SECRETS)
def test_a_secret_stops_the_request_and_is_not_repeated(line: str, kind: str) -> None:
    for part in (PartKind.BRIEF, PartKind.KERNEL, PartKind.KNOWLEDGE):
        got = outgoing(ModelRequest("", (Part(part, f"one\ntwo\n{line}"),)))
        assert isinstance(got, ModelFailure) and got.kind is FailureKind.SECRET
        assert f"{part.value}, line 3: {kind}" in got.reason
        assert line.split("=")[-1].strip(' "') not in got.reason


def test_a_secret_in_the_system_text_in_the_stable_parts_or_in_a_path_is_found_too() -> None:
    key = SECRETS[0][0]
    brief = (Part(PartKind.BRIEF, "x"),)
    for request in (
        ModelRequest(key, brief),
        ModelRequest("", brief, (Part(PartKind.KNOWLEDGE, key),)),
        ModelRequest("", (Part(PartKind.KERNEL, f"/home/ann/{key}/x.cu"),)),
    ):
        assert isinstance(outgoing(request), ModelFailure)


def test_our_kernels_and_pages_are_no_secrets() -> None:
    top = Path(__file__).parents[2]
    files = [*(top / "kb").rglob("*.*"), *(top / "tests" / "kernels").glob("*.*")]
    assert len(files) > 20
    assert {file.name: found for file in files if (found := scan(file.read_text(encoding="utf-8")))} == {}


def test_only_texts_are_cleaned_and_all_else_stays() -> None:
    request = ModelRequest("in /home/ann", (Part(PartKind.SPEC, "a"),), (Part(PartKind.KERNEL, "/tmp/x"),))
    got = outgoing(request)
    assert isinstance(got, Outgoing)
    assert got.text == "--- system\nin <path>\n--- kernel\n<path>\n--- spec\na\n"

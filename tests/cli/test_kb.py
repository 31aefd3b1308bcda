"""``kernel-forge kb search`` and ``kernel-forge kb show``."""

import json

import pytest

from kernel_forge.cli.main import Adapters, run
from kernel_forge.knowledge import patterns

# The command asks nothing of the outside world.
NOTHING: Adapters = None  # type: ignore[assignment]


def forge(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["kb", *arguments], NOTHING)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_search_prints_the_best_page_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = forge(capsys, "search", "bank", "conflicts", "--limit", "3")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 3)
    page = patterns()["bank-conflicts"]
    assert lines[0].split(None, 1) == ["bank-conflicts", f"{page.title}. {page.when}"]


def test_a_search_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = forge(capsys, "search", "copies", "--architecture", "sm_75", "--operator", "gemm", "--json")
    report = json.loads(out)
    assert (code, report["schema"], report["query"]) == (0, 1, "copies")
    assert report["pages"]
    assert all("gemm" in page["operators"] for page in report["pages"])
    assert {page["architectures"]["from"] for page in report["pages"]} == {"7.0"}
    scores = [page["score"] for page in report["pages"]]
    assert scores == sorted(scores, reverse=True)


def test_nothing_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert forge(capsys, "search", "zeppelin") == (0, "no page fits; fewer or other words may find one\n", "")
    assert json.loads(forge(capsys, "search", "zeppelin", "--json")[1])["pages"] == []


def test_all_pages(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = forge(capsys, "search", "--limit", "0")
    assert [line.split()[0] for line in out.splitlines()] == sorted(patterns())


def test_a_page_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = forge(capsys, "show", "bulk-copy-tma")
    page = patterns()["bulk-copy-tma"]
    assert code == 0
    assert out.startswith(f"# {page.title}\n\nWhen: {page.when}\nOperators: attention, ")
    assert "\nArchitectures: sm_90 and later\n" in out
    assert page.text in out
    assert f"- {page.evidence[0]}\n" in out
    assert "Operators: every operator\n" in forge(capsys, "show", "coalesced-access")[1]


def test_a_page_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    page = json.loads(forge(capsys, "show", "online-softmax", "--json")[1])["page"]
    assert page["id"] == "online-softmax"
    assert page["text"] == patterns()["online-softmax"].text
    assert page["evidence"] == list(patterns()["online-softmax"].evidence)


def test_the_page_of_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = forge(capsys, "show", "KF405")
    assert code == 0
    assert out.startswith("# KF405: Write past a buffer\n")
    page = json.loads(forge(capsys, "show", "KF405", "--json")[1])["page"]
    assert (page["id"], page["title"], page["text"] + "\n") == ("KF405", "Write past a buffer", out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "nothing-of-the-kind"), "there is no page nothing-of-the-kind"),
        (("show", "KF999"), "there is no page KF999"),
        (("search", "x", "--architecture", "hopper"), "hopper is no architecture; write sm_90 or 9.0"),
        (("search", "x", "--operator", "fft"), "fft is no operator; operators are activation"),
        ((), "required: action"),
    ],
)
def test_wrong_use(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    code, out, err = forge(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err

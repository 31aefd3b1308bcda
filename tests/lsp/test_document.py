"""Verdicts belong to kernels, and age when what they depend on changes."""

from lsprotocol import types as lsp

from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import Passed, Verdict
from kernel_forge.domain.text import Position, Range
from kernel_forge.jobs.requests import FileReport
from kernel_forge.lsp.document import Document
from kernel_forge.lsp.encoding import Encoding
from kernel_forge.lsp.features.verification import _take
from kernel_forge.spec import read_specs

BLOCK = """// /// kernel-forge
// kernel = "%s"
// reference = { y = "x" }
// cases = [{ n = 10 }]
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// [launch]
// grid = 1
// block = 32
// ///
__global__ void %s(const float* x, float* y, int n) { y[0] = same(x[0]); }
"""
TEXT = "__device__ float same(float v) { return v; }\n" + BLOCK % ("a", "a") + BLOCK % ("b", "b")


def verdict(kernel: str) -> Verdict:
    return Verdict(kernel, "/a.cu", Passed(1, 1), {}, 1, "emulator", "emulated")


def document(*kernels: str) -> Document:
    made = Document("file:///a.cu", "/a.cu", 1, TEXT)
    made.reading = read_specs(made.source, None)
    assert [s.kernel for s in made.reading.specs] == ["a", "b"]
    if kernels:
        _take(made, made.start("waiting", None), FileReport((), tuple(map(verdict, kernels))))
    return made


def change(made: Document, old: str, new: str) -> None:
    text = made.source.text.replace(old, new, 1)
    assert text != made.source.text
    whole = lsp.TextDocumentContentChangeWholeDocument(text=text)
    made.apply([whole], made.version + 1, Encoding.UTF16)


def test_typing_in_one_kernel_leaves_the_others_verdict() -> None:
    made = document("a", "b")
    change(made, "b(const float* x, float* y, int n) { y[0]", "b(const float* x, float* y, int n) { y[1]")
    assert not made.is_stale("a")
    assert made.is_stale("b")
    change(made, "y[1]", "y[0]")
    assert not made.is_stale("b")


def test_what_kernels_share_ages_all_of_them() -> None:
    made = document("a", "b")
    change(made, "return v;", "return v + 1;")
    assert made.is_stale("a")
    assert made.is_stale("b")


def test_a_spec_block_ages_its_own_verdict() -> None:
    made = document("a", "b")
    change(made, "n = 10", "n = 11")
    assert made.is_stale("a")
    assert not made.is_stale("b")


def test_a_new_verdict_does_not_freshen_the_others() -> None:
    made = document("a", "b")
    change(made, "a(const float* x, float* y, int n) { y[0]", "a(const float* x, float* y, int n) { y[1]")
    made.reading = read_specs(made.source, None)
    _take(made, made.start("waiting", "b"), FileReport((), (verdict("b"),)))
    assert list(made.results.verdicts) == ["a", "b"]
    assert made.is_stale("a")
    assert not made.is_stale("b")


def test_typing_while_a_job_runs_ages_what_it_finds() -> None:
    made = document()
    ticket = made.start("waiting", None)
    change(made, "return v;", "return v + 1;")
    _take(made, ticket, FileReport((), (verdict("a"),)))
    assert made.is_stale("a")


def test_a_job_for_one_kernel_runs_beside_that_of_the_file_and_a_job_for_the_file_replaces_all() -> None:
    made = document()
    whole = made.start("whole", None)
    one = made.start("one", "a")
    assert set(made.jobs) == {whole, one}
    assert (made.running("a"), made.running("b")) == ("one", "whole")
    again = made.start("again", "a")
    assert set(made.jobs) == {whole, again}
    newest = made.start("newest", None)
    assert set(made.jobs) == {newest}


def test_an_edit_past_the_end_happens_at_the_end() -> None:
    made = document()
    last = len(TEXT.split("\n")) - 1  # the empty line after the last line break
    place = Range(Position(last, 0), Position(last, 0))
    made.results.findings = (Finding("KF301", Severity.ERROR, "m", "/a.cu", place),)
    beyond = lsp.Range(start=lsp.Position(last + 500, 7), end=lsp.Position(last + 900, 0))
    made.apply([lsp.TextDocumentContentChangePartial(range=beyond, text="x")], 2, Encoding.UTF16)
    assert made.source.text == TEXT + "x"
    assert made.results.findings == ()  # its line is no longer the same

"""Whole verifications on the emulator."""

from pathlib import Path

import pytest

from kernel_forge import wiring
from kernel_forge.domain.outcome import MemoryFault, Mismatch, MismatchKind, Passed, RaceFound, Verdict
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import verify

HEAD = """// /// kernel-forge
// kernel = "k"
// cases = [%s]
// reference = { y = "%s" }
%s//
// [args]
// x = { shape = ["n"] }
// y = { shape = [%s], role = "out" }
//
// [launch]
// grid = "max(1, cdiv(n, 64))"
// block = 64
// ///
"""


def emulate(text: str, *, seed: int = 0, path: str = str(Path(__file__).with_name("k.cu"))) -> Verdict:
    device = wiring.device("emulator")
    if device.info().unavailable is not None:
        pytest.skip(str(device.info().unavailable))
    source = parse(text, path)
    reading = read_specs(source, None)
    assert not reading.problems, [p.message for p in reading.problems]
    return verify(reading.specs[0], source, device, seed=seed)


def scaled(body: str, extra: str = "") -> str:
    head = HEAD % ("{ n = 200 }", "2.5 * x", extra, '"n"')
    first = "  int i = blockIdx.x * 64 + threadIdx.x;\n"
    return f"{head}__global__ void k(const float* x, float* y, int n) {{\n{first}{body}}}\n"


def line_of(text: str, words: str) -> int:
    return text[: text.index(words)].count("\n")


def test_an_honest_kernel_passes() -> None:
    outcome = emulate(scaled("  if (i < n) y[i] = 2.5f * x[i];\n")).outcome
    assert isinstance(outcome, Passed), outcome
    assert outcome.worst["y"] < 1


def test_a_race_is_found_with_both_lines() -> None:
    text = scaled(
        "  if (i < n) y[i] = 2.5f * x[i];\n  if (i + 1 < n)\n    y[i + 1] = 2.5f * x[i + 1] * (1.0f + 1e-7f);\n"
    )
    outcome = emulate(text).outcome
    assert isinstance(outcome, RaceFound), outcome
    lines = {place.range.start.line for place in outcome.locations}
    assert lines == {line_of(text, "if (i < n) y[i] ="), line_of(text, "y[i + 1] =")}


def test_a_wrong_value_is_blamed_on_its_thread_and_line() -> None:
    text = scaled("  if (i < n) y[i] = 2.5f * x[i];\n  if (i == 70 && i < n)\n    y[i] = 3.0f;\n")
    verdict = emulate(text)
    outcome = verdict.outcome
    assert isinstance(outcome, Mismatch), outcome
    assert verdict.case is not None
    assert verdict.case.sizes == {"n": 71}
    assert outcome.index == (70,)
    assert outcome.owner is not None
    assert outcome.owner.block[0] * 64 + outcome.owner.thread[0] == 70
    assert outcome.location is not None
    assert outcome.location.range.start.line == line_of(text, "y[i] = 3.0f")


def test_never_written_and_out_of_bounds() -> None:
    outcome = emulate(scaled("  if (i + 1 < n) y[i] = 2.5f * x[i];\n")).outcome
    assert isinstance(outcome, Mismatch)
    assert outcome.kind is MismatchKind.NOT_WRITTEN
    outcome = emulate(scaled("  if (i <= n) y[i] = 2.5f * x[i];\n")).outcome
    assert isinstance(outcome, MemoryFault)
    assert outcome.buffer in ("x", "y")


def test_the_seed_repeats_the_verdict() -> None:
    text = scaled("  if (i < n) y[i] = 2.501f * x[i];\n")
    one, two = emulate(text, seed=11), emulate(text, seed=11)
    assert one.outcome == two.outcome
    assert one.case == two.case


def test_the_users_tolerance_is_noted() -> None:
    verdict = emulate(scaled("  if (i < n) y[i] = 2.5001f * x[i];\n", "// tolerance = { relative = 1e-3 }\n"))
    assert isinstance(verdict.outcome, Passed), verdict.outcome
    assert any("tolerance set in the spec" in note for note in verdict.notes)


def test_a_sum_of_a_hundred_thousand_by_one_thread() -> None:
    text = (HEAD % ("{ n = 100000 }", "np.sum(x)", "", "1")).replace('"max(1, cdiv(n, 64))"', "1").replace("64", "1")
    text += "__global__ void k(const float* x, float* y, int n) {\n  float s = 0;\n"
    text += "  for (int i = 0; i < n; i++) s += x[i];\n  y[0] = s;\n}\n"
    for seed in range(3):
        outcome = emulate(text, seed=seed).outcome
        assert isinstance(outcome, Passed), outcome
    dropped = emulate(text.replace("i < n; i++", "i < n - 1; i++")).outcome
    assert isinstance(dropped, Mismatch), dropped


def test_variance_in_one_pass() -> None:
    text = """// /// kernel-forge
// kernel = "k"
// cases = [{ rows = 96, cols = 2 }, { rows = 30, cols = 129 }]
// where = ["cols > 0"]
// reference = { y = "(x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)" }
//
// [args]
// x = { shape = ["rows", "cols"] }
// y = { shape = ["rows", "cols"], role = "out" }
//
// [launch]
// grid = "cdiv(rows, 64)"
// block = 64
// ///
__global__ void k(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= rows) return;
  float s = 0, q = 0;
  for (int c = 0; c < cols; c++) {
    float v = x[row * cols + c];
    s += v;
    q += v * v;
  }
  float mean = s / cols;
  float r = rsqrtf(fmaxf(q / cols - mean * mean, 0.0f) + 1e-5f);
  for (int c = 0; c < cols; c++) y[row * cols + c] = (x[row * cols + c] - mean) * r;
}
"""
    for seed in range(5):
        outcome = emulate(text, seed=seed).outcome
        assert isinstance(outcome, Passed), outcome
    assert isinstance(emulate(text.replace("- mean * mean", "")).outcome, Mismatch)
    assert isinstance(emulate(text.replace("1e-5f", "1e-3f")).outcome, Mismatch)

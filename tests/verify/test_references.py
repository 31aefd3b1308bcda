"""References that fail are the reference's fault, with a place."""

from pathlib import Path

import numpy as np
import pytest

from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.spec import BoundCase, bind
from kernel_forge.verify import references
from kernel_forge.verify.reductions import reduces
from kernel_forge.verify.references import Evaluator
from tests.verify.fake_device import check, read
from tests.verify.kernels import Flat

BLOCK = (
    'cases = [{ n = 10 }]\nreference = { y = "ref.py:f" }\n\n[args]\nx = { shape = ["n"] }\n'
    'y = { shape = ["n"], role = "out" }'
)


def double(x: Flat, y: Flat, n: int) -> None:
    y[:] = 2 * x


def verdict(tmp_path: Path, text: str) -> Verdict:
    (tmp_path / "ref.py").write_text(text)
    return check("const float* x, float* y, int n", BLOCK, double, path=tmp_path / "k.cu")


def refused(tmp_path: Path, text: str) -> Unavailable:
    outcome = verdict(tmp_path, text).outcome
    assert isinstance(outcome, Unavailable), outcome
    return outcome


def test_a_reference_that_holds(tmp_path: Path) -> None:
    assert isinstance(verdict(tmp_path, "def f(x):\n    return 2 * x\n").outcome, Passed)
    assert isinstance(verdict(tmp_path, "def f(n, **rest):\n    return 2 * rest['x'][:n]\n").outcome, Passed)


def test_one_that_remembers_is_blamed_itself(tmp_path: Path) -> None:
    outcome = refused(tmp_path, "calls = []\ndef f(x):\n    calls.append(1)\n    return 2 * x + len(calls)\n")
    assert "asked again" in outcome.reason
    assert outcome.of_spec
    assert outcome.location is not None


def test_random_numbers_of_a_reference_repeat_themselves(tmp_path: Path) -> None:
    text = "import numpy as np\ndef f(x):\n    return 2 * x + 0 * np.random.standard_normal(x.shape)\n"
    assert isinstance(verdict(tmp_path, text).outcome, Passed)


def test_raising_names_the_line(tmp_path: Path) -> None:
    outcome = refused(tmp_path, "def f(x):\n    y = 2 * x\n    raise KeyError('no')\n")
    assert "KeyError" in outcome.reason
    assert outcome.location is not None
    assert outcome.location.range.start.line == 2


def test_raising_at_an_empty_size_tells_how_to_exclude_it(tmp_path: Path) -> None:
    outcome = refused(tmp_path, "def f(x):\n    return 2 * x + 0 * x.max()\n")  # no maximum of nothing: n = 0
    assert "ValueError" in outcome.reason
    assert 'with n = 0; if that is no legal size, exclude it: where = ["n > 0"]' in outcome.reason


def test_raising_at_other_sizes_gives_no_such_advice(tmp_path: Path) -> None:
    assert "where" not in refused(tmp_path, "def f(x, n):\n    return 2 * x if n < 1 else x[-1:] @ 'a'\n").reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x):\n    return x[:-1]\n", "change the output's shape in [args] or the reference"),
        ("def f(x, weights):\n    return x\n", "weights"),
        ("def g(x):\n    return x\n", "no function f"),
        ("def f(x)\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("def f(x):\n    return 'text'\n", "type"),
        ("def f(x):\n    return [[1, 2], [3]]\n", "no array"),
        ("def f(x):\n    return {'z': x}\n", "no y"),
        ("def f(x):\n    return None\n", "gave None"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, text).reason


def test_missing_file(tmp_path: Path) -> None:
    outcome = check("const float* x, float* y, int n", BLOCK, double, path=tmp_path / "k.cu").outcome
    assert isinstance(outcome, Unavailable)
    assert "ref.py" in outcome.reason


def test_a_reference_that_hangs_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TIME_LIMIT", 0.3)
    outcome = refused(tmp_path, "def f(x):\n    while True:\n        pass\n")
    assert "did not end" in outcome.reason


def test_a_reference_that_catches_everything_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TIME_LIMIT", 0.3)
    text = (
        "def f(x):\n    while True:\n        try:\n            x.sum()\n        except Exception:\n            pass\n"
    )
    assert refused(tmp_path, text).reason == "the reference did not end within 0.3 s"
    (tmp_path / "make.py").write_text("def make(rng, shape, n):\n    while True:\n        pass\n")
    block = BLOCK.replace('["n"] }', '["n"], init = "make.py:make" }', 1)
    outcome = check("const float* x, float* y, int n", block, double, path=tmp_path / "k.cu").outcome
    assert outcome == Unavailable("making the inputs did not end within 0.3 s", of_spec=True)


def test_leaving_python_is_a_failure_of_the_reference(tmp_path: Path) -> None:
    assert "SystemExit" in refused(tmp_path, "def f(x):\n    raise SystemExit(3)\n").reason
    assert "SystemExit" in refused(tmp_path, "raise SystemExit(3)\n").reason


def test_inputs_of_a_wrong_type_are_named(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text("def f(x):\n    return 2 * x\n")
    (tmp_path / "make.py").write_text("def make(rng, shape, n):\n    return [['a'] * n][0]\n")
    block = BLOCK.replace('["n"] }', '["n"], init = "make.py:make" }', 1)
    outcome = check("const float* x, float* y, int n", block, double, path=tmp_path / "k.cu").outcome
    assert isinstance(outcome, Unavailable)
    assert "init of x returned elements of the type" in outcome.reason


def test_inputs_are_the_references_own_copies(tmp_path: Path) -> None:
    assert isinstance(verdict(tmp_path, "def f(x):\n    x *= 2\n    return x\n").outcome, Passed)


@pytest.mark.parametrize("result", ["{'y': 2 * x, 'z': x.sum()}", "(2 * x, x.sum())"])
def test_several_outputs_of_one_function(tmp_path: Path, result: str) -> None:
    def both(x: Flat, y: Flat, z: Flat, n: int) -> None:
        y[:] = 2 * x
        z[0] = np.sum(x)

    (tmp_path / "ref.py").write_text(f"def f(x):\n    return {result}\n")
    block = 'cases = [{ n = 100 }]\nreference = { y = "ref.py:f", z = "ref.py:f" }\n\n[args]\nx = { shape = ["n"] }\n'
    block += 'y = { shape = ["n"], role = "out" }\nz = { shape = [1], role = "out" }'
    made = check("const float* x, float* y, float* z, int n", block, both, path=tmp_path / "k.cu")
    assert isinstance(made.outcome, Passed), made.outcome


def test_a_single_array_for_two_outputs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text("def f(x):\n    return x\n")
    block = 'cases = [{ n = 10 }]\nreference = { y = "ref.py:f", z = "ref.py:f" }\n\n[args]\nx = { shape = ["n"] }\n'
    block += 'y = { shape = ["n"], role = "out" }\nz = { shape = ["n"], role = "out" }'
    made = check("const float* x, float* y, float* z, int n", block, double, path=tmp_path / "k.cu")
    assert isinstance(made.outcome, Unavailable)
    assert "mapping" in made.outcome.reason


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a * summary", False),
        ("np.maximum(x, mean)", False),
        ("x.max() + np.max(x, axis=0)", False),
        ("np.maximum.reduce(x)", False),
        ("np.maximum.reduce(x) + np.sum(x)", True),
        ("np.sum(x)", True),
        ("x.mean(axis=1)", True),
        ("sum(x)", True),
        ("a @ b", True),
        ("np.linalg.norm(x)", True),
        ("np.add.reduce(x)", True),
        ("np.add.accumulate(x)", True),
    ],
)
def test_expressions_that_reduce(text: str, answer: bool) -> None:
    assert reduces(text) is answer


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("2.5 * x", False),
        ("np.where(x > 0, x, 0.0)", False),
        ("np.exp(x) + x[::-1]", False),
        ("x / x.sum()", True),
        ("x / np.mean(x)", True),
        ("np.asarray(x) * 2", True),  # out of sight
        ("np.cumsum(x)", True),
        ("np.full(n, sum(x))", True),
    ],
)
def test_functions_that_reduce(tmp_path: Path, body: str, answer: bool) -> None:
    (tmp_path / "ref.py").write_text(f"import numpy as np\ndef f(x, n):\n    return {body}\n")
    spec, _ = read("const float* x, float* y, int n", BLOCK, str(tmp_path / "k.cu"))
    bound = bind(spec, {"n": 10}, {})
    assert isinstance(bound, BoundCase)
    x = np.linspace(-1, 1, 10, dtype=np.float32)
    assert Evaluator.of(spec).reduces(bound, {"x": x}) is answer


@pytest.mark.parametrize(("given", "held"), [("x.T", False), ("x", True), ("x.ravel()", True), ("x[None]", True)])
def test_a_transposed_reference_is_not_reshaped(given: str, held: bool) -> None:
    block = (
        f'cases = [{{ rows = 3, cols = 4 }}]\nreference = {{ y = "{given}" }}\n\n[args]\n'
        'x = { shape = ["rows", "cols"] }\ny = { shape = ["rows", "cols"], role = "out" }'
    )

    def copy(x: Flat, y: Flat, rows: int, cols: int) -> None:
        y[:] = x

    outcome = check("const float* x, float* y, int rows, int cols", block, copy).outcome
    assert isinstance(outcome, Passed) is held, outcome
    if not held:
        assert isinstance(outcome, Unavailable)
        assert "(4, 3)" in outcome.reason

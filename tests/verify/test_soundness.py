"""Ways in which a wrong kernel could have passed, or an honest one failed."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kernel_forge.domain.outcome import Mismatch, MismatchKind, Passed
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify.atomics import unordered_outputs
from tests.verify.fake_device import check
from tests.verify.kernels import Flat, sequential

SIGNATURE = "const float* x, float* y, int n"
SHIFTED = "import numpy as np\ndef init(rng, shape, **sizes):\n    return 200 + rng.standard_normal(shape)\n"


def vector(reference: str, init: str = "") -> str:
    return (
        f'cases = [{{ n = 200 }}]\nreference = {{ y = "{reference}" }}\n\n[args]\nx = {{ shape = ["n"]{init} }}\n'
        'y = { shape = ["n"], role = "out" }'
    )


def test_overflow_in_the_kernels_type_hides_no_wrong_kernel(tmp_path: Path) -> None:
    """exp(200) exceeds float32, so the naive softmax evaluated in float32 is NaN everywhere."""

    def wrong(x: Flat, y: Flat, n: int) -> None:
        y[:] = x * np.float32(1e6)

    (tmp_path / "soft.py").write_text(SHIFTED)
    block = vector("np.exp(x) / np.sum(np.exp(x))", ', init = "soft.py:init"')
    outcome = check(SIGNATURE, block, wrong, path=tmp_path / "k.cu").outcome
    assert isinstance(outcome, Mismatch)
    assert outcome.kind is MismatchKind.WRONG_VALUE


def test_a_kernel_that_writes_nothing_is_seen_where_the_reference_overflows() -> None:
    def nothing(x: Flat, y: Flat, n: int) -> None:
        pass

    outcome = check(SIGNATURE, vector("np.exp(30 * x) / np.sum(np.exp(30 * x))"), nothing).outcome
    assert isinstance(outcome, Mismatch)
    assert outcome.kind is MismatchKind.NOT_WRITTEN


def test_nan_everywhere_is_not_verified(tmp_path: Path) -> None:
    """The honest naive softmax in float32 overflows too; then nothing was compared, which is no pass."""

    def naive(x: Flat, y: Flat, n: int) -> None:
        e = np.exp(x)
        y[:] = e / e.sum() if n else e

    (tmp_path / "soft.py").write_text(SHIFTED)
    block = vector("np.exp(x) / np.sum(np.exp(x))", ', init = "soft.py:init"')
    assert not isinstance(check(SIGNATURE, block, naive, path=tmp_path / "k.cu").outcome, Passed)


def test_an_infinity_that_is_written_down_must_be_matched() -> None:
    def masked(value: float):  # type: ignore[no-untyped-def]
        def kernel(x: Flat, y: Flat, n: int) -> None:
            y[:] = np.where(x > 0, x, np.float32(value))

        return kernel

    block = vector("np.where(x > 0, x, -np.inf)")
    assert isinstance(check(SIGNATURE, block, masked(-np.inf)).outcome, Passed)
    assert isinstance(check(SIGNATURE, block, masked(0)).outcome, Mismatch)


def test_what_was_not_compared_is_counted() -> None:
    """exp(30 x) overflows float64 for x > 24: at large inputs half the elements."""

    def honest(x: Flat, y: Flat, n: int) -> None:
        y[:] = np.exp(np.float32(30) * x)

    verdict = check(SIGNATURE, vector("np.exp(30 * x)"), honest)
    assert isinstance(verdict.outcome, Passed), verdict.outcome
    assert any("elements of y were not compared" in note for note in verdict.notes)


INTEGERS = ', init = { kind = "integers", low = 0, high = 4096 }'


def test_a_product_of_an_integer_and_a_scalar_rounds() -> None:
    def rope(pos: Flat, y: Flat, theta: float, n: int) -> None:
        y[:] = np.cos(pos.astype(np.float32) * np.float32(theta))

    def wrong(pos: Flat, y: Flat, theta: float, n: int) -> None:
        y[:] = np.cos(pos.astype(np.float32) * np.float32(theta * 1.001))

    block = vector("np.cos(pos * theta)", INTEGERS).replace("x = {", "pos = {") + "\ntheta = 0.7"
    signature = "const int* pos, float* y, float theta, int n"
    for seed in range(5):
        outcome = check(signature, block, rope, seed=seed).outcome
        assert isinstance(outcome, Passed), outcome
    assert isinstance(check(signature, block, wrong).outcome, Mismatch)


def test_a_sum_of_roots_of_integers_rounds() -> None:
    def roots(x: Flat, y: Flat, n: int) -> None:
        y[0] = sequential(np.sqrt(x.astype(np.float32)))

    def drops_one(x: Flat, y: Flat, n: int) -> None:
        y[0] = sequential(np.sqrt(x[:-1].astype(np.float32)))

    for n in (63, 4000):
        block = vector("np.sum(np.sqrt(x))", INTEGERS).replace('y = { shape = ["n"]', "y = { shape = [1]")
        block = block.replace("n = 200", f"n = {n}")
        for seed in range(5):
            outcome = check("const int* x, float* y, int n", block, roots, seed=seed).outcome
            assert isinstance(outcome, Passed), outcome
    assert isinstance(check("const int* x, float* y, int n", block, drops_one).outcome, Mismatch)


@pytest.mark.parametrize(("name", "dtype"), [("__half", np.float16), ("__nv_bfloat16", ml_dtypes.bfloat16)])
def test_cancellation_in_a_narrow_type_is_the_formulas(name: str, dtype: type) -> None:
    """exp(x) - 1 with every result rounded to the type, as hexp and __hsub do."""

    def em1(x: Flat, y: Flat, n: int) -> None:
        e = np.exp(x.astype(np.float32)).astype(dtype)
        y[:] = (e.astype(np.float32) - 1).astype(dtype)

    block = vector("np.exp(x) - 1", ', init = "normal"')
    for seed in range(5):
        outcome = check(f"const {name}* x, {name}* y, int n", block, em1, seed=seed).outcome
        assert isinstance(outcome, Passed), outcome


@pytest.mark.parametrize("reference", ["a * summary", "fref.py:f"])
def test_what_does_not_reduce_gets_no_room_for_sums(tmp_path: Path, reference: str) -> None:
    """A relative error of 2e-4 where one product rounds by 6e-8."""

    def off(x: Flat, y: Flat, a: float, n: int) -> None:
        y[:] = np.float32(a) * x * np.float32(1.0002 if n > 10000 else 1)

    (tmp_path / "fref.py").write_text("def f(a, summary):\n    return a * summary\n")
    block = vector(reference).replace("x = {", "summary = {").replace("n = 200", "n = 100000") + "\na = 2.5"
    outcome = check("const float* summary, float* y, float a, int n", block, off, path=tmp_path / "k.cu").outcome
    assert isinstance(outcome, Mismatch)


def unordered(tmp_path: Path, code: str, body: str) -> frozenset[str]:
    block = "\n// ".join(
        ["kernel-forge", 'kernel = "k"', *vector("x").splitlines(), "", "[launch]", "grid = 1", "block = 32"]
    )
    text = f"{code}\n// /// {block}\n// ///\n__global__ void k(const float* x, float* y, int n) {{ {body} }}\n"
    source = parse(text, str(tmp_path / "k.cu"))
    reading = read_specs(source, None)
    assert not reading.problems, reading.problems
    return unordered_outputs(reading.specs[0], source)


@pytest.mark.parametrize(
    ("code", "body", "found"),
    [
        ("// no atomicCAS(p, a, b) here", "y[0] = x[0];", False),
        ("", '/* atomicAdd(y, 1) */ printf("atomicAdd(y, 1)");', False),
        ("__device__ void other(float* y) { atomicAdd(y, 1.f); }", "y[0] = x[0];", False),
        ("__global__ void other(float* y) { atomicAdd(y, 1.f); }", "y[0] = x[0];", False),
        ("", "atomicAdd(&y[0], x[0]);", True),
        ("__device__ void add(float* p) { atomicAdd(p, 1.f); }", "add(y);", True),
        ("__device__ void a(float* p) { atomicAdd(p, 1.f); }\n__device__ void b(float* p) { a(p); }", "b(y);", True),
        ("#define ADD(p, v) atomicAdd(p, v)", "ADD(y, x[0]);", True),
        (
            "template <typename T> struct S { __device__ void go(T* p) const { atomicAdd(p, 1); } };",
            "S<float>().go(y);",
            True,
        ),
        ('#include "acc.cuh"', "acc(y, x[0]);", True),
        ('#include "acc.cuh"', "y[0] = x[0];", False),
        ("", "__shared__ float s; atomicAdd(&s, x[0]); y[0] = s;", True),
    ],
)
def test_atomics_are_looked_for_where_the_kernel_goes(tmp_path: Path, code: str, body: str, found: bool) -> None:
    (tmp_path / "acc.cuh").write_text("__device__ inline void acc(float* p, float v) { atomicAdd(p, v); }\n")
    assert unordered(tmp_path, code, body) == (frozenset({"y"}) if found else frozenset())

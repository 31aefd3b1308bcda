"""Honest kernels pass, whatever the seed."""

import numpy as np
import pytest

from kernel_forge.domain.outcome import Passed
from tests.verify import kernels
from tests.verify.fake_device import Kernel, check
from tests.verify.kernels import Flat, sequential

SEEDS = range(20)


def double_it(x: Flat, y: Flat, n: int) -> None:
    y[:] = np.float16(2.5) * x


def half_sum(x: Flat, y: Flat, n: int) -> None:
    y[0] = np.float16(sequential(x))


def half_dot(x: Flat, w: Flat, y: Flat, n: int) -> None:
    y[0] = sequential(x.astype(np.float32) * w.astype(np.float32))


def wraps(x: Flat, y: Flat, n: int) -> None:
    y[:] = x * np.int32(123457) + np.int32(2**30)


def inside(px: Flat, py: Flat, vx: Flat, vy: Flat, y: Flat, n: int, m: int) -> None:
    result = np.zeros(n, bool)
    for i in range(m):
        j = (i + 1) % m
        crosses = (vy[i] > py) != (vy[j] > py)
        share = ((py - vy[i]) / (vy[j] - vy[i])).astype(np.float64)
        result ^= crosses & (px < (share * (vx[j] - vx[i]) + vx[i]).astype(np.float32))  # a fused multiply-add
    y[:] = result


INSIDE = """
import numpy as np
def inside(px, py, vx, vy, m):
    found = np.zeros(px.shape, bool)
    for i in range(m):
        j = (i + 1) % m
        with np.errstate(all="ignore"):
            found ^= ((vy[i] > py) != (vy[j] > py)) & (px < (py - vy[i]) / (vy[j] - vy[i]) * (vx[j] - vx[i]) + vx[i])
    return found.astype(np.int32)
"""
VECTOR = (
    'cases = [{ n = 1000 }]\nreference = { y = "%s" }\n\n[args]\nx = { shape = ["n"] }\n'
    'y = { shape = [%s], role = "out" }'
)
HALF = "const __half* x, __half* y, int n"
CASES: dict[str, tuple[str, str, Kernel]] = {
    "float sum one after the other": (kernels.SUM[0], kernels.SUM[1] % 100000, kernels.sum_of),
    "half elementwise": (HALF, VECTOR % ("2.5 * x", '"n"'), double_it),
    "half sum in float": (HALF, VECTOR % ("np.sum(x)", "1"), half_sum),
    "half inputs, float result": (
        "const __half* x, const __half* w, float* y, int n",
        (VECTOR % ("np.dot(x, w)", "1")) + '\nw = { shape = ["n"] }',
        half_dot,
    ),
    "softmax": (kernels.ROWS[0], kernels.ROWS[1] % kernels.SOFTMAX, kernels.softmax),
    "layer norm in two passes": (kernels.ROWS[0], kernels.ROWS[1] % kernels.LAYER_NORM, kernels.two_pass),
    "layer norm in one pass": (kernels.ROWS[0], kernels.ROWS[1] % kernels.LAYER_NORM, kernels.one_pass),
    "layer norm of pairs": (
        kernels.ROWS[0],
        (kernels.ROWS[1] % kernels.LAYER_NORM).replace("cols = 100", "cols = 2"),
        kernels.one_pass,
    ),
    "gelu": (kernels.ROWS[0], kernels.ROWS[1] % kernels.GELU, kernels.gelu),
    "gelu otherwise": (kernels.ROWS[0], kernels.ROWS[1] % kernels.GELU, kernels.gelu_by_exp),
    "integers that wrap": ("const int* x, int* y, int n", VECTOR % ("x * 123457 + 2**30", '"n"'), wraps),
}


@pytest.mark.parametrize("name", CASES)
def test_honest_kernels_pass_with_every_seed(name: str) -> None:
    signature, block, kernel = CASES[name]
    for seed in SEEDS:
        verdict = check(signature, block, kernel, seed=seed)
        assert isinstance(verdict.outcome, Passed), (seed, verdict.case, verdict.outcome)


@pytest.mark.parametrize("kind", ["tied", "centred", "large"])
def test_point_in_polygon_may_decide_ties_either_way(tmp_path, monkeypatch, kind: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "ref.py").write_text(INSIDE)
    monkeypatch.setattr("kernel_forge.verify.planning.KINDS", (kind,))
    points = "\n".join(f'{n} = {{ shape = ["{e}"] }}' for n, e in (("px", "n"), ("py", "n"), ("vx", "m"), ("vy", "m")))
    block = f'cases = [{{ n = 5000, m = 7 }}]\nreference = {{ y = "ref.py:inside" }}\n\n[args]\n{points}\n'
    block += 'y = { shape = ["n"], role = "out" }'
    signature = "const float* px, const float* py, const float* vx, const float* vy, int* y, int n, int m"
    for seed in range(4):
        verdict = check(signature, block, inside, path=tmp_path / "k.cu", seed=seed)
        assert isinstance(verdict.outcome, Passed), (seed, verdict.case, verdict.outcome)

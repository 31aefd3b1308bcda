"""Static shared memory read off the source; the right sizes are those that C++ gives the arrays."""

import pytest

from kernel_forge.jobs.tune.static_shared import static_shared
from kernel_forge.source import parse
from kernel_forge.spec import read_specs

TEXT = """// /// kernel-forge
// kernel = "{kernel}"
// reference = {{ y = "x" }}
// cases = [{{ n = 4096 }}]
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
// [launch]
// grid = 1
// block = "TILE"
// [tune]
// TILE = [16, 32]
// K = [8, 16]
// ///
#include <cuda_fp16.h>
#ifndef TILE
#define TILE 16
#endif
#ifndef K
#define K 8
#endif
#define PAD (1)
constexpr int ROW = TILE + PAD;
using real = double;
{template}__global__ void f(const float* x, float* y, int n) {{
  {body}
}}
__global__ void other(const float* x) {{ __shared__ float elsewhere[1000]; }}
"""


def bytes_of(body: str, tile: int, k: int, kernel: str = "f", template: str = "") -> int:
    source = parse(TEXT.format(body=body, kernel=kernel, template=template), "/project/f.cu")
    reading = read_specs(source, None)
    assert not reading.problems, reading.problems
    spec = reading.specs[0]
    return sum(e.evaluate_int({"TILE": tile, "K": k}) for e in static_shared(source, spec, spec.launches[0]))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("__shared__ float a[TILE][TILE];", 4 * 32 * 32),
        ("__shared__ float a[TILE][K], b[K][TILE + 1];", 4 * 32 * 8 + 4 * 8 * 33),
        ("__shared__ float a[2][ROW];", 4 * 2 * 33),  # through a constant and a macro
        ("__shared__ alignas(16) half a[TILE * K];", 2 * 32 * 8),
        ("__shared__ float4 a[TILE / 4];", 16 * 8),
        ("__shared__ real total;", 8),
        ("__shared__ unsigned char flags[TILE];", 32),
        ("extern __shared__ float a[];", 0),  # dynamic: the launch says how much
        ("__shared__ float a[n_of_somebody];", 0),  # not known, so not counted
        ("__shared__ Widget w[TILE];", 0),
        ("// __shared__ float a[TILE];", 0),
        ("", 0),
    ],
)
def test_arrays(body: str, found: int) -> None:
    assert bytes_of(body, 32, 8) == found


def test_template_parameters_are_their_arguments() -> None:
    body = "__shared__ T a[N][N + 1];"
    assert bytes_of(body, 32, 8, "f<float, TILE>", "template <typename T, int N>\n") == 4 * 32 * 33

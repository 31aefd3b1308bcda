"""Launches read off host code: locals that are given one value are resolved, what is not sure is not read."""

import pytest

from kernel_forge.source import parse
from kernel_forge.spec.launches import read_site
from tests.spec.reading import PATH

KERNEL = "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[n]; }\n"
ENTRY = "void run(const float* x, float* y, int n) {"


def launch(host: str) -> tuple[list[int], list[int], int | None] | None:
    """(grid, block, shared) at n = 1000 of the launch in a host function; None where it is not read."""
    file = parse(KERNEL + host, PATH)
    site = read_site(file, file.kernels[0], (), frozenset({"n"}))
    if site is None:
        return None
    _, grid, block, shared = site
    values = ([e.evaluate_int({"n": 1000}) for e in part] for part in (grid, block))
    return next(values), next(values), None if shared is None else shared.evaluate_int({"n": 1000})


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        # ceil(1000 / 256) = 4 blocks; 256 floats are 1024 bytes
        (
            ENTRY + " const int threads = 256; int blocks = (n + threads - 1) / threads;"
            " k<<<blocks, threads, threads * sizeof(float)>>>(x, y, n); }",
            ([4], [256], 1024),
        ),
        (ENTRY + " const int blocks = 64, threads = 128; k<<<blocks, threads>>>(x, y, n); }", ([64], [128], None)),
        (ENTRY + " k<<<1, 32, 32 * sizeof(double)>>>(x, y, n); }", ([1], [32], 256)),
        (ENTRY + " k<<<1, 32, 8 * sizeof(float4) + sizeof(short)>>>(x, y, n); }", ([1], [32], 130)),
        (
            ENTRY + " dim3 block(32, 8); dim3 grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);"
            " k<<<grid, block>>>(x, y, n); }",
            ([32, 125], [32, 8], None),
        ),
        ("void run(float* x, float* y, int m) { k<<<m / 10, 64>>>(x, y, m); }", ([100], [64], None)),
    ],
)
def test_host_code_that_is_read(host: str, expected: tuple[list[int], list[int], int | None]) -> None:
    assert launch(host) == expected


@pytest.mark.parametrize(
    "host",
    [
        ENTRY + " int t = 256; if (n > 9) t = 128; k<<<(n + t - 1) / t, t>>>(x, y, n); }",
        ENTRY + " int t = 32; t *= 2; k<<<n, t>>>(x, y, n); }",
        ENTRY + " int t = 32; t++; k<<<n, t>>>(x, y, n); }",
        ENTRY + " int t = 0, g = 0; cudaOccupancyMaxPotentialBlockSize(&g, &t, k); k<<<n, t>>>(x, y, n); }",
        ENTRY + " int half = n / 2; k<<<n / 32, 32>>>(x, y, half); }",  # the kernel's n is not the host's
    ],
)
def test_host_code_that_is_not_sure(host: str) -> None:
    assert launch(host) is None

"""The spaces of kernels: what the spec says, and what the device implies."""

import pytest

from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.jobs.tune.space import search_space
from kernel_forge.knowledge import limits_of
from kernel_forge.search import EmptySpace, SearchSpace
from kernel_forge.source import parse
from kernel_forge.spec import read_specs

TEXT = """// /// kernel-forge
// kernel = "k"
// reference = {{ y = "2 * x" }}
// cases = [{{ n = 4096 }}, {{ n = 960 }}]
// {where}
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
// [launch]
// grid = "cdiv(n, X * Y)"
// block = ["X", "Y", "Z"]
// shared = "X * Y * 64"
// {cluster}
// [tune]
// X = [16, 32, 48, 1024]
// Y = [1, 2, 16]
// Z = [1, 64, 128]
// ///
#ifndef X
#define X 32
#endif
#ifndef Y
#define Y 1
#endif
#ifndef Z
#define Z 1
#endif
__global__ void k(const float* x, float* y, int n) {{ {body} }}
"""


def space(
    *,
    where: str = "",
    cluster: str = "",
    body: str = "",
    cases: tuple[Sizes, ...] = ({"n": 4096},),
    fixed: Configuration | None = None,
    limits: HardwareLimits | None = None,
) -> SearchSpace:
    source = parse(TEXT.format(where=where, cluster=cluster, body=body), "/k.cu")
    reading = read_specs(source, None)
    assert reading.specs, [p.message for p in reading.problems]
    return search_space(reading.specs[0], source, cases, fixed or {}, limits, "a device")


def allowed(found: SearchSpace) -> set[tuple[int, ...]]:
    return {tuple(found.configuration(k).values()) for k in range(found.size)}  # type: ignore[misc]


def brute(*conditions: object) -> set[tuple[int, int, int]]:
    every = [(x, y, z) for x in (16, 32, 48, 1024) for y in (1, 2, 16) for z in (1, 64, 128)]
    return {c for c in every if all(condition(*c) for condition in conditions)}  # type: ignore[operator]


def threads(x: int, y: int, z: int) -> bool:
    return x * y * z <= 1024 and z <= 64


def test_every_gpu_takes_1024_threads_and_64_along_z() -> None:
    assert allowed(space()) == brute(threads)


def test_shared_memory_of_the_device() -> None:
    """Compute capability 7.5 gives a block 64 KiB: X * Y of 1024 at most, with 64 bytes each."""
    turing = limits_of((7, 5))
    assert turing.shared_bytes_per_block == 64 << 10
    assert allowed(space(limits=turing)) == brute(threads, lambda x, y, _z: x * y * 64 <= 64 << 10)


LOOP = "for (int i = 0; i < n; ++i) y[i] = t[i]"


@pytest.mark.parametrize(
    "body",
    [
        f"__shared__ float t[X][Y * 16]; {LOOP};",
        f"__shared__ float s[16]; __shared__ float t[X * Y - 1][16]; s[0] = 1; {LOOP};",
    ],
)
def test_static_shared_memory_that_cuda_does_not_allow(body: str) -> None:
    """48 KiB on every GPU: X * Y of 768 at most, with 64 bytes each."""
    assert allowed(space(body=body)) == brute(threads, lambda x, y, _z: x * y * 64 <= 48 << 10)


@pytest.mark.parametrize(
    "body",
    [
        f"__shared__ float t[X][Y * 16]; if (X < 1024) {{ {LOOP}; }}",  # never touched where it would be too large
        f"if (n > 4) {{ __shared__ float t[X][Y * 16]; {LOOP}; }}",
        f"\n#if X < 1024\n__shared__ float t[X][Y * 16];\n#endif\n{LOOP};",
        "__shared__ float t[X][Y * 16]; y[0] = x[0];",
        "__shared__ float t[X][Y * 16]; y[0] = X > 512 ? x[0] : t[0];",
        f"extern __shared__ float t[]; {LOOP};",
    ],
)
def test_static_shared_memory_that_may_be_left_out_rules_out_nothing(body: str) -> None:
    assert allowed(space(body=body)) == brute(threads)


def test_clusters_of_a_device_that_has_none() -> None:
    with pytest.raises(EmptySpace, match=r"blocks in a cluster of the kernel, on a device"):
        space(cluster='cluster = "Y * 2"', limits=limits_of((8, 6)))
    hopper = limits_of((9, 0))
    assert allowed(space(cluster='cluster = "Y"', limits=hopper)) == brute(
        threads, lambda x, y, _z: y <= 8 and x * y * 64 <= hopper.shared_bytes_per_block
    )


def test_code_that_works_on_warps_wants_whole_ones() -> None:
    body = "float v = __shfl_xor_sync(0xffffffff, x[0], 1); if (n < 0) y[0] = v;"
    assert allowed(space(body=body)) == brute(threads, lambda x, y, z: x * y * z % 32 == 0)


def test_sizes_of_every_case_must_be_admitted() -> None:
    """4096 is a multiple of all but 48; 96 = 3 * 32 only of 16, 32 and 48."""
    where = 'where = ["n % X == 0"]'
    assert allowed(space(where=where, cases=({"n": 4096},))) == brute(threads, lambda x, *_: x != 48)
    both = space(where=where, cases=({"n": 4096}, {"n": 96}))
    assert allowed(both) == brute(threads, lambda x, *_: x in (16, 32))


def test_fixed_tunables_have_one_value() -> None:
    found = space(fixed={"X": 48, "Z": 1})
    assert allowed(found) == {(48, 1, 1), (48, 2, 1), (48, 16, 1)}
    assert found.combinations == 3


def test_an_empty_space_says_what_kills_it() -> None:
    with pytest.raises(
        EmptySpace, match=r"k: no configuration is valid: .*\(Z\) <= 64 \(threads along z of the kernel\)"
    ):
        space(fixed={"Z": 128})

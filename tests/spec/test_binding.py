"""Sizes and tunables given numbers; limits of int32 from C (2^31 - 1), of a case from the format (2 GiB)."""

import math

import pytest

from kernel_forge.domain.finding import Finding
from kernel_forge.spec import MAX_CASE_BYTES, BoundCase, bind, edge_cases, is_legal
from tests.spec.reading import GOOD, read, source, spec_of

SPEC = spec_of(source(GOOD))


def refused(toml: str, n: int) -> Finding:
    found = bind(spec_of(source(toml)), {"n": n}, {})
    assert isinstance(found, Finding)
    return found


def test_a_case() -> None:
    found = bind(SPEC, {"n": 100}, {})
    assert isinstance(found, BoundCase)
    assert found.shapes == {"x": (100,), "y": (100,)}
    assert found.scalars == {"n": 100, "a": 2.0}
    assert found.launches[0].grid == (4, 1, 1)
    assert found.count("x") == 100


def test_a_launch_has_its_stream_and_none_of_its_own_accord() -> None:
    found = bind(spec_of(source(GOOD.replace("block = 32", 'block = 32, stream = "side"'))), {"n": 100}, {})
    assert isinstance(found, BoundCase)
    assert found.launches[0].stream == "side"
    plain = bind(SPEC, {"n": 100}, {})
    assert isinstance(plain, BoundCase)
    assert plain.launches[0].stream is None


@pytest.mark.parametrize("stream", ["''", "'a b'", "3", "['a']", "'" + "a" * 41 + "'"])
def test_a_stream_is_a_word(stream: str) -> None:
    (found,) = read(source(GOOD.replace("block = 32", f"block = 32, stream = {stream}"))).problems
    assert found.code == "KF104"
    assert "Stream of this launch" in found.message


def test_a_size_of_zero_leaves_the_launch_out() -> None:
    found = bind(SPEC, {"n": 0}, {})
    assert isinstance(found, BoundCase)
    assert found.launches == ()
    assert found.shapes["x"] == (0,)


@pytest.mark.parametrize(
    ("old", "new", "n", "code", "message"),
    [
        ("x", "x", -1, "KF110", "shape of x: n is -1"),
        ("n, 32", "n, n - 5", 5, "KF113", "grid: division by zero"),
        ("cdiv(n, 32)", "n - 5", 5, "KF113", "grid is zero with n = 5"),
        ("x", "x", 10**9, "KF110", "7.45 GiB (x has 1000000000 elements); the limit is 2 GiB"),
        (
            "{ a = 2.0 }",
            "{ a = 1, x = { shape = [1] }, y = { shape = [1] } }",
            2**31,
            "KF110",
            "does not fit into int32",
        ),
        ("{ a = 2.0 }", '{ a = "1 / (n - 5)" }', 5, "KF109", "a: division by zero"),
        ("{ a = 2.0 }", '{ a = 1, n = "n * 0.5" }', 5, "KF109", "n is 2.5, but its type is int32"),
    ],
)
def test_what_does_not_bind(old: str, new: str, n: int, code: str, message: str) -> None:
    found = refused(GOOD.replace(old, new), n)
    assert found.code == code
    assert message in found.message


def test_the_largest_int32_fits() -> None:
    spec = spec_of(source(GOOD.replace("{ a = 2.0 }", "{ a = 1, x = { shape = [1] }, y = { shape = [1] } }")))
    assert isinstance(bind(spec, {"n": 2**31 - 1}, {}), BoundCase)


def test_edge_cases() -> None:
    cases = edge_cases(SPEC, {})
    values = [sizes["n"] for sizes, _ in cases]
    assert cases == edge_cases(SPEC, {})
    assert {0, 1, 31, 32, 33, 63, 64, 65} <= set(values)  # the block has 32 threads
    assert values == sorted(set(values))
    assert 100 not in values  # the spec's own case
    assert len(cases) <= 24
    assert max(values) * 8 <= 1 << 22 < (max(values) + 3) * 8  # two float arrays within 4 MiB
    assert all(origin for _, origin in cases)


def test_edge_cases_respect_the_constraints() -> None:
    spec = spec_of(source(GOOD.replace("cases", 'where = ["n % 4 == 0", "n > 0"]\ncases')))
    values = [sizes["n"] for sizes, _ in edge_cases(spec, {})]
    assert values
    assert all(v % 4 == 0 and v > 0 for v in values)
    assert {32, 64} <= set(values)
    assert all(is_legal(spec, {"n": v}, {}) for v in values)


def test_edge_cases_of_several_sizes() -> None:
    toml = GOOD.replace("{ n = 100 }", "{ rows = 9, cols = 7 }").replace("n, 32", "rows * cols, 32")
    toml = toml.replace(
        "{ a = 2.0 }",
        '{ a = 2, n = "rows * cols", x = { shape = ["rows", "cols"] }, y = { shape = ["rows", "cols"] } }',
    )
    spec = spec_of(source(toml))
    found = [sizes for sizes, _ in edge_cases(spec, {}, limit_bytes=1 << 16)]
    assert {"rows": 1, "cols": 1} in found
    for name in ("rows", "cols"):
        assert {0, 1} <= {sizes[name] for sizes in found}
    assert all(math.prod(sizes.values()) * 8 <= 1 << 16 for sizes in found)


def test_nothing_to_vary() -> None:
    toml = GOOD.replace("{ n = 100 }", "{}").replace("cdiv(n, 32)", "1")
    toml = toml.replace("{ a = 2.0 }", "{ a = 2, n = 3, x = { shape = [3] }, y = { shape = [3] } }")
    assert edge_cases(spec_of(source(toml)), {}) == ()


def test_an_unsatisfiable_constraint_ends() -> None:
    toml = GOOD.replace("cases", 'where = ["n == 100"]\ncases')
    assert edge_cases(spec_of(source(toml)), {}) == ()


def test_the_limit_is_two_gibibytes() -> None:
    assert MAX_CASE_BYTES == 2 * 1024**3

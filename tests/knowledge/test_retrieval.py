"""Retrieval: questions whose best page is known, the formula by hand, and the filters."""

import math

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.knowledge import OPERATORS, patterns, search_patterns
from kernel_forge.knowledge.retrieval import bm25, stems


@pytest.mark.parametrize(
    ("words", "best"),
    [
        ("coalesced access", "coalesced-access"),
        ("how do I avoid bank conflicts?", "bank-conflicts"),
        ("float4 loads", "vectorised-access"),
        ("vectorized loads", "vectorised-access"),
        ("sum of a large array", "two-pass-reduction"),
        ("deterministic sum", "two-pass-reduction"),
        ("reduction in a warp", "warp-shuffle-reduction"),
        ("argmax", "warp-shuffle-reduction"),
        ("softmax over long rows", "online-softmax"),
        ("softmax row fits in shared memory", "row-on-chip"),
        ("layer norm variance", "welford-moments"),
        ("tiled matrix multiplication", "shared-memory-tiling"),
        ("tensor cores bf16", "tensor-cores-wmma"),
        ("ldmatrix", "tensor-cores-mma"),
        ("cp.async double buffering", "asynchronous-copy"),
        ("TMA", "bulk-copy-tma"),
        ("distributed shared memory of a cluster", "thread-block-clusters"),
        ("skinny matmul with a large K", "split-k"),
        ("persistent kernel", "persistent-blocks"),
        ("my kernel spills registers", "occupancy-and-registers"),
        ("unrolled loops for ILP", "loop-unrolling"),
        ("constant coefficients of a filter", "constant-memory"),
        ("histogram with atomics", "privatised-histogram"),
        ("stream compaction", "warp-aggregated-atomics"),
        ("prefix sum of a long array", "decoupled-look-back"),
        ("2d convolution with a halo", "stencil-halo-tiles"),
        ("3d stencil", "stencil-streaming"),
        ("transposing a matrix", "transpose-tile"),
        ("embedding lookup", "gather-locality"),
        ("matrix vector product", "gemv-row-per-warp"),
        ("gelu after matmul", "fused-epilogue"),
        ("kernel takes only 3 microseconds", "launch-bound"),
        ("L2 cache hit rate of gemm blocks", "block-swizzle"),
        ("half precision pairs", "packed-half"),
        ("expf is slow", "fast-math"),
        ("flash attention", "tiled-attention"),
        ("top 5 of each row", "block-top-k"),
        ("float sum not accurate enough", "compensated-sums"),
        ("divergence of warps", "branch-divergence"),
        ("integer division", "index-arithmetic"),
        ("broadcasting", "elementwise-fusion"),
    ],
)
def test_the_best_page(words: str, best: str) -> None:
    assert search_patterns(words)[0].pattern.id == best


@pytest.mark.parametrize("name", patterns())
def test_a_page_is_found_by_its_title(name: str) -> None:
    assert name in [match.pattern.id for match in search_patterns(patterns()[name].title, limit=2)]


def test_words_are_stems_without_case_and_endings() -> None:
    assert stems("Tiling, tiles and a TILE") == ["til", "til", "til"]
    assert stems("normalise normalization normalised") == ["normalis"] * 3
    assert stems("reduce reduction") == ["reduc"] * 2
    assert stems("the bus is on") == ["bus"]  # three letters at least stay


def test_the_formula_by_hand() -> None:
    # Two pages of lengths 3 and 1, so 2 on average; "a" is in one of them: idf = ln(1 + 1.5 / 1.5) = ln 2.
    pages = {"x": {"a": 2.0, "b": 1.0}, "y": {"b": 1.0}}
    discount = 1.2 * (0.25 + 0.75 * 3 / 2)
    assert bm25(["a"], pages) == {"x": pytest.approx(math.log(2) * 2 * 2.2 / (2 + discount))}
    both = bm25(["b", "b"], pages)  # in both: ln(1 + 0.5 / 2.5); a word given twice counts once
    assert both["y"] == pytest.approx(math.log(1.2) * 2.2 / (1 + 1.2 * (0.25 + 0.75 / 2)))
    assert both["x"] < both["y"]
    assert bm25(["c"], pages) == {}


def test_filters() -> None:
    assert search_patterns("TMA", architecture=(8, 0)) == ()
    assert search_patterns("TMA bulk copies", architecture=(9, 0))[0].pattern.id == "bulk-copy-tma"
    assert search_patterns("TMA bulk copies", architecture=(10, 0))[0].pattern.id == "bulk-copy-tma"
    found = search_patterns("shared memory", operator="scan")
    assert found
    assert all("scan" in match.pattern.operators for match in found)


def test_scores_do_not_depend_on_filters() -> None:
    everywhere = {match.pattern.id: match.score for match in search_patterns("shared memory")}
    for match in search_patterns("shared memory", architecture=(7, 5), operator="transpose"):
        assert match.score == everywhere[match.pattern.id]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_finds_pages_without_words(operator: str) -> None:
    found = [match.pattern.id for match in search_patterns("", operator=operator)]
    assert found == sorted(found)
    assert len(found) >= 5


def test_without_words_or_filters_all_pages_come() -> None:
    assert [match.pattern.id for match in search_patterns("  ")] == sorted(patterns())


def test_the_same_words_give_the_same_pages_in_any_order() -> None:
    first = search_patterns("shared memory tile")
    assert first == search_patterns("shared memory tile")
    assert {m.pattern.id for m in search_patterns("tile memory shared")} == {m.pattern.id for m in first}
    assert [m.score for m in first] == sorted((m.score for m in first), reverse=True)
    assert search_patterns("shared memory tile", limit=2) == first[:2]


def test_nothing_that_fits() -> None:
    assert search_patterns("zeppelin") == ()
    assert search_patterns("the of a") == ()


def test_an_unknown_operator() -> None:
    with pytest.raises(UsageError, match=r"fft is no operator; operators are activation, attention"):
        search_patterns("x", operator="fft")

"""Gaps of a draft: each is told at its place, with what may stand there, and nothing else is told before."""

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.source import parse
from kernel_forge.spec import draft_block, read_specs
from tests.spec.reading import GOOD, PATH, at, source


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "message"),
    [
        ('"cdiv(n, 32)"', '"<fill in the grid>"', "KF106", '"<fill in the grid>"', "fill in the grid of the launch"),
        ("block = 32", 'block = "<fill in the block>"', "KF106", '"<fill in the block>"', "fill in the block of"),
        (
            "block = 32",
            'block = 32, shared = "<fill in the bytes>"',
            "KF106",
            '"<fill in the bytes>"',
            "bytes of dynamic shared memory",
        ),
        ("a = 2.0", 'a = "<fill in the value>"', "KF106", '"<fill in the value>"', "fill in the value of a"),
        (
            "a = 2.0",
            'a = 2.0, x = { shape = ["<fill in the shape>"] }',
            "KF106",
            '"<fill in the shape>"',
            "fill in the shape of x",
        ),
        (
            "a = 2.0",
            'a = 2.0, x = { init = "<fill in the contents>" }',
            "KF106",
            '"<fill in the contents>"',
            "fill in the contents of x",
        ),
        (
            "a = 2.0",
            'a = 2.0, x = { dtype = "<fill in the type>" }',
            "KF106",
            '"<fill in the type>"',
            "fill in the type of x's elements",
        ),
        ('"scale"', '"scale<<fill in N>>"', "KF106", '"scale<<fill in N>>"', "fill in the template argument"),
    ],
)
def test_a_gap_is_told_at_its_place(old: str, new: str, code: str, place: str, message: str) -> None:
    assert old in GOOD
    text = source(GOOD.replace(old, new))
    (problem,) = read_specs(parse(text, PATH)).problems
    assert problem.code == code
    assert message in problem.message
    assert at(text, problem.range) == place


def test_all_gaps_are_told_at_once() -> None:
    text = source(GOOD.replace('"a * x"', '"<fill in the reference>"').replace("a = 2.0", 'a = "<fill in the value>"'))
    problems = read_specs(parse(text, PATH)).problems
    assert sorted(p.code for p in problems) == ["KF106", "KF111"]


STRUCTURES = """\
struct Params { float a; int n; };
__global__ void affine(const float* x, float* y, Params p) { y[threadIdx.x] = p.a * x[threadIdx.x]; }
struct P3 { float x, y, z; };
__global__ void norms(const P3* p, float* len, int n) { len[threadIdx.x] = p[threadIdx.x].x; }
__global__ void table(float** rows, int n) { rows[0][threadIdx.x] = 0; }
typedef struct { float x, y; } Pair;
__global__ void pairs(Pair* p, int n) { p[threadIdx.x].x = 0; }
"""


@pytest.mark.parametrize(
    ("kernel", "place", "param"),
    [("affine", "2:50", "p"), ("norms", "4:23", "p"), ("table", "5:23", "rows"), ("pairs", "7:23", "p")],
)
def test_kernels_with_structures_are_refused_with_the_place(kernel: str, place: str, param: str) -> None:
    with pytest.raises(UsageError, match=rf"^{PATH}:{place}: no block can be drafted for {kernel}: parameter {param} "):
        draft_block(parse(STRUCTURES, PATH), kernel)


def test_a_pointer_to_a_headers_type_leaves_its_type_open() -> None:
    text = '#include "types.h"\n__global__ void k(real_t* y, int n) { int i = threadIdx.x; if (i < n) y[i] = 0; }\n'
    new = draft_block(parse(text, PATH), "k").edit.new_text
    assert 'y = { shape = ["n"], dtype = "<fill in the type>"' in new


def test_template_arguments_that_nobody_gives_are_gaps() -> None:
    text = "template <typename T, int N> __global__ void k(T* y) { y[threadIdx.x] = N; }\n"
    assert 'kernel = "k<float, <fill in N>>"' in draft_block(parse(text, PATH), "k").edit.new_text

"""References as NumPy expressions: what computes passes, what reaches Python does not."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.spec.numpy_expression import MAX_LENGTH, NumpyExpression
from kernel_forge.spec.numpy_names import FUNCTIONS, METHODS, SUBMODULES

NAMES = ("x", "y", "n")


def refused(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        NumpyExpression.parse(text, NAMES)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + y", [5.0, 7.0, 9.0]),
        ("np.sum(x)", 6.0),
        ("x.sum()", 6.0),
        ("numpy.maximum(x, 2)", [2.0, 2.0, 3.0]),
        ("math.sqrt(x * x)", [1.0, 2.0, 3.0]),
        ("np.add.reduce(x)", 6.0),
        ("np.where(x > 1, x, 0)", [0.0, 2.0, 3.0]),
        ("x[::-1]", [3.0, 2.0, 1.0]),
        ("x[..., None].shape", (3, 1)),
        ("np.stack([v * 2 for v in x if v > 1])", [4.0, 6.0]),
        ("np.array([a * b for a, b in zip(x, y)])", [4.0, 10.0, 18.0]),
        ("np.einsum('i,i->', x, y)", 32.0),
        ("np.linalg.norm(x[:1])", 1.0),
        ("np.fft.fft(x).real[0]", 6.0),
        ("x.astype('int32')", [1, 2, 3]),
        ("x.astype(np.float32)", [1, 2, 3]),
        ("x if n > 2 else y", [1.0, 2.0, 3.0]),
        ("max(len(x), n)", 3),
        ("np.pi * 0", 0.0),
        ("np.max(x, axis=0, keepdims=True)", [3.0]),
    ],
)
def test_what_computes(text: str, expected: object) -> None:
    made = NumpyExpression.parse(text, NAMES)
    found = made.evaluate({"x": np.array([1.0, 2.0, 3.0]), "y": np.array([4.0, 5.0, 6.0]), "n": 3})
    np.testing.assert_array_equal(found, expected)


def test_names_are_those_read() -> None:
    assert NumpyExpression.parse("np.sum(x) + [y for y in x][0]", NAMES).names == {"x"}
    assert NumpyExpression.parse("np * 2", ("np",)).names == {"np"}  # an argument may be called so


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__builtins__",
        "open('f')",
        "eval('1')",
        "getattr(x, 'tofile')",
        "vars(x)",
        "type(x)",
        "x.__class__",
        "x.sum.__self__",
        "().__class__.__base__.__subclasses__()",
        "x.tofile('f')",
        "x.dump('f')",
        "x.ctypes",
        "x.base",
        "x.data",
        "np.load('f')",
        "np.fromfile('f')",
        "np.save('f', x)",
        "np.genfromtxt('f')",
        "np.memmap('f')",
        "np.frombuffer(x)",
        "np.vectorize(abs)",
        "np.apply_along_axis(abs, 0, x)",
        "np.fromfunction(abs, 3)",
        "np.random.rand()",
        "np.lib.npyio",
        "np.lib",
        "np.linalg.linalg",
        "np.linalg.svd.__globals__",
        "np.core.multiarray",
        "np.sum.__globals__",
        "np.sum.reduce.__self__",
        "np.__builtins__",
        "np.os",
        "np.sys",
        "np.ctypeslib",
        "np.testing",
        "np.f2py",
        "np.show_config()",
        "np.set_printoptions()",
        "[np][0].load('f')",
        "[m for m in [np]]",
        "np",
        "(x, np)",
        "f'{x.__class__}'",
        "f'{x}'",
        "b'a'",
        "'{0.__class__}'.format(x)",
        "'%999999999d' % 1",
        "'a' * 9999999999",
        "9 ** 9 ** 9",
        "9 ** 99999",
        "9 ** (1 << 40)",
        "lambda: x",
        "(lambda: x)()",
        "(y := x)",
        "{v for v in x}",
        "{v: v for v in x}",
        "{}",
        "[0 for np.sin in [np.cos]]",  # would replace np.sin for everyone
        "[0 for x.T in [y]]",
        "[0 for x[0] in [y]]",
        "[0 for (a, np.sin) in [x]]",
        "[0 for [a, *x[:1]] in [x]]",
        "[0 for np in [x]]",
        "[0 for __builtins__ in [x]]",
        "[v async for v in x]",
        "(yield x)",
        "await x",
        "(v for v in x).gi_frame",
        "x; y",
        "import os",
        "print(x)",
        "exec('1')",
        "globals()",
        "ｎｐ.ｌｏａｄ('f')",  # Python folds such letters to ASCII before it looks names up
        "x.__ｃlass__",
        "breakpoint()",
        "z",
    ],
)
def test_what_does_not_compute_is_refused(text: str) -> None:
    refused(text)


def test_no_dunder_even_as_an_argument() -> None:
    with pytest.raises(ExpressionError):
        NumpyExpression.parse("__import__('os')", ["__import__"])


def test_importing_is_out_of_reach_when_evaluated() -> None:
    for text in ("__builtins__", "__import__"):
        with pytest.raises(ExpressionError):
            NumpyExpression.parse(text, ())


@pytest.mark.parametrize(
    ("text", "offset", "length"),
    [
        ("x + foo", 4, 3),
        ("  x + foo", 6, 3),
        ("'é' == foo", 7, 3),
        ("(x +\n foo)", 6, 3),
        ("np.sum(np.load(x))", 7, 7),
        ("x.tofile", 0, 8),
    ],
)
def test_the_place_of_a_problem(text: str, offset: int, length: int) -> None:
    error = refused(text)
    assert (error.offset, error.length) == (offset, length)


def test_a_misspelt_argument_gets_advice() -> None:
    with pytest.raises(ExpressionError, match="wieght is not an argument of the kernel; did you mean weight"):
        NumpyExpression.parse("x * wieght", ["x", "weight"])


def test_a_word_of_pythons_is_offered_as_it_can_be_written() -> None:
    with pytest.raises(
        ExpressionError,
        match=r"N is not an argument of the kernel; arguments are in_, out, and",
    ):
        NumpyExpression.parse("in_ + N", ["in", "out"])


@pytest.mark.parametrize("text", ["", "x +", "(" * 300, "\0", "-" * 3900 + "x", "x" * (MAX_LENGTH + 1)])
def test_what_is_no_expression(text: str) -> None:
    refused(text)


def test_every_listed_name_exists() -> None:
    assert not [f for f in FUNCTIONS if not hasattr(np, f)]
    assert not [s for s in SUBMODULES if not hasattr(getattr(np, s[0]), s[1])]
    assert not [m for m in METHODS - {"ptp"} if not hasattr(np.ndarray, m)]  # ptp: NumPy 1 only


pieces = st.sampled_from(
    "x y np . ( ) [ ] , sum load __class__ T for in if else lambda : = * ** 'a' 1 linalg at".split()
)


@given(st.one_of(st.text(max_size=40), st.lists(pieces, max_size=14).map("".join)))
def test_nothing_but_expression_errors(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        NumpyExpression.parse(text, NAMES)

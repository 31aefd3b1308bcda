"""A launch read from the file whose numbers are those of one instance: not taken for every value of a tunable."""

import pytest

from tests.spec.reading import block, read

SPEC = """\
kernel = "k<BLOCK, UNROLL>"
reference = "x + x"
cases = [{{ n = 100 }}]
{launch}

[tune]
BLOCK = [64, 256]
UNROLL = [1, 2]
"""
KERNEL = """\
template <int BLOCK, int UNROLL> __global__ void k(const float* x, float* y, int n) { }
void run(const float* x, float* y, int n) { %s }
"""


def messages(host: str, launch: str = "") -> list[tuple[str, str, list[str]]]:
    """Code, message and what the fixes insert, of every problem."""
    reading = read(block(SPEC.format(launch=launch)) + KERNEL % host)
    return [(p.code, p.message, [e.new_text for f in p.fixes for e in f.edits]) for p in reading.problems]


@pytest.mark.parametrize(
    ("host", "grid"),
    [
        ("k<256, 2><<<n, 256>>>(x, y, n);", "n"),
        ("k<256, 2><<<(n + 255) / 256, 256>>>(x, y, n);", "(n + BLOCK - 1) / BLOCK"),
        ("const int t = 256; k<t, 2><<<n, 128 * 2>>>(x, y, n);", "n"),
    ],
)
def test_a_block_that_is_the_value_of_a_tunable_is_refused_with_what_to_write(host: str, grid: str) -> None:
    """With BLOCK = 64 the program would launch 64 threads, which only its author can say."""
    ((code, message, inserted),) = messages(host)
    assert code == "KF113"
    assert "right for BLOCK = 256 alone" in message
    (text,) = inserted
    assert f'// grid = "{grid}"' in text
    assert '// block = "BLOCK"' in text


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        ("constexpr int B = 256; k<B, 2><<<n, B>>>(x, y, n);", ""),  # the launch itself says how it depends on it
        ("k<256, 2><<<n, 128>>>(x, y, n);", ""),  # no value of a tunable
        ("k<1, 2><<<n, 1>>>(x, y, n);", ""),  # a 1 stands for nothing
        ("k<256, 2><<<n, 256>>>(x, y, n);", 'launch = { grid = "n", block = "BLOCK" }'),
    ],
)
def test_what_does_not_depend_on_a_tunable_is_taken(host: str, launch: str) -> None:
    assert messages(host, launch) == []


@pytest.mark.parametrize(
    ("grid", "written"),
    [
        ("(n + 511) / 512", "(n + BLOCK * UNROLL - 1) / (BLOCK * UNROLL)"),
        ("n / 512", "n / (BLOCK * UNROLL)"),
        ("512", "512"),  # as many blocks whatever the block is: the program's own number
    ],
)
def test_a_divisor_that_is_the_product_of_tunables_is_one(grid: str, written: str) -> None:
    """A block of 256 threads with 2 items each covers 512; with 64 and 1 the program would divide by 64."""
    ((code, message, inserted),) = messages(f"k<256, 2><<<{grid}, 256>>>(x, y, n);")
    assert code == "KF113"
    assert ("right for BLOCK = 256, UNROLL = 2 alone" in message) == (written != grid)
    (text,) = inserted
    assert f"// grid = {written if written.isdigit() else chr(34) + written + chr(34)}" in text


def test_a_number_that_two_tunables_have_is_told_without_a_guess() -> None:
    ((code, message, inserted),) = messages("k<16, 16><<<n, 16>>>(x, y, n);")
    assert code == "KF113"
    assert "right for BLOCK = 16, UNROLL = 16 alone" in message
    assert inserted == []

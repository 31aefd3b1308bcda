"""Template arguments in drafts: tunables where only the launch depends on them, else what the file's launch gives."""

import pytest

from kernel_forge.source import parse
from kernel_forge.spec import draft_block, read_specs
from tests.spec.reading import PATH

COPY = """\
template <int BLOCK, int ITEMS>
__global__ void k(const float* x, float* y, int n) {
  for (int j = 0; j < ITEMS; ++j) { int i = (blockIdx.x * ITEMS + j) * BLOCK + threadIdx.x; if (i < n) y[i] = x[i]; }
}
void run(const float* x, float* y, int n) { %s }
"""
ROWS = """\
template <typename T, int BLOCK, int UNROLL, bool FAST>
__global__ void k(const T* x, T* y, int rows, int cols) {
  __shared__ T part[BLOCK];
  T sum = 0;
  for (int c = threadIdx.x; c < cols; c += BLOCK)
    sum += x[blockIdx.x * cols + c];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) { for (int i = 1; i < BLOCK; ++i) sum += part[i]; y[blockIdx.x] = sum; }
}
void run(const float* x, float* y, int rows, int cols, cudaStream_t s) {
  k<float, 256, 2, true><<<rows, 256, 0, s>>>(x, y, rows, cols);
}
"""


def drafted(text: str) -> dict[str, str]:
    """The lines of the draft by their keys, ``tune.BLOCK`` for one in a table."""
    found, table = {}, ""
    for line in draft_block(parse(text, PATH), "k").edit.new_text.splitlines():
        key, equals, value = line.removeprefix("// ").partition(" = ")
        if key.startswith("["):
            table = f"{key.strip('[]')}."
        elif equals:
            found[table + key] = value
    return found


def filled(text: str) -> str:
    """``text`` with its draft, the reference filled in."""
    made = draft_block(parse(text, PATH), "k").edit.new_text
    return made.replace("<fill in the reference>", "x") + text


@pytest.mark.parametrize(
    ("launch", "grid", "block"),
    [
        (
            "k<128, 4><<<(n + 511) / 512, 128>>>(x, y, n);",
            '"(n + BLOCK * ITEMS - 1) / (BLOCK * ITEMS)"',
            '"BLOCK"',
        ),
        # The launch says itself how it depends on them: nothing is to be added.
        (
            "constexpr int B = 128, I = 4; k<B, I><<<(n + B * I - 1) / (B * I), B>>>(x, y, n);",
            None,
            None,
        ),
    ],
)
def test_the_launch_is_in_terms_of_what_was_256(launch: str, grid: str | None, block: str | None) -> None:
    text = COPY % launch
    found = drafted(text)
    assert found["kernel"] == '"k<BLOCK, ITEMS>"'
    # The value of the file's own launch is the first, and so the default.
    assert (found["tune.BLOCK"], found["tune.ITEMS"]) == ("[128, 64, 256]", "[4, 2, 8]")
    assert (found.get("launch.grid"), found.get("launch.block")) == (grid, block)
    reading = read_specs(parse(filled(text), PATH))
    assert not reading.problems
    assert reading.specs[0].default_configuration == {"BLOCK": 128, "ITEMS": 4}


def test_types_switches_and_sizes_keep_their_arguments() -> None:
    found = drafted(ROWS)
    assert found["kernel"] == '"k<float, BLOCK, UNROLL, true>"'
    assert (found["launch.grid"], found["launch.block"]) == ('"rows"', '"BLOCK"')
    assert found["tune.UNROLL"] == "[2, 1, 4]"


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        # The extent of the arrays: with another value the kernel computes something else.
        (
            "template <int TILE> __global__ void k(const float* x, float* y) { int i = threadIdx.x; "
            "if (i < TILE) y[i] = x[i]; }\nvoid run(float* x, float* y) { k<16><<<1, 32>>>(x, y); }\n",
            '"k<16>"',
        ),
        # MODE is no name of a tuning parameter, it may be anything; and 512 is BLOCK * MODE, so no BLOCK without it.
        (COPY.replace("ITEMS", "MODE") % "k<128, 4><<<(n + 511) / 512, 128>>>(x, y, n);", '"k<128, 4>"'),
        # Two have the value of one number: which of them the number is cannot be told.
        (COPY % "k<16, 16><<<(n + 255) / 256, 16>>>(x, y, n);", '"k<16, 16>"'),
        # A grid with a number of its own: nobody can tell that it covers as much with other values.
        (COPY % "k<128, 4><<<(n + 511) >> 9, 128>>>(x, y, n);", '"k<128, 4>"'),
        # No launch at all: there is no value to begin with.
        (COPY % "", '"k<<fill in BLOCK>, <fill in ITEMS>>"'),
    ],
)
def test_what_is_no_tunable_is_left_as_it_is(text: str, kernel: str) -> None:
    found = drafted(text)
    assert found["kernel"] == kernel
    assert not [key for key in found if key.startswith("tune.") and kernel.count(key.removeprefix("tune.")) == 0]

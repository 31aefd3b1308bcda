"""Wrong kernels that a weaker verification lets pass: each differs from its contract only where few inputs lead."""

import pytest

from kernel_forge import wiring
from kernel_forge.domain.errors import DeviceUnavailable
from kernel_forge.domain.outcome import LaunchFailed, Mismatch, Outcome, Passed, RaceFound
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def file(reference: str, body: str, params: str = "const float* x, float* y, int n", extra: str = "") -> str:
    toml = (
        f'kernel = "k"\nreference = {{ y = "{reference}" }}\ncases = [{{ n = 1000 }}, {{ n = 77 }}]\n[args]\n{extra}'
        '[launch]\ngrid = "cdiv(n, 128)"\nblock = 128\n'
    )
    block = "".join(f"// {line}\n" for line in toml.splitlines())
    return f"// /// kernel-forge\n{block}// ///\n__global__ void k({params}) {{ {INDEX} if (i < n) {{ {body} }} }}\n"


WRONG = {
    "a threshold that is met exactly": file("x > 0.25", "y[i] = x[i] >= 0.25f;", "const float* x, int* y, int n"),
    "a threshold from an argument": file(
        "x > t", "y[i] = x[i] >= t;", "const float* x, int* y, float t, int n", "t = 0.7\n"
    ),
    "a choice at a threshold": file("np.where(x >= 0.75, x, 0)", "y[i] = x[i] > 0.75f ? x[i] : 0.f;"),
    "a threshold one rounding away": file("x > 1.5", "y[i] = x[i] > 1.50000012f;", "const float* x, int* y, int n"),
    "rounding of halves": file(
        "np.clip(np.rint(x * 16), -128, 127)",
        "y[i] = (signed char)fminf(fmaxf(floorf(x[i] * 16 + 0.5f), -128.f), 127.f);",
        "const float* x, signed char* y, int n",
    ),
    "a number where there is none": file("np.sqrt(x)", "y[i] = sqrtf(fmaxf(x[i], 0.f));"),
    "sixteen of thirty-two bits": file("x", "y[i] = (short)x[i];", "const int* x, int* y, int n"),
    "a limit on integers": file("x", "y[i] = min(x[i], 30000);", "const int* x, int* y, int n"),
    "the sign bit": file("x >> 1", "y[i] = ((int)x[i]) >> 1;", "const unsigned* x, unsigned* y, int n"),
    "a product in 32 bits": file("x * x", "y[i] = x[i] * x[i];", "const int* x, long long* y, int n"),
    "a threshold of integers": file("x > 40", "y[i] = x[i] >= 40;", "const int* x, int* y, int n"),
}
RIGHT = {
    "a threshold that is met exactly": file("x > 0.25", "y[i] = x[i] > 0.25f;", "const float* x, int* y, int n"),
    "a threshold no float holds": file("x > 0.7", "y[i] = x[i] > 0.7f;", "const float* x, int* y, int n"),
    "a threshold of a rounded value": file(
        "x * 0.1 > 0.07", "y[i] = x[i] * 0.1f > 0.07f;", "const float* x, int* y, int n"
    ),
    "roots of negative numbers": file("np.sqrt(x)", "y[i] = sqrtf(x[i]);"),
    "a root that may cancel to just below zero": file(
        "np.sqrt(1 - np.cos(x) ** 2)", "float c = cosf(x[i]); y[i] = sqrtf(fmaxf(1 - c * c, 0.f));"
    ),
    "integers that wrap": file("x * x + x", "y[i] = x[i] * x[i] + x[i];", "const unsigned* x, unsigned* y, int n"),
    "a mean of integers": file(
        "(x + np.roll(x, 1)) // 2 if n > 0 else x",
        "int s = x[i] + x[(i + n - 1) % n]; y[i] = s >> 1;",
        "const int* x, int* y, int n",
    ),
    "integers as floats": file("x * 0.5", "y[i] = x[i] * 0.5f;", "const int* x, float* y, int n"),
}


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        return wiring.device("emulator")
    except DeviceUnavailable as error:
        pytest.skip(str(error))


def outcome(text: str, device: Device, seed: int) -> Outcome:
    report = verify_file(VerifyRequest("/work/k.cu", text, seed=seed), device, lambda progress: None)
    assert not report.problems, report.problems
    return report.verdicts[0].outcome


@pytest.mark.parametrize("name", WRONG)
def test_found(name: str, device: Device) -> None:
    assert isinstance(outcome(WRONG[name], device, 1), Mismatch)


@pytest.mark.parametrize("name", RIGHT)
def test_not_a_false_alarm(name: str, device: Device) -> None:
    made = outcome(RIGHT[name], device, 2)
    assert isinstance(made, Passed), made


def test_sizes_that_no_list_has_come_up_sooner_or_later(device: Device) -> None:
    """Wrong for even sizes above 300 that are no multiple of a block: some seed of a few draws one."""
    wrong = file("2 * x", "y[i] = (n % 2 == 0 && n > 300 && n % 128 != 0 && n != 1000 ? 3 : 2) * x[i];")
    assert any(isinstance(outcome(wrong, device, seed), Mismatch) for seed in range(6))


def test_atomics_of_another_kernel_excuse_no_race(device: Device) -> None:
    """The order of blocks shows in the last bits only, within every tolerance."""
    racy = file("x + x", "y[i] = x[i] + x[i]; y[0] = 2 * x[0] * (1 + (blockIdx.x % 2) * 1.2e-7f);")
    other = "__global__ void sum(const float* x, float* s) { atomicAdd(s, x[threadIdx.x]); }\n"
    assert isinstance(outcome(racy + other, device, 1), RaceFound)


def test_a_serial_sum_of_terms_that_do_not_move_with_the_inputs(device: Device) -> None:
    """exp(x) for x near 0 is 1 whatever x is, but adding up 303 of them one by one still rounds 303 times."""
    toml = (
        'kernel = "k"\nreference = { y = "np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)" }\n'
        'cases = [{ rows = 40, cols = 303 }]\nwhere = ["cols > 0"]\n[args]\nx = { shape = ["rows", "cols"] }\n'
        'y = { shape = ["rows", "cols"] }\n[launch]\ngrid = "rows"\nblock = 1\n'
    )
    block = "".join(f"// {line}\n" for line in toml.splitlines())
    text = (
        f"// /// kernel-forge\n{block}// ///\n__global__ void k(const float* x, float* y, int rows, int cols) {{\n"
        "  const float* in = x + blockIdx.x * cols; float sum = 0;\n"
        "  for (int c = 0; c < cols; ++c) sum += expf(in[c]);\n"
        "  for (int c = 0; c < cols; ++c) y[blockIdx.x * cols + c] = expf(in[c]) / sum;\n}\n"
    )
    for seed in range(4):
        made = outcome(text, device, seed)
        assert isinstance(made, Passed), made


FIXED_GRID = """
// /// kernel-forge
// kernel = "k"
// reference = {{ hist = "hist + np.bincount(data, minlength=256)" }}
// cases = [{{ n = 5000 }}]
// [args]
// data = {{ shape = ["n"] }}
// hist = {{ shape = [256], role = "inout" }}
// [launch]
// grid = 128
// block = 256
// ///
__global__ void k(const unsigned char* data, unsigned* hist, int n) {{
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {count}
  __syncthreads();
  atomicAdd(&hist[threadIdx.x], bins[threadIdx.x]);
}}
"""


def test_a_race_on_a_grid_that_is_large_at_every_size(device: Device) -> None:
    wrong = FIXED_GRID.format(count="bins[data[i]] += 1u;")
    assert isinstance(outcome(wrong, device, 1), RaceFound | Mismatch)
    right = outcome(FIXED_GRID.format(count="atomicAdd(&bins[data[i]], 1u);"), device, 1)
    assert isinstance(right, Passed), right


def test_a_product_in_32_bits_where_the_reference_cannot_be_traced(device: Device) -> None:
    toml = (
        'kernel = "k"\nreference = { y = "np.array([np.sum(x.astype(np.int64) ** 2)])" }\ncases = [{ n = 300 }]\n'
        '[args]\nx = { shape = ["n"] }\ny = { shape = [1], role = "out" }\n[launch]\ngrid = 1\nblock = 1\n'
    )
    block = "".join(f"// {line}\n" for line in toml.splitlines())
    text = (
        f"// /// kernel-forge\n{block}// ///\n__global__ void k(const int* x, long long* y, int n) {{\n"
        "  long long s = 0;\n  for (int i = 0; i < n; ++i) s += %s * x[i];\n  *y = s;\n}\n"
    )
    assert isinstance(outcome(text % "x[i]", device, 1), Mismatch)
    right = outcome(text % "(long long)x[i]", device, 1)
    assert isinstance(right, Passed), right


def test_a_maximum_that_begins_at_zero(device: Device) -> None:
    """exp(x) / sum(exp(x)) by way of max(0, max x): 0 / 0 where every x is far below zero."""
    toml = (
        'kernel = "k"\nreference = { y = "np.exp(x - x.max(axis=1, keepdims=True)) / '
        'np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)" }\n'
        'cases = [{ rows = 8, cols = 40 }]\nwhere = ["cols > 0"]\n[args]\nx = { shape = ["rows", "cols"] }\n'
        'y = { shape = ["rows", "cols"] }\n[launch]\ngrid = "rows"\nblock = 1\n'
    )
    block = "".join(f"// {line}\n" for line in toml.splitlines())
    text = (
        f"// /// kernel-forge\n{block}// ///\n__global__ void k(const float* x, float* y, int rows, int cols) {{\n"
        "  const float* in = x + blockIdx.x * cols; float top = FIRST, sum = 0;\n"
        "  for (int c = 0; c < cols; ++c) top = fmaxf(top, in[c]);\n"
        "  for (int c = 0; c < cols; ++c) sum += expf(in[c] - top);\n"
        "  for (int c = 0; c < cols; ++c) y[blockIdx.x * cols + c] = expf(in[c] - top) / sum;\n}\n"
    )
    for seed in range(3):
        assert isinstance(outcome(text.replace("FIRST", "0.0f"), device, seed), Mismatch)
        right = outcome(text.replace("FIRST", "-INFINITY"), device, seed)
        assert isinstance(right, Passed), right


@pytest.mark.parametrize("bounds", ["64", "MOST / 2", "MOST - 1, 2"])
def test_a_block_larger_than_the_launch_bounds(device: Device, bounds: str) -> None:
    text = "#define MOST 128\n" + file("2 * x", "y[i] = 2 * x[i];")
    made = outcome(text.replace("void k(", f"void __launch_bounds__({bounds}) k("), device, 1)
    assert isinstance(made, LaunchFailed), made
    assert "128 threads" in made.message
    assert made.location is not None


@pytest.mark.parametrize("bounds", ["128", "MOST", "MOST * 2, 1", "sizeof(float) * 64"])
def test_a_block_within_the_launch_bounds(device: Device, bounds: str) -> None:
    text = "#define MOST 128\n" + file("2 * x", "y[i] = 2 * x[i];")
    made = outcome(text.replace("void k(", f"void __launch_bounds__({bounds}) k("), device, 1)
    assert isinstance(made, Passed), made

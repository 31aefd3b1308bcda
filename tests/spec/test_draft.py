"""Drafted blocks: what can be read off verifies unchanged; what cannot is a marked gap and nothing else is wrong."""

import pytest

from kernel_forge import wiring
from kernel_forge.domain.errors import DeviceUnavailable, UsageError
from kernel_forge.domain.outcome import Passed
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device
from kernel_forge.source import parse
from kernel_forge.spec import draft_block, read_specs
from kernel_forge.spec.references import GAP
from tests.spec import ordinary_kernels
from tests.spec.reading import PATH

ONE = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
TWO = "int c = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y;"
TREE = (
    "for (int s = 64; s > 0; s >>= 1) { if (threadIdx.x < s) p[threadIdx.x] += p[threadIdx.x + s]; __syncthreads(); }"
)
ROW = "(const float* x, float* y, int rows, int cols)"
FLAT = "(const float* x, float* y, int n)"


def kernel(params: str, body: str, before: str = "") -> str:
    return f"{before}__global__ void k{params} {{\n  {body}\n}}\n"


READ = {
    "elementwise": (
        kernel("(const float* x, float* y, int n, float a)", f"{ONE} if (i < n) y[i] = a * x[i] + fmaxf(x[i], 0.5f);"),
        "a * x + np.maximum(x, 0.5)",
    ),
    "early return and a choice": (
        kernel(FLAT, f"{ONE} if (i >= n) return; float v = x[i]; y[i] = v > 0.f ? v : 0.1f * v;"),
        "np.where((x) > 0.0, (x), 0.1 * (x))",
    ),
    "added to": (kernel(FLAT, f"{ONE} if (i < n) y[i] += 2.0f * x[i];"), "y + (2.0 * x)"),
    "grid stride": (
        kernel(FLAT, f"for ({ONE} i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * 2.0f;"),
        "x * 2.0",
    ),
    "two dimensions": (
        kernel(ROW, f"{TWO} if (r < rows && c < cols) y[r * cols + c] = 1.f + x[r * cols + c];"),
        "1.0 + x",
    ),
    "two dimensions, a bias and a scale": (
        kernel(
            "(const float* x, const float* bias, const float* scale, float* y, int rows, int cols)",
            f"{TWO} if (r >= rows || c >= cols) return; int i = r * cols + c; y[i] = scale[r] * x[i] + bias[c];",
        ),
        "scale[:, None] * x + bias",
    ),
    "row sum with a block": (
        kernel(
            ROW,
            "__shared__ float p[BLOCK]; int row = blockIdx.x; float sum = 0.f;\n"
            "  for (int c = threadIdx.x; c < cols; c += BLOCK) sum += x[row * cols + c];\n"
            f"  p[threadIdx.x] = sum; __syncthreads(); {TREE.replace('64', 'BLOCK / 2')}\n"
            "  if (threadIdx.x == 0) y[row] = p[0];",
            "#ifndef BLOCK\n#define BLOCK 128\n#endif\n",
        ),
        "np.sum(x, axis=1)",
    ),
    "row sum with a thread": (
        kernel(
            ROW,
            "int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return; float sum = 0.f;\n"
            "  for (int c = 0; c < cols; ++c) sum += x[row * cols + c];\n  y[row] = sum;",
        ),
        "np.sum(x, axis=1)",
    ),
    "total with one block": (
        kernel(
            FLAT,
            "__shared__ float p[128]; float sum = 0.f;\n"
            "  for (int i = threadIdx.x; i < n; i += 128) sum += x[i];\n"
            f"  p[threadIdx.x] = sum; __syncthreads(); {TREE}\n  if (threadIdx.x == 0) y[0] = p[0];",
        ),
        "np.sum(x).reshape(1)",
    ),
}
GAPS = {
    "integer division": kernel("(const int* x, int* y, int n)", f"{ONE} if (i < n) y[i] = x[i] / 2;"),
    "stored under a condition": kernel(FLAT, f"{ONE} if (i < n && x[i] > 0.f) y[i] = x[i];"),
    "a cast that truncates": kernel(FLAT, f"{ONE} if (i < n) y[i] = (int)x[i];"),
    "a neighbour": kernel(FLAT, f"{ONE} if (i < n) y[i] = x[(i + 1) % n];"),
    "a sum changed afterwards": kernel(
        ROW,
        "int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return; float sum = 0.f;\n"
        "  for (int c = 0; c < cols; ++c) sum += x[row * cols + c];\n  sum = sum * 0.5f; y[row] = sum;",
    ),
    "a column sum": kernel(
        ROW,
        "int c = blockIdx.x * blockDim.x + threadIdx.x; if (c >= cols) return; float sum = 0.f;\n"
        "  for (int r = 0; r < rows; ++r) sum += x[r * cols + c];\n  y[c] = sum;",
    ),
    "two outputs": kernel("(float* x, float* y, int n)", f"{ONE} if (i < n) {{ y[i] = 1.f; x[i] = 2.f; }}"),
}

READ |= ordinary_kernels.READ
GAPS |= ordinary_kernels.GAPS


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        return wiring.device("emulator")
    except DeviceUnavailable as error:
        pytest.skip(str(error))


def drafted(text: str) -> tuple[str, bool]:
    file = parse(text, PATH)
    draft = draft_block(file, "k")
    at = file.offset(draft.edit.range.start)
    return text[:at] + draft.edit.new_text + text[at:], draft.has_gaps


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_off_verifies_unchanged(name: str, device: Device) -> None:
    text, reference = READ[name]
    new, has_gaps = drafted(text)
    assert not has_gaps
    assert f'= "{reference}" }}' in new
    assert "check that this is what you want" in new
    report = verify_file(VerifyRequest(PATH, new, seed=1), device, lambda progress: None)
    assert not report.problems
    (verdict,) = report.verdicts
    assert isinstance(verdict.outcome, Passed), verdict.outcome


@pytest.mark.parametrize("name", GAPS)
def test_what_cannot_is_a_marked_gap(name: str) -> None:
    new, has_gaps = drafted(GAPS[name])
    assert has_gaps
    assert GAP in new
    problems = read_specs(parse(new, PATH)).problems
    assert "KF111" in {p.code for p in problems} <= {"KF111", "KF106"}
    assert all("fill in" in p.message for p in problems)


@pytest.mark.parametrize("name", ordinary_kernels.NEAR_MISSES)
def test_a_near_miss_is_not_taken_for_the_usual(name: str) -> None:
    base, changes = ordinary_kernels.NEAR_MISSES[name]
    text = ordinary_kernels.READ[base][0]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert drafted(text)[1]


def test_the_draft_keeps_indentation_line_ends_and_guards_below() -> None:
    text = READ["row sum with a block"][0].replace("\n", "\r\n")
    new, _ = drafted(text)
    assert new.startswith("// /// kernel-forge\r\n")
    assert "\n" not in new.replace("\r\n", "")
    assert "// BLOCK = [64, 128, 256]\r\n" in new
    indented, _ = drafted("namespace a {\n  " + READ["elementwise"][0] + "}\n")
    assert "\n  // /// kernel-forge\n  // kernel" in indented


def test_the_files_own_launch_is_not_repeated() -> None:
    text = READ["elementwise"][0] + "void run(float* x, float* y, int n) { k<<<(n + 63) / 64, 64>>>(x, y, n, 1.f); }\n"
    new, _ = drafted(text)
    assert "[launch]" not in new
    assert not read_specs(parse(new, PATH)).problems


def test_no_such_kernel() -> None:
    with pytest.raises(UsageError, match=r"no kernel other with a body \(it has: k\)"):
        draft_block(parse(READ["elementwise"][0], PATH), "other")

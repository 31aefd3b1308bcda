"""What a verify job does beside verifying."""

from pathlib import Path

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from tests.verify.fake_device import FakeDevice
from tests.verify.kernels import Flat

BLOCK = """// /// kernel-forge
// kernel = "w"
// reference = { y = "%s" }
// cases = [{ n = 1024 }]
// where = ["n %% BLOCK == 0"]
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// [launch]
// grid = "n // BLOCK"
// block = "BLOCK"
// [tune]
// BLOCK = [64, 100, 256]
// where = ["BLOCK %% 32 == 0"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
__global__ void w(const float* x, float* y, int n) {}
"""


def copy(x: Flat, y: Flat, n: int) -> None:
    y[:] = x


def request(reference: str = "x", path: str = "/w.cu", **configuration: int) -> VerifyRequest:
    return VerifyRequest(path, BLOCK % reference, seed=1, configuration=configuration)


def test_generated_sizes_are_legal_at_the_configuration_asked_for() -> None:
    """A grid of n // BLOCK covers whole blocks of 256, not of the default 64."""
    sizes = []

    def seen(x: Flat, y: Flat, n: int) -> None:
        sizes.append(n)
        copy(x, y, n)

    verify_file(request(BLOCK=256), FakeDevice(seen), lambda _: None)
    assert len(set(sizes)) > 2
    assert all(n % 256 == 0 for n in sizes)


@pytest.mark.parametrize(("value", "words"), [(128, "none of its values: 64, 100, 256"), (100, "BLOCK % 32 == 0")])
def test_a_configuration_outside_the_search_space_is_wrong_use(value: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        verify_file(request(BLOCK=value), FakeDevice(copy), lambda _: None)


def test_a_report_tells_whether_python_of_the_users_was_run(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text("def f(x):\n    return x\n")
    for reference, answer in (("x", False), ("ref.py:f", True)):
        made = verify_file(request(reference, str(tmp_path / "w.cu")), FakeDevice(copy), lambda _: None)
        assert made.ran_python is answer

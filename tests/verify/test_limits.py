"""References that never end or take all memory: one clear error at the reference, and nothing else is harmed."""

import resource
import time
from pathlib import Path

import numpy as np
import pytest

from kernel_forge.domain.outcome import Unavailable
from kernel_forge.verify import references
from kernel_forge.verify.limits import ReferenceFailed, limits
from kernel_forge.verify.user_code import UserFiles
from tests.verify.fake_device import check
from tests.verify.kernels import SCALE, Flat


def nothing(x: Flat, y: Flat, n: int) -> None:
    """No kernel gets that far."""


@pytest.mark.parametrize(
    "reference",
    [
        "sum(range(10 ** 15)) * x",
        "max(range(10 ** 15)) * x",
        "x * sum([k for k in range(10 ** 15)])",
        "sorted(k for k in range(10 ** 15))",
    ],
)
def test_a_reference_that_never_ends(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TIME_LIMIT", 0.2)
    signature, block = SCALE
    started = time.monotonic()
    outcome = check(signature, block.replace("2.5 * x", reference), nothing).outcome
    assert time.monotonic() - started < 10
    assert isinstance(outcome, Unavailable)
    assert outcome.reason == "the reference did not end within 0.2 s"
    assert outcome.location is not None


@pytest.mark.parametrize(
    "reference", ["np.zeros((10 ** 6, 10 ** 7)) + x", "np.ones(2 ** 40) + x", "tuple([x]) * 10 ** 12"]
)
def test_a_reference_that_wants_all_memory(reference: str) -> None:
    signature, block = SCALE
    before = resource.getrlimit(resource.RLIMIT_AS)
    outcome = check(signature, block.replace("2.5 * x", reference), nothing).outcome
    assert isinstance(outcome, Unavailable)
    assert outcome.reason == "the reference needs more than 4 GiB of memory"
    assert outcome.location is not None
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_memory_taken_bit_by_bit_by_a_function(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_text("def f(x):\n    kept = []\n    while True:\n        kept.append(bytearray(1 << 28))\n")
    function = UserFiles(tmp_path).function(file.name, "f")
    with pytest.raises(ReferenceFailed, match=r"^f needs more than 1 GiB of memory$"), limits(20, None, "f", 1 << 30):
        function(np.zeros(1))
    np.zeros(1 << 20)  # the limit is gone


def test_a_function_that_catches_everything_still_ends() -> None:
    def stubborn() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue

    with pytest.raises(ReferenceFailed, match=r"^the reference did not end within 0\.1 s$"), limits(0.1, None):
        stubborn()


def test_a_limit_within_a_limit_leaves_the_outer_one_in_force() -> None:
    end = time.monotonic() + 5
    with pytest.raises(ReferenceFailed, match=r"did not end within 0\.3 s"), limits(0.3, None):
        with limits(10, None):
            pass
        while time.monotonic() < end:
            pass
    assert time.monotonic() < end
    with pytest.raises(ReferenceFailed), limits(0.3, None), limits(10, None):
        while time.monotonic() < end:
            pass
    assert time.monotonic() < end

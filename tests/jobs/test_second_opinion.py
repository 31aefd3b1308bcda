"""What the emulator says beside a GPU: both are played by NumPy functions here."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kernel_forge.domain.outcome import LaunchFailed, Mismatch, Passed, Unavailable, Verdict
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.second_opinion import FOUND_NOTHING
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import DeviceInfo
from tests.jobs.test_verify import BLOCK, copy
from tests.verify.fake_device import FakeDevice
from tests.verify.kernels import Flat


class Played(FakeDevice):
    """A device that is a GPU with sanitizers, or the emulator."""

    def __init__(self, kernel: Callable[..., Any], *, emulator: bool, unavailable: str | None = None) -> None:
        super().__init__(kernel, basis="emulated" if emulator else "measured on a played GPU")
        self.emulator, self.unavailable = emulator, unavailable

    def info(self) -> DeviceInfo:
        made = replace(super().info(), has_misuse_checks=self.emulator, unavailable=self.unavailable)
        return made if self.emulator else replace(made, name="cuda", has_schedules=False, sanitizer=None)

    def sanitize(self, *_: Any) -> tuple[()]:
        return ()


def verdict(emulator: Played, gpu: Callable[..., Any] = copy, *, sanitize: bool = True) -> Verdict:
    request = VerifyRequest("/w.cu", BLOCK % "x", seed=1, sanitize=sanitize)
    (found,) = verify_file(request, Played(gpu, emulator=False), lambda _: None, emulator).verdicts
    return found


def wrong(x: Flat, y: Flat, n: int) -> None:
    np.multiply(x, 2, out=y)


def test_what_both_find_right_is_measured() -> None:
    found = verdict(Played(copy, emulator=True))
    assert isinstance(found.outcome, Passed)
    assert found.basis == "measured on a played GPU"
    assert FOUND_NOTHING in found.checks


def test_what_the_emulator_finds_wrong_is_said_as_emulated() -> None:
    found = verdict(Played(wrong, emulator=True))
    assert isinstance(found.outcome, Mismatch)
    assert found.basis == "emulated"
    assert any("it passed on cuda (measured on a played GPU)" in note for note in found.notes)


def test_the_emulator_is_not_asked_where_the_gpu_finds_it_wrong_or_nobody_asks() -> None:
    emulator = Played(copy, emulator=True)
    assert verdict(emulator, wrong).basis == "measured on a played GPU"
    assert FOUND_NOTHING not in verdict(emulator, sanitize=False).checks
    assert not emulator.requests


def test_an_emulator_that_cannot_tell_leaves_the_verdict_and_says_why() -> None:
    found = verdict(Played(copy, emulator=True, unavailable="no C++ compiler"))
    assert isinstance(found.outcome, Passed)
    assert found.skipped["emulator"] == "no C++ compiler"
    unavailable = verdict(Played(lambda *_: Unavailable("tex2D"), emulator=True))
    assert unavailable.skipped["emulator"] == "tex2D"


def test_a_launch_that_only_the_emulator_refuses_is_told() -> None:
    found = verdict(Played(lambda *_: LaunchFailed("configuration", "too many threads"), emulator=True))
    assert isinstance(found.outcome, LaunchFailed)
    assert found.basis == "emulated"

"""Selectors are compiled and asked: each tuned case gets its own configuration, and sizes between the nearest's."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_forge.domain.expression import Number
from kernel_forge.domain.spec import KernelSpec, Tunable
from kernel_forge.domain.text import Position, Range
from kernel_forge.domain.tuning import CaseChoice, KernelTuning
from kernel_forge.views.selector import selector_text
from kernel_forge.views.words import EMULATION
from tests.views.tunings import EMULATED, TUNING

PLACE = Range(Position(0, 0), Position(0, 1))


def spec(tunables: dict[str, tuple[Number, ...]], macros: set[str]) -> KernelSpec:
    return KernelSpec(
        kernel="scale",
        path="/work/scale.cu",
        block_path="/work/scale.cu",
        block_range=PLACE,
        name_range=PLACE,
        args=(),
        launches=(),
        references={},
        cases=(),
        tunables=tuple(Tunable(k, v, v[0]) for k, v in tunables.items()),
        macro_tunables=frozenset(macros),
    )


def tuned(*choices: tuple[dict[str, int], dict[str, Number]], like: KernelTuning = TUNING) -> KernelTuning:
    made = tuple(CaseChoice(sizes, configuration, 1e-5, None) for sizes, configuration in choices)
    return replace(like, cases=tuple(c.sizes for c in made), choices=made)


def answers(folder: Path, header: str, main: str, before: str = "") -> list[str]:
    """What a program prints that includes ``header`` (twice, as users may)."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (folder / "selector.h").write_text(header, encoding="utf-8")
    (folder / "main.cpp").write_text(
        f'#include <cstdio>\n#include <initializer_list>\n{before}\n#include "selector.h"\n#include "selector.h"\n'
        f"using namespace scale_tuning;\nint main() {{ {main} }}\n",
        encoding="utf-8",
    )
    words = [compiler, "-std=c++14", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.cpp"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([folder / "main"], capture_output=True, text=True, check=True, timeout=20)
    return ran.stdout.split()


def test_the_nearest_case_by_the_logarithm(tmp_path: Path) -> None:
    """Between 1000 and 100000 the middle is sqrt(1e3 * 1e5) = 10000, which is equally near: the earlier gets it."""
    tuning = tuned(
        ({"n": 1000}, {"BLOCK": 64, "VECTOR": False, "SCALE": 0.5}),
        ({"n": 100000}, {"BLOCK": 256, "VECTOR": True, "SCALE": 2}),
        ({"n": 0}, {"BLOCK": 32, "VECTOR": False, "SCALE": 1e20}),
    )
    values: dict[str, tuple[Number, ...]] = {"BLOCK": (32, 64, 256), "VECTOR": (False, True), "SCALE": (0.5, 2, 1e20)}
    header = selector_text(tuning, spec(values, set(values)))
    asked = [1000, 100000, 0, 1, -5, 9999, 10000, 10001, 31, 32, 10**15]
    calls = "".join(
        f'{{ auto c = tuned_for({n}LL); std::printf("%d,%d,%g ", c.BLOCK_, c.VECTOR_, c.SCALE_); }}' for n in asked
    )
    # Included where the tunables are macros.
    found = answers(tmp_path, header, calls, "#define BLOCK 128\n#define VECTOR 1\n#define SCALE 0.5f")
    first, second, third = "64,0,0.5", "256,1,2", "32,0,1e+20"
    # sqrt(1 * 1000) = 31.6: 31 is nearer to the case of 0, which counts as 1.
    assert found == [first, second, third, third, third, first, first, second, third, first, second]
    assert "No dispatch: BLOCK, VECTOR, SCALE are not among the template arguments" in header


def test_distances_of_two_sizes_add_up_as_squares(tmp_path: Path) -> None:
    """From (8, 8): to (1, 8) it is log 8 = 2.08, to (32, 32) sqrt(2) log 4 = 1.96, though log 4 + log 4 is more."""
    tuning = tuned(({"n": 1, "m": 8}, {"BLOCK": 64}), ({"n": 32, "m": 32}, {"BLOCK": 128}))
    header = selector_text(tuning, spec({"BLOCK": (64, 128)}, {"BLOCK"}))
    main = 'std::printf("%d %d", tuned_for(8, 8).BLOCK_, tuned_for(2, 8).BLOCK_);'
    assert answers(tmp_path, header, main) == ["128", "64"]


def test_dispatch_of_template_arguments(tmp_path: Path) -> None:
    tuning = tuned(({"n": 10}, {"BLOCK": 64, "FAST": False}), ({"n": 1000}, {"BLOCK": 2**40, "FAST": True}))
    header = selector_text(tuning, spec({"BLOCK": (64, 2**40), "FAST": (False, True)}, set()))
    before = 'template <long long B, bool F> void scale(int n) { std::printf("%lld,%d,%d ", B, F, n); }'
    main = (
        "for (int n : {10, 20, 99, 101, 1000}) dispatch(n, [&](auto b, auto f) { scale<decltype(b)::value, f>(n); });"
    )
    small, large = "64,0", f"{2**40},1"
    assert answers(tmp_path, header, main, before) == [
        f"{small},10",
        f"{small},20",
        f"{small},99",
        f"{large},101",
        f"{large},1000",
    ]


def test_no_dispatch_where_it_cannot_be() -> None:
    tuning = tuned(({"n": 10}, {"S": 0.5}), ({"n": 1000}, {"S": 2.0}))
    header = selector_text(tuning, spec({"S": (0.5, 2.0)}, set()))
    assert "void dispatch" not in header
    assert "No dispatch: a template argument that is no integer" in header


def test_members_have_names_of_their_own(tmp_path: Path) -> None:
    tuning = tuned(({"n": 1}, {"A": 1, "A_": 2}), ({"n": 9}, {"A": 3, "A_": 4}))
    header = selector_text(tuning, spec({"A": (1, 3), "A_": (2, 4)}, {"A", "A_"}))
    assert answers(tmp_path, header, 'std::printf("%d %d", tuned_for(9).A__, tuned_for(9).A___);') == ["3", "4"]


def test_what_the_times_are_stands_in_it() -> None:
    choices = (({"n": 10}, {"B": 64}), ({"n": 1000}, {"B": 32}))
    measured = selector_text(tuned(*choices), spec({"B": (64, 32)}, {"B"}))
    assert "times: measured on NVIDIA H200." in measured
    assert EMULATION not in measured
    assert EMULATION in selector_text(tuned(*choices, like=EMULATED), spec({"B": (64, 32)}, {"B"}))


def test_no_choice() -> None:
    with pytest.raises(ValueError, match="no choices by size"):
        selector_text(TUNING, spec({"BLOCK": (1,)}, set()))

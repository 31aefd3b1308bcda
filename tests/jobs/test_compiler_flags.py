"""Flags of the user's for the CUDA compiler."""

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.jobs.compiler_flags import compiler_flags


def test_flags_of_the_request_win_over_those_of_the_build() -> None:
    assert compiler_flags(["--use_fast_math", "-std=c++20"], ["-std=c++17"]) == ("-use_fast_math", "-std=c++20")
    assert compiler_flags([], ["-std=c++20"]) == ("-std=c++20",)
    assert compiler_flags(["-fmad=false", "-fmad=false"], []) == ("-fmad=false",)


@pytest.mark.parametrize(
    "flag",
    [
        "-o",
        "--run",
        "-arch=sm_80",
        "use_fast_math",
        "-fmad=maybe",
        "-maxrregcount=0",
        "-std=c++14",
        "",
        "-ftz=true -o x",
    ],
)
def test_what_is_not_accepted_is_wrong_use(flag: str) -> None:
    with pytest.raises(UsageError, match="is none of -use_fast_math, "):
        compiler_flags([flag], [])

"""The user's flags for the CUDA compiler: those that change what the code computes or takes, and no others.

A flag that names a file, an architecture or an output would be at odds with what a device does itself.
"""

import re
from collections.abc import Iterable, Sequence

from kernel_forge.domain.errors import UsageError

ACCEPTED = (
    "-use_fast_math",
    "-fmad=true|false",
    "-ftz=true|false",
    "-prec-div=true|false",
    "-prec-sqrt=true|false",
    "-maxrregcount=N",
    "-std=c++17|c++20|c++23",
    "-extra-device-vectorization",
)
_FORM = re.compile(
    r"-(use_fast_math|(fmad|ftz|prec-div|prec-sqrt)=(true|false)|maxrregcount=[1-9]\d{0,2}|std=c\+\+(17|20|23)"
    r"|extra-device-vectorization)"
)


def compiler_flags(own: Sequence[str], of_the_build: Iterable[str]) -> tuple[str, ...]:
    """The flags to compile with: ``own`` of the request, before which those of the user's build give way.

    Raises:
        UsageError: one of ``own`` is none of :data:`ACCEPTED` (one or two dashes, no space within).
    """
    checked = []
    for flag in own:
        plain = "-" + flag.lstrip("-") if flag[:1] == "-" else flag
        if not _FORM.fullmatch(plain):
            known = ", ".join(ACCEPTED)
            raise UsageError(f"compiler flag {flag[:100]!r} is none of {known}; folders go by -I, macros by -D")
        checked.append(plain)
    set_here = {flag.partition("=")[0] for flag in checked}
    return (*(flag for flag in of_the_build if flag.partition("=")[0] not in set_here), *dict.fromkeys(checked))

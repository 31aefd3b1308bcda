"""How a job compiles: what the request says, before what the user's own build says."""

from dataclasses import replace

from kernel_forge.jobs.compile_database import CompileOptions, compile_options
from kernel_forge.jobs.compiler_flags import compiler_flags
from kernel_forge.jobs.requests import KernelRequest


def options_of(request: KernelRequest) -> CompileOptions:
    """The options of ``request`` and of the database of its file, together.

    Raises:
        UsageError: a compiler flag of the request is not accepted.
    """
    built = compile_options(request.path)
    return replace(
        built,
        include_dirs=(*request.include_dirs, *built.include_dirs),
        defines={**built.defines, **request.defines},
        flags=compiler_flags(request.flags, built.flags),
    )

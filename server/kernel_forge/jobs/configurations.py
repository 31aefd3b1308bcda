"""The configuration and the sizes a job uses: those of the spec, with what was asked for in their place."""

from collections.abc import Mapping

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.spec import Configuration, KernelSpec, Sizes
from kernel_forge.spec.configurations import problem_with


def chosen_configuration(spec: KernelSpec, asked: Mapping[str, int | float | bool]) -> Configuration:
    """The defaults with those values of ``asked`` that are tunables of ``spec`` in their place.

    Raises:
        UsageError: the spec does not admit that configuration.
    """
    own = {k: v for k, v in asked.items() if k in spec.default_configuration}
    chosen = {**spec.default_configuration, **own}
    problem = problem_with(spec, chosen) if own else None
    if problem is not None:
        raise UsageError(f"{spec.kernel}: {problem}")
    return chosen


def fixed_tunables(spec: KernelSpec, asked: Mapping[str, int | float | bool]) -> Configuration:
    """Those of ``asked`` that are tunables of ``spec``.

    Raises:
        UsageError: a value is none of its tunable's.
    """
    found = {}
    for tunable in spec.tunables:
        if tunable.name in asked:
            value = asked[tunable.name]
            if value not in tunable.values:
                known = ", ".join(map(str, tunable.values))
                raise UsageError(f"{spec.kernel}: {tunable.name} = {value} is none of its values: {known}")
            found[tunable.name] = value
    return found


def chosen_sizes(spec: KernelSpec, asked: Mapping[str, int]) -> Sizes:
    """The first case with the sizes of ``asked`` in their place.

    Raises:
        UsageError: the kernel has no such size.
    """
    for name in asked:
        if name not in spec.sizes:
            known = ", ".join(spec.sizes) or "none"
            raise UsageError(f"{spec.kernel} has no size {name} (sizes: {known})")
    return {**spec.cases[0], **asked}


def in_words(sizes: Sizes) -> str:
    """``n = 1024, m = 64``."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "its one case"

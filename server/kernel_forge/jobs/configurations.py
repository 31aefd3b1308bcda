"""The configuration a job uses: the defaults of the spec with what was asked for in their place."""

from collections.abc import Mapping

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.spec import Configuration, KernelSpec
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

"""Which configurations a spec admits; the one place that says so."""

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.spec import Configuration, KernelSpec


def problem_with(spec: KernelSpec, configuration: Configuration) -> str | None:
    """Why ``configuration`` (every tunable with a value) is not one of the search space of ``spec``, or None.

    Constraints that name sizes must hold for the tuning case, the first.
    """
    for tunable in spec.tunables:
        value = configuration.get(tunable.name)
        if value is None:
            return f"{tunable.name} has no value"
        if value not in tunable.values:
            return f"{tunable.name} = {value} is none of its values: {', '.join(map(str, tunable.values))}"
    sizes = spec.cases[0] if spec.cases else {}
    for constraint in spec.tune_where:
        try:
            holds = bool(constraint.evaluate({**sizes, **configuration}))
        except ExpressionError as error:
            return f"{constraint.text}: {error}"
        if not holds:
            shown = ", ".join(f"{k} = {v}" for k, v in configuration.items())
            return f"{shown} breaks the constraint {constraint.text}"
    return None

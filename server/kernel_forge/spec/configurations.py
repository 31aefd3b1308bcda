"""Which configurations a spec admits; the one place that says so."""

import math
from itertools import product

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.spec import Configuration, KernelSpec

MOST_COUNTED = 4096
"""Combinations whose constraints are evaluated one by one for :func:`count_of`: in some milliseconds."""


def count_of(spec: KernelSpec) -> int | None:
    """How many configurations ``spec`` admits; None where that takes long to tell."""
    combinations = math.prod(len(t.values) for t in spec.tunables)
    if not spec.tune_where:
        return combinations
    if combinations > MOST_COUNTED:
        return None
    names = [t.name for t in spec.tunables]
    values = product(*(t.values for t in spec.tunables))
    return sum(problem_with(spec, dict(zip(names, each, strict=True))) is None for each in values)


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

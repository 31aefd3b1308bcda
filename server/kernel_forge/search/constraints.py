"""Constraints over ranks: which rows of a table of configurations satisfy an expression.

A constraint that has no value for a configuration (a division by zero) is violated by it, as
:func:`kernel_forge.spec.configurations.problem_with` says for one configuration; how often that happened is counted.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.search.array_expression import Column, NotVectorizable, evaluate_columns
from kernel_forge.search.parameters import Ints, Mask, Parameter

Ranks = npt.NDArray[np.int16]
"""Configurations as places of values in their parameters' lists, shape ``(configurations, parameters)``."""

_EVALUATED_AT_ONCE = 1 << 20
MOST_ONE_BY_ONE = 1_000_000
"""Combinations for which a constraint that columns of integers cannot do is evaluated: about ten seconds."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Which rows satisfy a constraint, shape ``(rows,)``; how many rows it has no value for, and why."""

    holds: Mask
    without_value: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A part of a constraint as written: ``a and b`` is checked as ``a``, then ``b`` where ``a`` holds."""

    expression: Expression
    written: str

    def check(self, parameters: Sequence[Parameter], ranks: Ranks, sizes: Mapping[str, Number]) -> Checked:
        """Check every row of ``ranks``, whose columns are ``parameters``; ``sizes`` are further names' values."""
        used = [k for k, p in enumerate(parameters) if p.name in self.expression.names]
        if not used or not len(ranks):
            return self._repeated(len(ranks), sizes)
        lengths = [len(parameters[k].values) for k in used]
        codes = np.ravel_multi_index([ranks[:, k] for k in used], lengths) if _fits(lengths) else None
        if codes is None or np.prod(lengths) > len(ranks):
            return self._check_rows([parameters[k] for k in used], ranks[:, used], sizes)
        # Fewer combinations of the parameters it names than rows: each combination is evaluated once.
        combinations = np.array(np.unravel_index(np.arange(np.prod(lengths)), lengths)).T.astype(np.int16)
        present = np.flatnonzero(np.bincount(codes, minlength=len(combinations)))
        found = self._check_rows([parameters[k] for k in used], combinations[present], sizes)
        table = np.zeros(len(combinations), bool)
        table[present] = found.holds
        return Checked(table[codes], found.without_value, found.reason)

    def _repeated(self, rows: int, sizes: Mapping[str, Number]) -> Checked:
        holds, reason = self._scalar(sizes)
        return Checked(np.full(rows, holds), rows if reason else 0, reason)

    def _check_rows(self, parameters: Sequence[Parameter], ranks: Ranks, sizes: Mapping[str, Number]) -> Checked:
        blocks = range(0, len(ranks), _EVALUATED_AT_ONCE)
        parts = [self._check_block(parameters, ranks[b : b + _EVALUATED_AT_ONCE], sizes) for b in blocks]
        without = sum(p.without_value for p in parts)
        reason = next((p.reason for p in parts if p.reason), "")
        return Checked(np.concatenate([p.holds for p in parts]), without, reason)

    def _check_block(self, parameters: Sequence[Parameter], ranks: Ranks, sizes: Mapping[str, Number]) -> Checked:
        column = self._columns(parameters, ranks, sizes)
        if column is None and len(ranks) > MOST_ONE_BY_ONE:
            raise UsageError(
                f"the constraint {self.written} has to be evaluated one by one for more than {MOST_ONE_BY_ONE:,} "
                f"combinations, for it is not of integers and + - * / // % & | ^, comparisons, min, max, abs, cdiv and "
                f"round_up alone; write it with those, or give fewer values"
            )
        column = column or Column(np.zeros(len(ranks), np.int64), np.ones(len(ranks), bool))
        holds = column.values != 0
        without, reason = 0, ""
        for row in np.flatnonzero(column.doubtful):
            # Text among the values is refused by the evaluator, as any other type that does not fit.
            values: dict[str, Any] = {p.name: p.values[r] for p, r in zip(parameters, ranks[row], strict=True)}
            holds[row], why = self._scalar({**sizes, **values})
            without, reason = without + bool(why), reason or why
        return Checked(holds, without, reason)

    def _columns(self, parameters: Sequence[Parameter], ranks: Ranks, sizes: Mapping[str, Number]) -> Column | None:
        fixed = {name: value for name, value in sizes.items() if name in self.expression.names}
        values = [v for p in parameters for v in p.values] + list(fixed.values())
        try:
            if not all(isinstance(v, int) and abs(v) < 2**53 for v in values):
                raise NotVectorizable
            columns: dict[str, Ints] = {
                p.name: np.array([int(v) for v in p.values])[ranks[:, k]] for k, p in enumerate(parameters)
            }
            columns.update({name: np.full(len(ranks), int(value)) for name, value in fixed.items()})
            return evaluate_columns(self.expression, columns)
        except NotVectorizable:
            return None

    def _scalar(self, values: Mapping[str, Number]) -> tuple[bool, str]:
        try:
            return bool(self.expression.evaluate(values)), ""
        except ExpressionError as error:
            return False, str(error)


def parts_of(constraints: Iterable[Expression]) -> list[Constraint]:
    """Every constraint, those that are conjunctions split into their parts, which name fewer parameters each."""
    found = []
    for constraint in constraints:
        tree = ast.parse(constraint.text.strip(), mode="eval").body
        pieces = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
        for piece in pieces:
            text = constraint.text.strip() if len(pieces) == 1 else ast.unparse(piece)
            found.append(Constraint(Expression.parse(text), constraint.text.strip()))
    return found


def _fits(lengths: Sequence[int]) -> bool:
    return float(np.prod(np.array(lengths, float))) < 2**26

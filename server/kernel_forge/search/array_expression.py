"""An expression over integer columns at once; exact where it answers, silent where only scalars would be.

:meth:`kernel_forge.domain.expression.Expression.evaluate` says what an expression means. Here the same syntax tree runs
over whole columns of integers. Rows where the two could differ (a division by zero, which a short circuit
may have avoided, or a number beyond 53 bits) are marked *doubtful*, for the caller to ask the scalar evaluator.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.expression import Expression
from kernel_forge.search.parameters import Ints, Mask

_LARGEST = 2**53


class NotVectorizable(Exception):
    """The expression uses something that columns of integers cannot do (``sqrt``, a fraction, a power)."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one expression, and the rows where they are not to be trusted; both of shape ``(rows,)``."""

    values: Ints
    doubtful: Mask


def evaluate_columns(expression: Expression, columns: Mapping[str, Ints]) -> Column:
    """``expression`` for every row of ``columns`` (each of shape ``(rows,)``, dtype int64).

    Raises:
        NotVectorizable: ask the scalar evaluator for all rows.
    """
    rows = len(next(iter(columns.values())))
    with np.errstate(all="ignore"):
        return _value(ast.parse(expression.text.strip(), mode="eval").body, columns, rows)


def _bounded(values: Ints, doubtful: Mask, bound: "Ints | None" = None) -> Column:
    return Column(values, doubtful | (np.abs(values if bound is None else bound) >= _LARGEST))


def _floor_divide(a: Ints, b: Ints) -> Ints:
    return np.floor_divide(a, np.where(b == 0, 1, b))


def _c_divide(a: Ints, b: Ints) -> Ints:
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where((a >= 0) == (b >= 0), quotient, -quotient)


_EXACT: Mapping[type[ast.operator], Callable[[Ints, Ints], Ints]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
}
_DIVIDE: Mapping[type[ast.operator], Callable[[Ints, Ints], Ints]] = {
    ast.Div: _c_divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: lambda a, b: np.mod(a, np.where(b == 0, 1, b)),
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Ints, Ints], Mask]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


def _value(node: ast.expr, columns: Mapping[str, Ints], rows: int) -> Column:
    def of(child: ast.expr) -> Column:
        return _value(child, columns, rows)

    match node:
        case ast.Constant(value=bool() | int() as constant) if abs(constant) < _LARGEST:
            return Column(np.full(rows, int(constant), np.int64), np.zeros(rows, bool))
        case ast.Name(id=name) if name in columns:
            return _bounded(columns[name], np.zeros(rows, bool))
        case ast.BinOp(op=op, left=left, right=right):
            return _binary(op, of(left), of(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = of(operand)
            return Column(np.negative(inner.values), inner.doubtful)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return of(operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = of(operand)
            return Column((inner.values == 0).astype(np.int64), inner.doubtful)
        case ast.BoolOp(op=op, values=operands):
            parts = [of(v) for v in operands]
            truths = np.array([p.values != 0 for p in parts])
            truth = truths.all(0) if isinstance(op, ast.And) else truths.any(0)
            return Column(np.asarray(truth, np.int64), np.any([p.doubtful for p in parts], axis=0))
        case ast.Compare(left=left, ops=ops, comparators=rest):
            items = [of(v) for v in (left, *rest)]
            holds = [_COMPARE[type(op)](a.values, b.values) for op, a, b in zip(ops, items, items[1:], strict=False)]
            return Column(np.all(holds, axis=0).astype(np.int64), np.any([i.doubtful for i in items], axis=0))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            chosen, yes, no = of(test), of(body), of(orelse)
            values = np.where(chosen.values != 0, yes.values, no.values)
            return Column(values, chosen.doubtful | yes.doubtful | no.doubtful)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _call(name, [of(a) for a in arguments])
    raise NotVectorizable


def _binary(op: ast.operator, a: Column, b: Column) -> Column:
    doubtful = a.doubtful | b.doubtful
    if type(op) in _EXACT:
        return _bounded(_EXACT[type(op)](a.values, b.values), doubtful)
    if type(op) in _DIVIDE:
        return Column(_DIVIDE[type(op)](a.values, b.values), doubtful | (b.values == 0))
    if isinstance(op, ast.Mult):
        # The size in floating point says whether the product fits, where the integer product would wrap.
        size = np.abs(a.values.astype(np.float64)) * np.abs(b.values.astype(np.float64))
        return Column(a.values * b.values, doubtful | (size >= _LARGEST))
    raise NotVectorizable


def _call(name: str, arguments: list[Column]) -> Column:
    values, doubtful = [a.values for a in arguments], np.any([a.doubtful for a in arguments], axis=0)
    match name, values:
        case ("min", [_, _, *_]):
            return Column(np.min(values, axis=0), doubtful)
        case ("max", [_, _, *_]):
            return Column(np.max(values, axis=0), doubtful)
        case ("abs", [only]):
            return Column(np.abs(only), doubtful)
        case ("int", [only]):
            return Column(only, doubtful)
        case ("cdiv", [a, b]):
            return Column(-_floor_divide(-a, b), doubtful | (b == 0))
        case ("round_up", [a, b]):
            return _bounded(-_floor_divide(-a, b) * b, doubtful | (b == 0))
    raise NotVectorizable

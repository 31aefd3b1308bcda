"""Safe arithmetic for shapes, launches and constraints: a subset of Python's syntax, never ``eval``.

Differences from Python, chosen because these expressions stand beside CUDA code: ``/`` between
integers divides as in C (towards zero), and integers beyond 128 bits are an error, not a long wait.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.errors import ExpressionError

Number = int | float | bool
MAX_LENGTH = 2000
_MAX_BITS = 128


def _cdiv(a: Number, b: Number) -> Number:
    return -(-a // b)


def _round_up(a: Number, b: Number) -> Number:
    return _cdiv(a, b) * b


def _c_divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a >= 0) == (b >= 0) else -quotient
    return a / b


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and (b < 0 or b * max(1, a.bit_length()) > _MAX_BITS):
        raise OverflowError("the exponent is out of range")
    result: object = a**b
    if not isinstance(result, int | float):
        raise ValueError("a root of a negative number")
    return result


def _shift_left(a: Number, b: Number) -> Number:
    if not (isinstance(a, int) and isinstance(b, int)) or not 0 <= b <= _MAX_BITS:
        raise OverflowError("the shift is out of range")
    return a << b


FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "cdiv": _cdiv,
    "round_up": _round_up,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "int": int,
}
_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _c_divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,  # type: ignore[dict-item]  # a float raises TypeError, caught below
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Expression:
    """A checked expression; equal when its text is equal.

    Attributes:
        text: as written.
        names: the free variables (function names excluded).
    """

    text: str
    names: frozenset[str] = field(compare=False)
    _tree: ast.expr = field(compare=False, repr=False)

    @staticmethod
    def parse(text: str | int) -> "Expression":
        """Check ``text`` and keep its syntax tree.

        Raises:
            ExpressionError: not an expression, too long, or a construct that is not arithmetic;
                ``offset`` points at it.
        """
        text = str(text) if isinstance(text, str) or text.bit_length() <= _MAX_BITS else hex(text)
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"expression longer than {MAX_LENGTH} characters", 0, len(text))
        lead = len(text) - len(text.lstrip())
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            offset = (getattr(error, "offset", None) or 1) - 1 + lead
            reason = "nested too deeply" if isinstance(error, RecursionError | MemoryError) else "not an expression"
            raise ExpressionError(f"{reason}: {text!r}", min(offset, max(0, len(text) - 1))) from None
        names: set[str] = set()
        try:
            _check(tree, names, text)
        except RecursionError:
            raise ExpressionError("nested too deeply", 0, len(text)) from None
        return Expression(text, frozenset(names), tree)

    def evaluate(self, bindings: Mapping[str, Number]) -> Number:
        """The value under ``bindings``.

        Raises:
            ExpressionError: unbound name, division by zero, overflow, or a type that does not fit.
        """
        try:
            return _evaluate(self._tree, bindings)
        except KeyError as error:
            name = str(error.args[0])
            raise ExpressionError(f"{name!r} has no value in {self.text!r}", *self.place_of(name)) from None
        except _Failed as failed:
            place = span(failed.node, self.text)
            if isinstance(failed.error, ZeroDivisionError):
                raise ExpressionError(f"division by zero in {self.text!r}", *place) from None
            raise ExpressionError(f"cannot evaluate {self.text!r}: {failed.error}", *place) from None
        except RecursionError:
            raise ExpressionError("nested too deeply", 0, len(self.text)) from None

    def place_of(self, name: str) -> tuple[int, int]:
        """Offset and length of the first use of a variable; of the whole text where it is spelt otherwise."""
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.text)
        return (match.start(), len(name)) if match is not None else (0, len(self.text))

    def evaluate_int(self, bindings: Mapping[str, Number]) -> int:
        """The value as an integer (a float with an integral value is accepted).

        Raises:
            ExpressionError: as :meth:`evaluate`, or the value is not integral.
        """
        value = self.evaluate(bindings)
        if isinstance(value, float):
            if not value.is_integer():
                raise ExpressionError(f"{self.text!r} is {value:g}, not an integer", 0, len(self.text))
            if abs(value) >= 2.0**_MAX_BITS:
                raise ExpressionError(f"{self.text!r} exceeds {_MAX_BITS} bits", 0, len(self.text))
        return int(value)


def span(node: ast.AST, text: str) -> tuple[int, int]:
    """Offset and length, in code points of ``text``, of a node parsed from ``text`` without its outer space."""
    stripped = text.strip()
    line_starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", stripped))]

    def offset(line: int, column: int) -> int:
        start = line_starts[min(line, len(line_starts)) - 1]
        return start + len(stripped[start:].encode()[:column].decode(errors="ignore"))

    begin = offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
    end = offset(getattr(node, "end_lineno", None) or 1, getattr(node, "end_col_offset", None) or 0)
    return begin + len(text) - len(text.lstrip()), max(1, end - begin)


def _check(node: ast.expr, names: set[str], text: str) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return
        case ast.Name(id=name):
            names.add(name)
            return
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            children = [left, right]
        case ast.UnaryOp(op=unary, operand=operand) if type(unary) in _UNARY:
            children = [operand]
        case ast.BoolOp(values=values):
            children = values
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARE for op in ops):
            children = [left, *rest]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            children = args
        case _:
            allowed = ", ".join(sorted(FUNCTIONS))
            raise ExpressionError(
                f"only numbers, names, arithmetic, comparisons and {allowed} are allowed here",
                *span(node, text),
            )
    for child in children:
        _check(child, names, text)


class _Failed(Exception):
    """The innermost part of an expression that has no value."""

    def __init__(self, node: ast.expr, error: Exception) -> None:
        super().__init__(str(error))
        self.node, self.error = node, error


def _evaluate(node: ast.expr, bindings: Mapping[str, Number]) -> Number:
    try:
        return _value(node, bindings)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _Failed(node, error) from None


def _value(node: ast.expr, bindings: Mapping[str, Number]) -> Number:
    value: Number
    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            value = constant
        case ast.Name(id=name):
            value = bindings[name]
        case ast.BinOp(op=op, left=left, right=right):
            value = _BINARY[type(op)](_evaluate(left, bindings), _evaluate(right, bindings))
        case ast.UnaryOp(op=unary, operand=operand):
            value = _UNARY[type(unary)](_evaluate(operand, bindings))
        case ast.BoolOp(op=ast.And(), values=values):
            value = all(_evaluate(v, bindings) for v in values)
        case ast.BoolOp(values=values):
            value = any(_evaluate(v, bindings) for v in values)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            items = [_evaluate(v, bindings) for v in (left, *rest)]
            value = all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, items, items[1:], strict=False))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            value = _evaluate(body if _evaluate(test, bindings) else orelse, bindings)
        case ast.Call(func=ast.Name(id=name), args=args):
            value = FUNCTIONS[name](*(_evaluate(a, bindings) for a in args))
        case _:
            raise TypeError(f"unexpected {type(node).__name__}")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise OverflowError("the value exceeds 128 bits")
    return value

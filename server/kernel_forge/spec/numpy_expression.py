"""References written as NumPy expressions: checked by syntax tree, then evaluated on arrays.

What is allowed is what computes: arithmetic, comparisons, indexing, NumPy functions and array methods from a
list. Nothing that reads a file, imports, or reaches Python's internals. This is a guard against mistakes and
against text written by a model; running a reference at all still needs a trusted workspace.
"""

import ast
import difflib
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import span
from kernel_forge.spec.numpy_names import FUNCTIONS, METHODS, NAMESPACES, NUMPY_NAMES, SUBMODULES, UFUNC_METHODS

MAX_LENGTH = 4000
MAX_EXPONENT = 1024


def _returning(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` so that it returns to Python for each item: no signal, and no time limit, reaches a loop in C."""

    def made(*args: Any, **kwargs: Any) -> Any:
        first, *rest = args
        each = (item for item in first) if hasattr(first, "__iter__") and not hasattr(first, "dtype") else first
        return function(each, *rest, **kwargs)

    return made


_BUILTINS: Mapping[str, Any] = {
    "abs": abs,
    "bool": bool,
    "enumerate": enumerate,
    "float": float,
    "int": int,
    "len": len,
    "max": _returning(max),
    "min": _returning(min),
    "range": range,
    "reversed": reversed,
    "round": round,
    "slice": slice,
    "sorted": _returning(sorted),
    "sum": _returning(sum),
    "tuple": _returning(tuple),
    "zip": zip,
}
# NumPy imports some of its parts when first used, through the builtins of the calling frame. No expression can name it:
# the check knows the names above and the arguments, nothing else.
_IMPORT: Mapping[str, Any] = {"__import__": __import__}
_NODES = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.ListComp,
    ast.GeneratorExp,
    ast.comprehension,
    ast.Starred,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)


@dataclass(frozen=True)
class NumpyExpression:
    """A checked expression.

    Attributes:
        text: as written.
        names: the arguments it reads.
    """

    text: str
    names: frozenset[str]
    _code: CodeType = field(repr=False, compare=False)

    @staticmethod
    def parse(text: str, names: Iterable[str]) -> "NumpyExpression":
        """Check ``text``, which may read ``names``.

        Raises:
            ExpressionError: not an expression, an unknown name, or something not allowed; ``offset`` and
                ``length`` point at it.
        """
        return _parse(text, tuple(names))

    def evaluate(self, arguments: Mapping[str, Any]) -> Any:
        """The value with ``arguments`` bound, under the caller's ``np.errstate``.

        Whatever NumPy raises is raised (shape errors and the like).
        """
        arguments = {python_name(name): value for name, value in arguments.items()}
        scope = {
            _PLAIN: _plain,
            "__builtins__": dict(_IMPORT),
            "np": np,
            "numpy": np,
            "math": np,
            **_BUILTINS,
            **arguments,
        }
        return eval(self._code, scope)  # checked node by node in parse


@lru_cache(256)  # a verification evaluates the same few references hundreds of times
def _parse(text: str, names: tuple[str, ...]) -> NumpyExpression:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the reference is longer than {MAX_LENGTH} characters", 0, len(text))
    known = frozenset(n for name in names for n in (name, python_name(name)))
    lead = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(text.strip(), mode="eval")
        read: set[str] = set()
        _check(tree.body, text.strip(), lead, known, frozenset(), read)
        code = compile(ast.fix_missing_locations(_PlainConstants(known).visit(tree)), "<reference>", "eval")
    except (SyntaxError, ValueError) as error:
        offset = (getattr(error, "offset", None) or 1) - 1 + lead
        words = [n for n in known if keyword.iskeyword(n) and re.search(rf"\b{n}\b", text)]
        if words:
            place = re.search(rf"\b{words[0]}\b", text)
            at = place.start() if place is not None else 0
            message = f"{words[0]} is a word of Python's own; write {python_name(words[0])} for the argument"
            raise ExpressionError(message, at, len(words[0])) from None
        raise ExpressionError(f"not a NumPy expression: {error.args[0]}", min(offset, len(text))) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the reference is nested too deeply", 0, len(text)) from None
    spelt = {python_name(name): name for name in names}
    return NumpyExpression(text, frozenset(spelt.get(name, name) for name in read), code)


_PLAIN = "_kernel_forge_plain"


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    return value.item() if isinstance(value, np.floating | np.integer) else value


class _PlainConstants(ast.NodeTransformer):
    """Calls that read no argument give Python numbers: ``np.sqrt(2 / np.pi)`` is a constant of the code like any other.

    As a ``np.float64`` it would turn the whole evaluation into float64 (NEP 50), and the error of the kernel's own
    type could not be learned.
    """

    def __init__(self, arguments: frozenset[str]) -> None:
        self.arguments = arguments

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if names <= {"np", "numpy", "math", _PLAIN} and not any(k.arg == "dtype" for k in node.keywords):
            return ast.Call(ast.Name(_PLAIN, ast.Load()), [node], [])
        return node


def python_name(name: str) -> str:
    """How Python code spells an argument: with a ``_`` behind it where it is one of Python's keywords (``in``)."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _error(node: ast.AST, text: str, lead: int, message: str) -> ExpressionError:
    offset, length = span(node, text)
    return ExpressionError(message, offset + lead, length)


def _check(node: ast.AST, text: str, lead: int, known: frozenset[str], local: frozenset[str], read: set[str]) -> None:
    match node:
        case ast.Constant(value=value):
            if not isinstance(value, int | float | bool | complex | str | type(None) | type(Ellipsis)):
                raise _error(node, text, lead, "only numbers are allowed as constants")
            return
        case ast.Name(id=name):
            if name.startswith("__") and name.endswith("__"):
                raise _error(node, text, lead, f"{name} is not allowed in a reference")
            if name in local:
                return
            if name in known:
                read.add(name)
            elif name in NUMPY_NAMES:
                raise _error(node, text, lead, f"{name} alone is no value; write {name}.sqrt(x) and the like")
            elif name not in _BUILTINS:
                raise _error(node, text, lead, _unknown(name, known))
            return
        case ast.Attribute():
            _check_attribute(node, text, lead, known, local, read)
            return
        case ast.Call(func=func, args=args, keywords=keywords):
            _check(func, text, lead, known, local, read)
            for child in (*args, *keywords):
                _check(child, text, lead, known, local, read)
            return
        case ast.ListComp(elt=element, generators=generators) | ast.GeneratorExp(elt=element, generators=generators):
            for generator in generators:
                _check(generator.iter, text, lead, known, local, read)
                local = local | _targets(generator.target, text, lead)
                for condition in generator.ifs:
                    _check(condition, text, lead, known, local, read)
            _check(element, text, lead, known, local, read)
            return
    if isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                raise _error(side, text, lead, "a string cannot be computed with")
        if isinstance(node.op, ast.Pow) and any(
            (isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value > MAX_EXPONENT)
            or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow | ast.LShift))
            for part in ast.walk(node.right)
        ):
            raise _error(node.right, text, lead, f"an exponent above {MAX_EXPONENT} takes for ever")
    if not isinstance(node, _NODES):
        what = type(node).__name__
        raise _error(node, text, lead, f"{what} is not allowed in a reference; use arithmetic and NumPy functions")
    for child in ast.iter_child_nodes(node):
        _check(child, text, lead, known, local, read)


def _targets(target: ast.expr, text: str, lead: int) -> frozenset[str]:
    """Names that a comprehension binds; it must not assign to parts of anything that exists."""
    match target:
        case ast.Name(id=name) if name not in NUMPY_NAMES and not name.startswith("__"):
            return frozenset({name})
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return frozenset().union(*(_targets(part, text, lead) for part in parts))
        case ast.Starred(value=value):
            return _targets(value, text, lead)
    raise _error(target, text, lead, "a comprehension may only bind plain names")


def _check_attribute(
    node: ast.Attribute, text: str, lead: int, known: frozenset[str], local: frozenset[str], read: set[str]
) -> None:
    value = node.value
    if isinstance(value, ast.Name) and value.id in NUMPY_NAMES and value.id not in known:
        if node.attr not in FUNCTIONS and node.attr not in NAMESPACES:
            raise _error(node, text, lead, f"{value.id}.{node.attr} is not among the allowed NumPy functions")
        return
    if (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and value.value.id in NUMPY_NAMES - known
        and value.attr not in METHODS - FUNCTIONS
    ):
        inner = value.attr
        if (inner, node.attr) in SUBMODULES or (inner in FUNCTIONS and node.attr in UFUNC_METHODS):
            return
        raise _error(node, text, lead, f"np.{inner}.{node.attr} is not among the allowed NumPy functions")
    if node.attr not in METHODS:
        raise _error(node, text, lead, f".{node.attr} is not among the allowed array methods")
    _check(value, text, lead, known, local, read)


def _unknown(name: str, known: frozenset[str]) -> str:
    usable = sorted(n for n in known if not keyword.iskeyword(n))
    near = difflib.get_close_matches(name, usable, 1)
    arguments = f"; arguments are {', '.join(usable) or 'none'}, and a reference knows nothing else, tunables included"
    hint = f"; did you mean {near[0]}?" if near else arguments
    return f"{name} is not an argument of the kernel{hint}"

"""TOML with places: the values from ``tomllib``, the ranges of every key and value from tree-sitter-toml."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from kernel_forge.domain.text import Position, Range

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class TomlDocument:
    """A parsed document. ``keys`` and ``values`` give the range of each path's key and value."""

    data: dict[str, Any]
    keys: dict[Path, Range] = field(default_factory=dict)
    values: dict[Path, Range] = field(default_factory=dict)

    def range_of(self, path: Path, *, key: bool = False) -> Range:
        """The range of ``path``, or of the nearest path around it that is in the document."""
        first, second = (self.keys, self.values) if key else (self.values, self.keys)
        for length in range(len(path), 0, -1):
            found = first.get(path[:length]) or second.get(path[:length])
            if found is not None:
                return found
        return Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True)
class TomlProblem:
    """Why a text is not TOML, and where."""

    message: str
    range: Range


def parse_toml(text: str) -> TomlDocument | TomlProblem:
    """Read ``text``; the problem is the first one, at its exact place."""
    if text.startswith("\ufeff"):  # as wide as the mark, so that places stay
        text = " " + text[1:]
    try:
        document = TomlDocument(tomllib.loads(text))
        _Ranges(text, document).read()
    except tomllib.TOMLDecodeError as error:
        return _problem(text, error)
    except ValueError as error:  # an integer with thousands of digits
        return TomlProblem(f"a value is out of range: {error}", _first_line(text))
    except RecursionError:
        return TomlProblem("nested too deeply", _first_line(text))
    return document


def _first_line(text: str) -> Range:
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    return Range(Position(first, 0), Position(first, max(1, len(lines[first].rstrip()))))


def _problem(text: str, error: tomllib.TOMLDecodeError) -> TomlProblem:
    message = str(error)
    place, _, at = message.rpartition(" (at ")
    lines = text.split("\n")
    line, column = len(lines) - 1, len(lines[-1])
    if place:
        message = place
        words = at.rstrip(")").replace(",", "").split()
        if len(words) == 4:  # "line N column M"
            line, column = int(words[1]) - 1, int(words[3]) - 1
    while line > 0 and not lines[line].strip():
        line -= 1
        column = len(lines[line])
    start = Position(line, min(column, max(0, len(lines[line]) - 1)))
    return TomlProblem(message, Range(start, Position(line, max(start.column + 1, len(lines[line].rstrip())))))


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_toml.language()))


class _Ranges:
    """Walks the syntax tree of a valid document and notes where everything is."""

    def __init__(self, text: str, document: TomlDocument) -> None:
        self.source = text.encode("utf-8", "surrogatepass")
        self.lines = self.source.split(b"\n")
        self.document = document
        self.counts: dict[Path, int] = {}

    def read(self) -> None:
        for node in _parser().parse(self.source).root_node.named_children:
            if node.type == "pair":
                self._pair(node, ())
            elif node.type == "table":
                self._table(node, self._in_arrays(self._key_path(node.named_children[0])))
            elif node.type == "table_array_element":
                *outer, last = self._key_path(node.named_children[0])
                path = (*self._in_arrays(tuple(outer)), last)
                index = self.counts.get(path, 0)
                self.counts[path] = index + 1
                self._table(node, (*path, index))

    def _in_arrays(self, names: Path) -> Path:
        """``names`` with the index of the last element behind every name of an array of tables."""
        path: Path = ()
        for name in names:
            path = (*path, name)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _table(self, node: Node, path: Path) -> None:
        header = node.named_children[0]
        self.document.keys.setdefault(path, self._range(header))
        if isinstance(path[-1], int):
            self.document.keys.setdefault(path[:-1], self._range(header))
        for child in node.named_children[1:]:
            if child.type == "pair":
                self._pair(child, path)

    def _pair(self, node: Node, parent: Path) -> None:
        key, value = [c for c in node.named_children if c.type != "comment"][:2]  # one may follow on the same line
        path = (*parent, *self._key_path(key))
        for length in range(len(parent) + 1, len(path) + 1):
            self.document.keys.setdefault(path[:length], self._range(key))
        self._value(value, path)

    def _value(self, node: Node, path: Path) -> None:
        self.document.values[path] = self._range(node)
        if node.type == "inline_table":
            for child in node.named_children:
                if child.type == "pair":
                    self._pair(child, path)
        elif node.type == "array":
            elements = [c for c in node.named_children if c.type != "comment"]
            for i, child in enumerate(elements):
                self._value(child, (*path, i))

    def _key_path(self, node: Node) -> tuple[str, ...]:
        if node.type == "dotted_key":
            return tuple(part for child in node.named_children for part in self._key_path(child))
        text = self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if node.type == "quoted_key":
            return (str(next(iter(tomllib.loads(f"{text} = 0")))),)
        return (text,)

    def _range(self, node: Node) -> Range:
        return Range(self._position(node.start_point), self._position(node.end_point))

    def _position(self, point: tuple[int, int]) -> Position:
        row, column = point
        return Position(row, len(self.lines[row][:column].decode("utf-8", "replace")))

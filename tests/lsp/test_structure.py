"""JSON has six types; what the protocol says of them is not stretched."""

import math

import pytest
from lsprotocol import types as lsp

from kernel_forge.lsp.structure import reason, strict_converter

CONVERTER = strict_converter()


@pytest.mark.parametrize("line", ["1", 1.5, True, None, -1, 2**31, math.inf, [1]])
def test_a_line_is_an_integer_of_31_bits(line: object) -> None:
    with pytest.raises(Exception) as caught:
        CONVERTER.structure({"line": line, "character": 0}, lsp.Position)
    assert "\n" not in reason(caught.value)


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    assert CONVERTER.structure({"line": 2.0, "character": 0}, lsp.Position) == lsp.Position(2, 0)


@pytest.mark.parametrize("only", ["quickfix", {"a": 1}, 5])
def test_a_list_is_a_list(only: object) -> None:
    with pytest.raises(Exception):  # noqa: B017  whatever cattrs raises becomes an answer
        CONVERTER.structure({"diagnostics": [], "only": only}, lsp.CodeActionContext)


def test_an_empty_table_may_be_an_empty_list() -> None:
    assert CONVERTER.structure({"diagnostics": {}}, lsp.CodeActionContext).diagnostics == ()


def test_enumerations_are_structured() -> None:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    found = CONVERTER.structure({"range": place, "message": "m", "severity": 2, "tags": [1]}, lsp.Diagnostic)
    assert found.severity is lsp.DiagnosticSeverity.Warning and found.tags == (lsp.DiagnosticTag.Unnecessary,)
    with pytest.raises(Exception):  # noqa: B017
        CONVERTER.structure({"range": place, "message": "m", "severity": 99}, lsp.Diagnostic)


def test_the_reason_names_every_place_up_to_three() -> None:
    with pytest.raises(Exception) as caught:
        CONVERTER.structure({"start": {"line": "a"}, "end": {"line": "b"}}, lsp.Range)
    assert reason(caught.value) == (
        "expected int, got str at start.line; required field missing at start.character; "
        "expected int, got str at end.line"
    )


def test_the_reason_for_a_missing_object_is_no_python() -> None:
    with pytest.raises(Exception) as caught:
        CONVERTER.structure(
            {"params": None, "id": 1, "method": "workspace/executeCommand", "jsonrpc": "2.0"}, lsp.ExecuteCommandRequest
        )
    assert reason(caught.value) == "invalid value, expected ExecuteCommandParams at params"

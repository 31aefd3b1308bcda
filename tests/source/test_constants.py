"""Named constants at file and namespace scope."""

import pytest

from kernel_forge.source import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("constexpr int TILE = 16;\n", [("TILE", "16", "constexpr", True)]),
        ("static constexpr unsigned int TILE = 8 * 2;\n", [("TILE", "8 * 2", "constexpr", True)]),
        ("const int TILE = 16;\nint other = 3;\n", [("TILE", "16", "const", True)]),
        ("inline constexpr auto TILE{16};\n", [("TILE", "16", "constexpr", True)]),
        ("constexpr int A = 1, B = 2;\n", [("A", "1", "constexpr", False), ("B", "2", "constexpr", False)]),
        ("enum { TILE = 16 };\n", [("TILE", "16", "enum", True)]),
        ("enum Sizes : int { A = 1, B, C = 4 };\n", [("A", "1", "enum", False), ("C", "4", "enum", False)]),
        ("namespace a { namespace { constexpr int T = 4; } }\n", [("T", "4", "constexpr", True)]),
        ("#ifdef X\nconstexpr int T = 4;\n#endif\n", [("T", "4", "constexpr", True)]),
        ("__device__ constexpr int T = 4;\n", [("T", "4", "constexpr", True)]),
        ("void f() { constexpr int T = 4; }\nint g = 4;\n// constexpr int C = 1;\n", []),
        ("constexpr int TILE = \n", []),
    ],
)
def test_forms(text: str, expected: list[tuple[str, str, str, bool]]) -> None:
    assert [(c.name, c.value, c.kind, c.is_alone) for c in parse(text, "a.cu").constants] == expected


def test_ranges() -> None:
    text = "// é\n  enum { TILE = 16 };\n"
    (found,) = parse(text, "a.cu").constants
    source = parse(text, "a.cu")
    assert text[source.offset(found.range.start) : source.offset(found.range.end)] == "enum { TILE = 16 };"
    assert text[source.offset(found.name_range.start) : source.offset(found.name_range.end)] == "TILE"

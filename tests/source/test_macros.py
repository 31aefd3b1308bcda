"""Object-like macros, by the rules of the C preprocessor."""

import pytest

from kernel_forge.source import parse


def macros(text: str) -> list[tuple[str, str, bool]]:
    return [(m.name, m.value, m.guarded) for m in parse(text, "a.cu").macros]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define A 256\n", [("A", "256", False)]),
        ("#define A 256", [("A", "256", False)]),
        ("  #  define\tA\t(1 << 8)  // c\n", [("A", "(1 << 8)", False)]),
        ("#define A 1 /* c */ + 2\n", [("A", "1 /* c */ + 2", False)]),
        ("#define A 1 + \\\n  2\n", [("A", "1 + \\\n  2", False)]),
        ("#define A\n#define F(x) x\n#define B (x)\n", [("B", "(x)", False)]),
        ("#ifndef A\n#define A 1\n#endif\n#define B 2\n", [("A", "1", True), ("B", "2", False)]),
        ("#if !defined(A)\n#define A 1\n#endif\n", [("A", "1", True)]),
        ("#if !defined A\n#define A 1\n#endif\n", [("A", "1", True)]),
        (
            "#ifndef G\n#ifndef A\n#define A 1\n#define B 2\n#endif\n#endif\n",
            [("A", "1", True), ("B", "2", False)],
        ),
        ("#ifndef A\n#else\n#define A 1\n#endif\n", [("A", "1", False)]),
        ("#ifdef A\n#define A 1\n#endif\n", [("A", "1", False)]),
        ("#ifndef A\n#endif\n#define A 1\n", [("A", "1", False)]),
        ("#ifndef A\r\n#define A 1\r\n#endif\r\n", [("A", "1", True)]),
        ("#endif\n#define A 1\n", [("A", "1", False)]),
        ('// #define A 1\n/*\n#define B 2\n*/\nconst char *s = R"(\n#define C 3\n)";\n', []),
    ],
)
def test_forms(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert macros(text) == expected


def test_ranges() -> None:
    file = parse("int é;\n  #define A  256 // c\n", "a.cu")
    (macro,) = file.macros
    cut = [file.text[file.offset(r.start) : file.offset(r.end)] for r in (macro.range, macro.value_range)]
    assert cut == ["#define A  256", "256"]


def test_inside_a_kernel() -> None:
    assert macros("__global__ void k() {\n#define A 1\n}\n") == [("A", "1", False)]

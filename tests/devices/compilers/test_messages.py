"""Messages of the compilers, as they really print them, at exact ranges of the user's files."""

from collections.abc import Mapping

import pytest

from kernel_forge.devices.compilers.messages import UserFile, parse_messages, token_range
from kernel_forge.domain.outcome import CompilerMessage

MAIN = """#include "h.h"
template <class T> __device__ T twice(T v) { return add(v, "x"); }
#define BAD(v) (v + undeclared)
__global__ void k(float* y) {
  y[0] = twice(y[1]);
  y[1] = atomicAdd(y, "s");
  y[2] = BAD(y[3]);
\ty[3] = naïve + 1;   /* é */ y[4] = naïve;
}
"""
HEADER = "template <class T, class U> __device__ T add(T a, U b) { return a + *b * b; }\n"
FILES = {"/w/t.cu": UserFile("t.cu", MAIN), "/w/h.h": UserFile("/w/h.h", HEADER)}


def read(text: str, files: Mapping[str, UserFile] = FILES) -> tuple[CompilerMessage, ...]:
    return parse_messages(text, files, "compiler")


def place(message: CompilerMessage) -> tuple[str, int, str] | None:
    """Path, one-based line and the marked text of a message."""
    if message.location is None:
        return None
    at = message.location.range
    text = next(f.text for f in FILES.values() if f.path == message.location.path)
    assert at.start.line == at.end.line
    return message.location.path, at.start.line + 1, text.split("\n")[at.start.line][at.start.column : at.end.column]


def only_error(text: str) -> tuple[str, int, str] | None:
    (error,) = (m for m in read(text) if m.severity == "error")
    return place(error)


@pytest.mark.parametrize(
    ("line", "severity", "message", "where"),
    [
        ("/w/t.cu:3:21: error: 'undeclared' was not declared", "error", "'undeclared' was not declared",
         ("t.cu", 3, "undeclared")),
        ("/w/t.cu:1:10: fatal error: h.h: No such file or directory", "error", "h.h: No such file or directory",
         ("t.cu", 1, '"h.h"')),
        # gcc puts a call at its parenthesis; what is wrong is what is called.
        ("/w/t.cu:6:19: error: no matching function for call to 'atomicAdd(float*&, const char [2])'", "error",
         "no matching function for call to 'atomicAdd(float*&, const char [2])'", ("t.cu", 6, "atomicAdd")),
        ("/w/t.cu:6:10:{6:10-6:19}: error: no matching function for call to 'atomicAdd'", "error",
         "no matching function for call to 'atomicAdd'", ("t.cu", 6, "atomicAdd")),
        # Columns of gcc and clang are bytes: the second `naïve` has 35 characters before it, two of them of two bytes.
        ("/w/t.cu:8:9: warning: x [-Wx]", "warning", "x [-Wx]", ("t.cu", 8, "naïve")),
        ("/w/t.cu:8:39: note: y", "note", "y", ("t.cu", 8, "naïve")),
        ("/w/t.cu(8): error: z", "error", "z", ("t.cu", 8, "y[3] = naïve + 1;   /* é */ y[4] = naïve;")),
        ("/w/t.cu(3): catastrophic error: z", "error", "z", ("t.cu", 3, "#define BAD(v) (v + undeclared)")),
        ('/w/t.cu(3): warning #177-D: variable "u" was declared', "warning", 'variable "u" was declared',
         ("t.cu", 3, "#define BAD(v) (v + undeclared)")),
        ("/w/t.cu:2: Error: no such instruction: `bar.sync 0'", "error", "no such instruction: `bar.sync 0'",
         ("t.cu", 2, 'template <class T> __device__ T twice(T v) { return add(v, "x"); }')),
        ("/usr/bin/ld: /w/t.cu:5: undefined reference to `f(float)'", "error", "undefined reference to `f(float)'",
         ("t.cu", 5, "y[0] = twice(y[1]);")),
        ("/usr/include/x.h:3:1: error: elsewhere", "error", "elsewhere", None),
        ("nvcc fatal   : no", None, None, None),
        ("  12 | int x; // t.cu:3:1: and so on", None, None, None),
    ],
)  # fmt: skip
def test_one_line(line: str, severity: str | None, message: str | None, where: tuple[str, int, str] | None) -> None:
    found = read(line)
    if severity is None:
        assert found == ()
        return
    assert [(m.severity, m.message, m.origin) for m in found] == [(severity, message, "compiler")]
    assert place(found[0]) == where


@pytest.mark.parametrize("path", ["/a b/c (1).cu", "/a:b/c.cu", "/a/(3):4/c.cu", '/a/"q".cu', "/ü/ç.cu", "C.cu"])
@pytest.mark.parametrize("form", ["{}:1:5: error: bad", "{}(1): error: bad", "{}:1:5:{{1:5-1:6}}: error: bad"])
def test_paths_of_any_kind(path: str, form: str) -> None:
    (message,) = read(form.format(path), {path: UserFile("shown", "int x;\n")})
    assert message.message == "bad"
    assert message.location is not None and message.location.path == "shown"


def test_gcc_tells_before_an_error_where_a_template_came_from() -> None:
    text = """\
In file included from /inc/memory.h:3,
                 from <command-line>:
/inc/math.h: In instantiation of 'T down(T) [with T = float*]':
/inc/math.h:90:3:   required from 'T again(T) [with T = float*]'
/w/t.cu:2:56:   required from 'T twice(T) [with T = float]'
/w/t.cu:5:15:   required from here
/inc/math.h:12:3: error: cannot convert 'float*' to 'float'
/inc/math.h:13:3: error: another of the same
/inc/math.h: At global scope:
/inc/math.h:14:3: error: of its own
"""
    # The innermost line of the user, as for run-time faults; 56 is the parenthesis after `add`.
    assert [place(m) for m in read(text)] == [("t.cu", 2, "add"), ("t.cu", 2, "add"), None]


def test_clang_tells_after_an_error_where_a_template_came_from() -> None:
    text = """\
/inc/math.h:12:3:{12:3-12:9}: error: cannot initialize return object of type 'float'
   12 |   return b;
      |   ^~~~~~
/w/t.cu:2:53:{2:53-2:56}: note: in instantiation of function template specialization 'down<float>' requested here
/w/t.cu:5:10: note: in instantiation of function template specialization 'twice<float>' requested here
/inc/math.h:9:3: note: candidate function not viable
/inc/math.h:13:3: error: another, whose origin clang does not repeat
/w/t.cu:3:21: error: use of undeclared identifier 'undeclared'
/inc/math.h:14:3: error: of its own
"""
    errors = [m for m in read(text) if m.severity == "error"]
    assert [place(m) for m in errors] == [("t.cu", 2, "add"), ("t.cu", 2, "add"), ("t.cu", 3, "undeclared"), None]


def test_a_note_that_is_not_about_the_origin_is_no_place_for_an_error() -> None:
    assert only_error("/inc/m.h:1:1: error: x\n/w/t.cu:3:21: note: candidate function not viable\n") is None


def test_macros_are_named_where_the_compiler_puts_the_error() -> None:
    gcc = "/w/t.cu:3:21: error: 'undeclared' was not declared\n/w/t.cu:7:10: note: in expansion of macro 'BAD'\n"
    clang = "/w/t.cu:7:10:{7:10-7:19}: error: use of undeclared\n/w/t.cu:3:21: note: expanded from macro 'BAD'\n"
    ours = (
        "/inc/half.h:6:1: error: bad\n/inc/half.h:7:1: note: in expansion of macro 'N'\n"
        "/w/t.cu:7:10: note: in expansion of macro 'M'\n"
    )
    assert only_error(gcc) == ("t.cu", 3, "undeclared")
    assert only_error(clang) == ("t.cu", 7, "BAD")
    assert only_error(ours) == ("t.cu", 7, "BAD")


def test_nvidia_names_the_column_by_a_caret_under_a_line_indented_anew() -> None:
    text = """\
/w/t.cu(6): error: no instance of overloaded function "atomicAdd" matches the argument list
            argument types are: (float *, const char [2])
    y[1] = atomicAdd(y, "s");
           ^

/w/t.cu(8): error: identifier "naïve" is undefined
   y[3] = naïve + 1;   /* é */ y[4] = naïve;
                                      ^

1 error detected in the compilation of "/w/t.cu".
"""
    assert [place(m) for m in read(text)] == [("t.cu", 6, "atomicAdd"), ("t.cu", 8, "naïve")]
    second = read(text)[1].location
    # Counted in code points: the tab, 35 characters.
    assert second is not None and second.range.start.column == MAIN.split("\n")[7].rindex("naïve")


def test_nvcc_shows_the_line_without_comments_and_with_macros_expanded() -> None:
    text = """\
/w/t.cu(8): error: identifier "naive" is undefined
   y[3] = naïve + 1; y[4] = naïve;
   ^

/w/t.cu(7): error: identifier "undeclared" is undefined
    y[2] = (y[3] + undeclared);
                   ^
"""
    first, second = read(text)
    # The first of two `y`, found by its number among the same names; a name from a macro leaves the whole line.
    assert first.location is not None and first.location.range.start.column == 1
    assert place(second) == ("t.cu", 7, "y[2] = BAD(y[3]);")


def test_nvidia_tells_after_an_error_where_a_template_came_from() -> None:
    text = """\
/cuda/include/f.h(12): error: expression must have arithmetic type
  { return a + *b * b; }
                    ^
          detected during:
            instantiation of "T add(T, U) [with T=float, U=const char *]" at line 2 of /w/t.cu
            instantiation of "T twice(T) [with T=float]" at line 5

/w/h.h(1): error: expression must have arithmetic or unscoped enum type
  template <class T, class U> __device__ T add(T a, U b) { return a + *b * b; }
                                                                           ^
          detected during instantiation of "T add(T, U) [with T=float, U=const char *]" at line 2 of /w/t.cu
"""
    outside, inside = read(text)
    assert place(outside) == ("t.cu", 2, MAIN.split("\n")[1])
    assert place(inside) == ("/w/h.h", 1, "b")


@pytest.mark.parametrize(("line", "column"), [(99, None), (99, 5), (0, 500), (-1, 0)])
def test_a_place_past_the_text_is_still_a_range(line: int, column: int | None) -> None:
    at = token_range("int x;\n", line, column)
    assert at.start.line == line and at.end.column > at.start.column


def test_line_ends_of_windows_are_not_part_of_a_range() -> None:
    at = token_range("int x;\r\n  y;\r\n", 1, None)
    assert (at.start.column, at.end.column) == (2, 4)

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_forge.generate.policy import refusals
from kernel_forge.generate.refusal import Rule
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.translation import translate
from tests.generate.honest_kernels import HONEST
from tests.generate.refused_kernels import PLAIN, REFUSED, body

REPOSITORY = Path(__file__).resolve().parents[2]
# What stands in files of whole programs: host functions and launches.
OF_THE_HOST = {"HOST_CODE", "LAUNCH"}


def rules(text: str) -> set[str]:
    return {refusal.rule_name for refusal in refusals(text)}


@pytest.mark.parametrize(("rule", "marked"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(rule: str, marked: str) -> None:
    offset = marked.index("«")
    text = marked.replace("«", "")
    place = LineIndex(text).position(offset)
    found = refusals(text)
    assert (rule, place) in {(r.rule_name, r.range.start) for r in found}, found
    assert all(r.range.start < r.range.end and len(r.message) > 20 for r in found)


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST.keys())
def test_honest(text: str) -> None:
    assert refusals(text) == ()


def test_every_rule_says_what_it_is_for_and_is_in_the_table() -> None:
    assert {rule.name for rule in Rule} == {row[1] for row in REFUSED}
    assert all(len(rule.value) > 30 for rule in Rule)
    assert len({rule.value for rule in Rule}) == len(Rule)


# The kernels of the repository that are not refused for their host code alone, each looked at.
KNOWN = {
    "jacobi.cu": {"INCLUDE", "STOP", "OUTPUT"},  # cassert and cstdio; an assert; a printf in host code
    "rotate.cu": {"ADDRESS"},  # const_cast in host code
    "saxpy.cu": {"ADDRESS"},  # cudaMalloc(&x, ...) in host code
}


@pytest.mark.parametrize(
    "path",
    sorted([*REPOSITORY.glob("tests/kernels/*.cu"), *REPOSITORY.glob("scripts/tuning_kernels/*.cu")]),
    ids=lambda path: path.name,
)
def test_kernels_of_the_repository(path: Path) -> None:
    assert rules(path.read_text()) - OF_THE_HOST == KNOWN.get(path.name, set())


def test_a_tunable_may_be_tested_for() -> None:
    text = "#ifndef TILE\n#define TILE 8\n#endif\n#if UNROLLED\n#endif\n" + PLAIN
    assert rules(text) == {"CONDITION"}
    assert refusals(text, {"UNROLLED"}) == ()


def test_the_place_counts_code_points() -> None:
    text = body('/* é𝒳 */ printf("x");')
    (found,) = refusals(text)
    assert (found.range.start.line, found.range.start.column) == (3, 9)
    assert (found.range.end.line, found.range.end.column) == (3, 15)


def test_a_comment_or_a_string_is_no_code() -> None:
    assert refusals(body("// printf(clock64());\n/* new <<<1>>> */\ny[i] = x[i];")) == ()


_SPACES = st.sampled_from(
    [" ", "\t", "\n", "/**/", "/* x */", "/* /* // */", "// x\n", "\\\n", "\\\r\n", " \\\n \\\n", "\r\n"]
)
_ONE_LINE = [" ", "\t", "/**/", "/* x\n y */", "\\\n", " \\\r\n "]
_HIDEABLE = [row for row in REFUSED if row[1] not in ("TEXT", "LIMIT", "DIRECTIVE", "INCLUDE", "PRAGMA")]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_nothing_between_tokens_lets_a_refused_text_through(data: st.DataObject) -> None:
    _, rule, marked = data.draw(st.sampled_from(_HIDEABLE))
    text = marked.replace("«", "")
    read = translate(text)
    in_lines = [(line.start, line.end) for line in read.directives]
    places = [token.start for token in read.tokens]
    chosen = sorted(data.draw(st.lists(st.sampled_from(places), max_size=12)), reverse=True)
    for place in chosen:
        text = text[:place] + data.draw(_SPACES) + text[place:]
    assert all(not start <= place < end for place in chosen for start, end in in_lines)
    assert rule in rules(text)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_continuation_inside_a_token_hides_nothing(data: st.DataObject) -> None:
    _, _, marked = data.draw(st.sampled_from(_HIDEABLE))
    text = marked.replace("«", "")
    for place in sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)), reverse=True):
        if text[place - 1 : place] not in ("\r", "\\"):
            text = text[:place] + "\\\n" + text[place:]
    assert rules(text)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_spaces_in_a_directive_hide_nothing(data: st.DataObject) -> None:
    _, _, marked = data.draw(
        st.sampled_from([row for row in REFUSED if row[1] in ("DIRECTIVE", "INCLUDE", "PRAGMA", "MACRO")])
    )
    text = marked.replace("«", "")
    places = [t.start for line in translate(text).directives if line.name != "include" for t in line.tokens[:1]]
    places += [line.start + 1 for line in translate(text).directives]
    for place in sorted(data.draw(st.lists(st.sampled_from(places), max_size=4)) if places else [], reverse=True):
        text = text[:place] + data.draw(st.sampled_from(_ONE_LINE)) + text[place:]
    assert rules(text)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_an_honest_kernel_stays_honest_with_comments(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(list(HONEST.values())))
    places = [token.start for token in translate(text).tokens]
    for place in sorted(data.draw(st.lists(st.sampled_from(places), max_size=8)), reverse=True):
        text = text[:place] + data.draw(st.sampled_from([" ", "/* a */", "\n", " \\\n"])) + text[place:]
    assert refusals(text) == ()


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from("#define A ( ) { } asm \" ' \\ \n // /* __global__ & * < > ; : x 1 float (".split(" "))
    ).map(" ".join)
)
def test_any_text_has_an_answer(text: str) -> None:
    assert all(r.range.start <= r.range.end for r in refusals(text))


def test_a_very_deep_expression_is_refused_not_a_crash() -> None:
    text = body("y[i] = *(float*)(" + "1 + " * 5000 + "i);")
    assert rules(text)
    assert rules(body("y[i] = " + "- " * 5000 + "1;")) <= {"SYNTAX"}

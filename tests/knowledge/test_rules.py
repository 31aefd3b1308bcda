"""The rules of kb/ about tunables: what they apply to, and that a wrong one is told in one error."""

import re
from pathlib import Path

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.knowledge import limits_of, read_rules, tunable_rules
from kernel_forge.knowledge.rules import Rule

TURING = GpuFacts(limits_of((7, 5)), 68, 616e9)
HOPPER = GpuFacts(limits_of((9, 0)), 132, 4.8e12)
GOOD = {
    "id": '"wide"',
    "names": "'vec'",
    "scores": "[[1, 0.5], [4, 1.0]]",
    "reason": '"wider is better"',
}


def file(tmp_path: Path, version: str = "version = 1", **changed: str | None) -> Path:
    table = {k: v for k, v in {**GOOD, **changed}.items() if v is not None}
    made = tmp_path / "rules.toml"
    made.write_text("\n".join([version, "[[rule]]", *(f"{k} = {v}" for k, v in table.items())]))
    return made


def applying(name: str, role: str, values: tuple[object, ...], gpu: GpuFacts | None = HOPPER) -> list[str]:
    return [rule.id for rule in tunable_rules() if rule.applies(name, role, values, gpu)]


@pytest.mark.parametrize(
    ("name", "role", "values", "rules"),
    [
        ("VEC", "code", (1, 2, 4), ["vector-width"]),
        ("vector_width", "work", (1, 2, 4), ["vector-width"]),
        ("VWM", "code", (1, 2, 4, 8), ["vector-width"]),
        ("VECTORS", "code", (1, 2), []),
        ("UNROLL", "code", (1, 4), ["unroll"]),
        ("loop_unroll_factor_channel", "code", (0, 1), ["unroll"]),
        ("UNROLL", "threads", (1, 4), []),  # a block's extent is no unrolling, whatever its name
        ("tile_size_x", "work", (1, 2), ["neighbours-along-x"]),
        ("TILE_X", "threads", (8, 16), []),
        ("tile_size_y", "work", (1, 2), []),
        ("use_shmem", "code", (0, 1), ["staging"]),
        ("SMEM", "code", (0, 16, 32), []),  # bytes, no switch
        ("use_padding", "code", (0, 1), ["padding"]),
        ("BLOCK", "threads", (64, 128), []),
    ],
)
def test_names_and_roles(name: str, role: str, values: tuple[object, ...], rules: list[str]) -> None:
    assert applying(name, role, values) == rules


def test_conditions_follow_the_gpu() -> None:
    assert applying("STAGES", "code", (1, 2, 3), HOPPER) == ["pipeline-stages"]
    assert applying("STAGES", "code", (1, 2, 3), TURING) == ["pipeline-stages-without-asynchronous-copies"]
    assert applying("STAGES", "code", (1, 2, 3), None) == []


def test_a_condition_on_a_fact_that_is_not_known_says_nothing(tmp_path: Path) -> None:
    (rule,) = read_rules(file(tmp_path, where='"per_multiprocessor_gb_per_second > 20"'))
    assert rule.applies("VEC", "code", (1, 2), HOPPER)  # 4800 / 132 = 36
    assert not rule.applies("VEC", "code", (1, 2), TURING)  # 616 / 68 = 9
    assert not rule.applies("VEC", "code", (1, 2), GpuFacts(limits_of((9, 0)), 132))


def test_scores_lie_on_straight_lines(tmp_path: Path) -> None:
    (rule,) = read_rules(file(tmp_path))
    assert [rule.score(v) for v in (0, 1, 2.5, 4, 64)] == [0.5, 0.5, 0.75, 1.0, 1.0]


def test_text_among_the_values_is_no_matter_of_rules(tmp_path: Path) -> None:
    (rule,) = read_rules(file(tmp_path))
    assert not rule.applies("VEC", "code", ("float4", 2), HOPPER)


@pytest.mark.parametrize("rule", tunable_rules(), ids=lambda r: r.id)
def test_every_rule_has_a_best_value(rule: Rule) -> None:
    assert max(score for _, score in rule.scores) == 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": None}, "rule wide: it lacks scores"),
        ({"because": '"x"'}, "rule wide: because is no key of a rule"),
        ({"id": None}, "rule number 1: it lacks id"),
        ({"id": "7"}, "rule 7: the id is a word"),
        ({"names": "'('"}, "rule wide: missing ), unterminated subpattern"),
        ({"names": "3"}, "rule wide: names is a regular expression"),
        ({"role": '"tile"'}, "rule wide: role is 'tile', none of threads, work, code"),
        ({"switch": "1"}, "rule wide: switch is true or false"),
        ({"where": '"bandwidth > 3"'}, "rule wide: where names bandwidth, which is none of capability"),
        ({"where": '"capability >"'}, "rule wide: not an expression"),
        ({"where": '"capability / (multiprocessors - 132)"'}, "rule wide: division by zero"),
        ({"where": "8"}, "rule wide: where is an expression"),
        ({"scores": "[[1, 0.5], [1, 1.0]]"}, "rule wide: the values of scores must rise"),
        ({"scores": "[[1, 0.0]]"}, "rule wide: a score is 0, not above 0 and up to 1"),
        ({"scores": "[[1, 1.5]]"}, "rule wide: a score is 1.5, not above 0 and up to 1"),
        ({"scores": "[[1, nan]]"}, "rule wide: a score is nan, not above 0 and up to 1"),
        ({"scores": "[1, 2]"}, r"rule wide: scores are [value, score] pairs"),
        ({"scores": "[]"}, r"rule wide: scores are [value, score] pairs"),
        ({"reason": '""'}, "rule wide: the reason is one line of text"),
        ({"reason": '"a\\nb"'}, "rule wide: the reason is one line of text"),
        ({"version": "version = 2"}, "has version 2, not 1"),
        ({"version": ""}, "has version None, not 1"),
        ({"version": "version = 1\nother = 2"}, "nothing else"),
        ({"version": "version ="}, "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_error_that_names_the_rule(
    tmp_path: Path, changed: dict[str, str | None], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read_rules(file(tmp_path, **changed))  # type: ignore[arg-type]


def test_an_id_is_there_once(tmp_path: Path) -> None:
    made = file(tmp_path)
    made.write_text(made.read_text() + made.read_text().removeprefix("version = 1"))
    with pytest.raises(UsageError, match="rule wide: the id is there twice"):
        read_rules(made)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")

"""Prompts: strict about their inputs and their files, and rendered as the snapshots say."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernel_forge.domain.expression import FUNCTIONS
from kernel_forge.generate.prompts import (
    ModelParameters,
    PromptFileError,
    PromptInputsError,
    prompts,
    read_prompts,
)
from kernel_forge.knowledge import patterns
from kernel_forge.resources import prompts_folder
from kernel_forge.source import parse
from kernel_forge.spec import read_specs

SNAPSHOTS = Path(__file__).parent / "snapshots"
RENEW = "KERNEL_FORGE_RENEW_SNAPSHOTS" in os.environ
PAGE = {"id": "grid-stride-loop", "title": "Grid-stride loop", "text": "A thread takes every n-th element."}
SPEC = 'kernel = "scale"\nreference = { y = "a * x" }\ncases = [{ n = 1000 }]'
SIGNATURE = "__global__ void scale(const float* x, float* y, float a, int n)"
KERNEL = {
    "source": f"{SIGNATURE} {{\n  y[threadIdx.x] = a * x[threadIdx.x];\n}}",
    "launch": 'grid = "1"\nblock = "BLOCK"',
    "tune": "BLOCK = [128, 256]",
}
RULES: Mapping[str, object] = {
    "architecture": "sm_90",
    "limits": [("multiprocessors", "132"), ("shared memory per block", "227 KiB")],
    "headers": ["<cuda_fp16.h>", "<mma.h>"],
    "instructions": [],
    "unsupported": ["clusters and TMA"],
    "spec": SPEC,
    "signature": SIGNATURE,
    "reference": None,
    "pages": [PAGE],
}
INPUTS: Mapping[str, Mapping[str, object]] = {
    "generate": {**RULES, "brief": "scale a vector", "strategy": "float4 accesses", "rivals": ["BLOCK loop: 3.1 us"]},
    "repair": {
        **RULES,
        "reference": "def scale(x, a):\n    return a * x",
        "kernel": KERNEL,
        "configuration": "BLOCK=128",
        "outcome": "memory fault",
        "findings": ["line 2: read past the end of x"],
        "case": "n = 1, inputs spikes",
        "sanitizer": "Invalid __global__ read of size 4 bytes",
        "attempts": ["rounded the grid up: the same fault"],
    },
    "optimise": {
        **RULES,
        "kernel": KERNEL,
        "configuration": "BLOCK=128",
        "measurement": "2.115 us (measured on NVIDIA H200)",
        "roofline": "memory: 41 % of the copy bandwidth",
        "resources": "16 registers, occupancy 100 %",
        "traffic": ["line 2: 4 bytes per lane"],
        "tuning": ["BLOCK=256: 2.2 us"],
        "rivals": [],
        "strategy": None,
    },
    "spec": {
        "families": ["map", "reduction"],
        "functions": ["np.exp", "np.sqrt"],
        "brief": "y is a times x",
        "source": None,
        "examples": ["x = [1, 2], a = 3: y = [3, 6]"],
        "pages": [],
        "previous": "kernel = scale",
        "problems": ["KF101 line 1: not TOML"],
    },
    "explain": {
        "spec": SPEC,
        "kernel": KERNEL,
        "verdict": "passed, 22 cases (emulated)",
        "performance": [],
        "findings": [],
        "pages": [PAGE],
        "question": None,
    },
}


def test_there_are_five() -> None:
    assert prompts().keys() == INPUTS.keys()


@pytest.mark.parametrize("name", INPUTS)
def test_it_renders_as_in_its_snapshot(name: str) -> None:
    rendered = prompts()[name].render(**INPUTS[name])
    text = f"{rendered.system}\n======== user\n{rendered.user}"
    path = SNAPSHOTS / f"{name}.txt"
    if RENEW:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "KERNEL_FORGE_RENEW_SNAPSHOTS=1 renews it; read the difference"
    assert (rendered.id, rendered.version, rendered.hash) == (name, prompts()[name].version, prompts()[name].hash)


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_shows_where_it_is_given(name: str) -> None:
    def words(value: object) -> list[str]:
        match value:
            case str():
                return [value]
            case dict():
                return [w for v in value.values() for w in words(v)]
            case list() | tuple():
                return [w for v in value for w in words(v)]
        return []

    rendered = prompts()[name].render(**INPUTS[name])
    assert [w for v in INPUTS[name].values() for w in words(v) if w not in rendered.system + rendered.user] == []


@pytest.mark.parametrize("name", ["generate", "repair", "optimise"])
def test_the_system_text_is_one_for_all_turns_about_a_kernel(name: str) -> None:
    """A provider's prompt cache matches from the start: the turns of one search should share it."""
    first = prompts()["generate"].render(**INPUTS["generate"]).system
    assert prompts()[name].render(**INPUTS[name]).system == first


@pytest.mark.parametrize("name", INPUTS)
def test_a_missing_and_a_surplus_input_are_named(name: str) -> None:
    inputs = {**INPUTS[name], "colour": "blue"}
    del inputs["spec" if "spec" in inputs else "brief"]
    with pytest.raises(PromptInputsError) as raised:
        prompts()[name].render(**inputs)
    assert raised.value.surplus == ("colour",)
    assert raised.value.missing in (("spec",), ("brief",))
    assert re.fullmatch(rf"prompt {name} lacks \w+ and has no input colour", str(raised.value))


def test_values_are_no_templates() -> None:
    rendered = prompts()["generate"].render(**{**INPUTS["generate"], "brief": "{{ 7 * 6 }} <b> {% raw %}"})
    assert "{{ 7 * 6 }} <b> {% raw %}" in rendered.user


def test_a_value_without_what_the_text_asks_of_it_is_an_error() -> None:
    page = {"id": "a", "title": "A"}
    with pytest.raises(PromptFileError, match=r"prompt generate cannot be rendered: .*text"):
        prompts()["generate"].render(**{**INPUTS["generate"], "pages": [page]})


HEAD = """+++
id = "a"
version = 2
inputs = { x = "something" }
parameters = { max_tokens = 10 }
changelog = { 1 = "made", 2 = "changed" }
+++
"""
BODY = "{% block system %}be good{% endblock %}{% block user %}{{ x }}{% include 'parts/p.jinja' %}{% endblock %}"


def folder(tmp_path: Path, text: str = HEAD + BODY, part: str = "part") -> Path:
    (tmp_path / "parts").mkdir(exist_ok=True)
    (tmp_path / "parts" / "p.jinja").write_text(part)
    (tmp_path / "a.jinja").write_text(text)
    return tmp_path


def test_a_whole_file(tmp_path: Path) -> None:
    prompt = read_prompts(folder(tmp_path))["a"]
    assert (prompt.version, prompt.parameters, prompt.changelog[2]) == (2, ModelParameters(10, None), "changed")
    rendered = prompt.render(x=1)
    assert (rendered.system, rendered.user) == ("be good\n", "1part\n")


def test_the_hash_covers_the_file_and_its_parts(tmp_path: Path) -> None:
    first = read_prompts(folder(tmp_path))["a"].hash
    (tmp_path / "parts" / "q.jinja").write_text("of nobody")
    assert read_prompts(folder(tmp_path))["a"].hash == first
    assert read_prompts(folder(tmp_path, part="Part"))["a"].hash != first
    assert read_prompts(folder(tmp_path, HEAD + BODY + "\n"))["a"].hash != first
    assert read_prompts(folder(tmp_path, HEAD.replace("10", "11") + BODY))["a"].hash != first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("+++\nid", "id", "does not begin with TOML"),
        ('id = "a"', "id = a", "is no TOML"),
        ('id = "a"', 'id = "b"', "its id is 'b'"),
        ('id = "a"\n', "", "lacks id"),
        ("version = 2", 'version = 2\nauthor = "me"', "author is no key of a prompt"),
        ("version = 2", "version = 0", "from 1 on"),
        ("version = 2", "version = 3", "a line for each version from 1 to 3"),
        ('1 = "made", ', "", "a line for each version from 1 to 2"),
        ('2 = "changed"', '2 = ""', "changelog.2 is one line"),
        ("max_tokens = 10", "tokens = 10", "parameters are max_tokens"),
        ("max_tokens = 10", "max_tokens = 0", "max_tokens is a number"),
        ("max_tokens = 10", "max_tokens = 10, temperature = 1.5", "between 0 and 1"),
        ("{{ x }}", "", "its input x is never read"),
        ("{{ x }}", "{{ x }}{{ z }}", "it reads z"),
        ("parts/p.jinja", "parts/none.jinja", "it includes parts/none.jinja, which is no part"),
        ("'parts/p.jinja'", "x", "it includes what only an input says"),
        ("block system", "block systems", "it has the blocks system and user"),
        ("{{ x }}", "{{ x }", "unexpected '}'"),
    ],
)
def test_a_wrong_file_is_one_error_that_names_it(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in HEAD + BODY
    with pytest.raises(PromptFileError, match=f"a\\.jinja: .*{re.escape(message)}"):
        read_prompts(folder(tmp_path, (HEAD + BODY).replace(old, new)))


def test_the_example_of_a_spec_is_one_that_our_reader_accepts() -> None:
    system = prompts()["spec"].render(**INPUTS["spec"]).system
    example = re.search(r"\n(kernel = .*?)\n\nwith the signature\n\n(__global__ [^\n]+)\n", system, re.DOTALL)
    assert example is not None
    block = [*example[1].split("\n"), "[launch]", 'grid = "rows"', "block = 32"]
    text = "\n".join(
        ["// /// kernel-forge", *(f"// {line}".rstrip() for line in block), "// ///", f"{example[2]} {{}}\n"]
    )
    reading = read_specs(parse(text, "example.cu"))
    assert [problem.message for problem in reading.problems] == []
    (spec,) = reading.specs
    assert [arg.name for arg in spec.args] == ["x", "y", "rows", "cols", "eps"]


def test_launch_functions_of_the_rules_are_those_of_the_spec() -> None:
    text = (prompts_folder() / "parts" / "kernel_rules.jinja").read_text(encoding="utf-8")
    named = re.search(r"`(min max [a-z0-9_ ]+)`", text)
    assert named is not None
    assert set(named[1].split()) <= FUNCTIONS.keys() | {"int"}


def test_pages_of_the_knowledge_base_are_handed_over_as_they_are() -> None:
    page = patterns()["split-k"]
    rendered = prompts()["generate"].render(**{**INPUTS["generate"], "pages": [page]})
    assert f'<page id="split-k" title="{page.title}">\n{page.text}\n</page>\n' in rendered.user

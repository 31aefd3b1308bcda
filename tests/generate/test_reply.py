import json

import pytest

from kernel_forge.generate.reply import Reply, read_reply, read_structured
from tests.generate.refused_kernels import PLAIN

FENCED = f"Here is the kernel.\n\n```cuda\n{PLAIN}```\n\nIt runs one thread for each element.\n"


def problems(text: str, kernel: str | None = None) -> list[tuple[str, int]]:
    """First words and first line of each problem."""
    read = read_reply(text, kernel)
    assert not isinstance(read, Reply)
    return [(problem.message, problem.range.start.line if problem.range else -1) for problem in read]


def test_prose_around_one_block() -> None:
    assert read_reply(FENCED) == Reply(PLAIN, {}, 3)


@pytest.mark.parametrize("info", ["cuda", "cu", "c++", "cpp", "CUDA", "", "cuda title=x"])
@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
def test_languages_and_fences(info: str, fence: str) -> None:
    assert read_reply(f"{fence}{info}\n{PLAIN}{fence}") == Reply(PLAIN, {}, 1)


def test_crlf_becomes_lf() -> None:
    assert read_reply(FENCED.replace("\n", "\r\n")) == Reply(PLAIN, {}, 3)


def test_code_without_a_fence() -> None:
    assert read_reply(PLAIN) == Reply(PLAIN, {}, 0)
    ((message, line),) = problems("This kernel copies.\n" + PLAIN)
    assert (message.split(";")[0], line) == ("no block of CUDA", 0)


@pytest.mark.parametrize(
    "block",
    [
        '```json\n{"TILE": [8, 16], "SCALE": [0.5]}\n```',
        "~~~toml\nTILE = [8, 16]\nSCALE = [0.5]\n~~~",
        '```json\n{"tunables": {"TILE": [8, 16], "SCALE": [0.5]}}\n```',
    ],
)
def test_tunables(block: str) -> None:
    read = read_reply(f"{FENCED}{block}\n")
    assert isinstance(read, Reply) and read.tunables == {"TILE": (8, 16), "SCALE": (0.5,)}
    assert read.kernel == PLAIN


def test_blocks_of_other_languages_are_prose() -> None:
    assert read_reply(FENCED + "```python\nx = 1\n```\n```text\nnote\n```\n") == Reply(PLAIN, {}, 3)


def test_an_unclosed_fence_is_a_reply_cut_off() -> None:
    ((message, line),) = problems(FENCED.split("It runs")[0].rstrip().removesuffix("```"))
    assert message.startswith("this block is not closed") and line == 2


def test_a_shorter_fence_does_not_close() -> None:
    assert problems(f"````cuda\n{PLAIN}```\n")[0][1] == 0


def test_two_blocks_of_code() -> None:
    text = FENCED + "```cpp\nint main() {}\n```\n"
    ((message, line),) = problems(text)
    assert message.startswith("a second block of CUDA") and text.split("\n")[line] == "```cpp"


def test_two_kernels() -> None:
    text = f"```\n{PLAIN}{PLAIN.replace(' k(', ' other(')}```"
    assert problems(text)[0][0].startswith("2 kernels (k, other)")
    assert isinstance(read_reply(text, "other"), Reply)
    assert problems(text, "third")[0][0].startswith("kernel third must be defined once; found: k, other")


def test_no_kernel() -> None:
    assert problems("```cuda\nint x;\n```")[0][0].startswith("no kernel")
    assert problems("// __global__ void k() {}\n")[0][0].startswith("no kernel")
    assert problems("")[0][0].startswith("no block")


def test_a_spec_block_is_not_the_models_to_write() -> None:
    text = f"```cuda\n// /// kernel-forge\n// tolerance.relative = 1\n// ///\n{PLAIN}```"
    assert problems(text)[0][0].startswith("a spec block")


BAD_TUNABLES = {
    "no list": {"TILE": 8},
    "empty list": {"TILE": []},
    "text": {"TILE": ["8"]},
    "truth value": {"TILE": [True]},
    "given twice": {"TILE": [8, 8]},
    "infinite": {"TILE": [float("inf")]},
    "enormous": {"TILE": [10**400]},
    "no name": {"a b": [1]},
    "option in a name": {"A=1 -DB": [1]},
    "keyword": {"float": [1]},
    "name of CUDA": {"threadIdx": [1]},
    "reserved name": {"__CUDA_ARCH__": [800]},
    "array": [1, 2],
}


@pytest.mark.parametrize("value", BAD_TUNABLES.values(), ids=BAD_TUNABLES.keys())
def test_bad_tunables(value: object) -> None:
    (problem,) = [p for p in (read_structured({"kernel": PLAIN, "tunables": value}),) if not isinstance(p, Reply)]
    assert len(problem) == 1
    text = f"{FENCED}```json\n{json.dumps(value)}\n```\n"
    ((_, line),) = problems(text)
    assert text.split("\n")[line] == "```json"


def test_json_that_is_none_or_gives_a_name_twice() -> None:
    assert "no JSON" in problems(FENCED + "```json\n{\n```\n")[0][0]
    assert "given twice" in problems(FENCED + '```json\n{"A": [1], "A": [2]}\n```\n')[0][0]
    assert "no TOML" in problems(FENCED + "```toml\nA = [1\n```\n")[0][0]
    assert "no JSON" in problems(FENCED + "```json\n" + "[" * 100_000 + "\n```\n")[0][0]


def test_structured() -> None:
    value = {"kernel": PLAIN.replace("\n", "\r\n"), "tunables": {"TILE": [8, 16]}}
    assert read_structured(value) == Reply(PLAIN, {"TILE": (8, 16)})
    assert read_structured({"kernel": PLAIN}) == Reply(PLAIN, {})


@pytest.mark.parametrize(
    "value", [None, [], "text", {}, {"kernel": 1}, {"kernel": PLAIN, "host": "x"}, {"kernel": "int x;"}]
)
def test_structured_that_is_no_reply(value: object) -> None:
    read = read_structured(value)
    assert not isinstance(read, Reply) and all(p.range is None and p.message for p in read) and read

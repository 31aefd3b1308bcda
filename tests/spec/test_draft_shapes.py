"""Drafts of correct kernels in many styles: gaps are just where the code is silent, and nothing else is wrong."""

import re
import tomllib

import pytest

from kernel_forge import wiring
from kernel_forge.domain.errors import DeviceUnavailable
from kernel_forge.domain.outcome import Passed
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device
from kernel_forge.source import parse
from kernel_forge.spec import draft_block, gaps, read_specs
from tests.spec.drafted_kernels import KERNELS
from tests.spec.reading import PATH


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        return wiring.device("emulator")
    except DeviceUnavailable as error:
        pytest.skip(str(error))


def drafted(text: str) -> str:
    """``text`` with the draft of its kernel k."""
    file = parse(text, PATH)
    edit = draft_block(file, "k").edit
    at = file.offset(edit.range.start)
    return text[:at] + edit.new_text + text[at:]


def toml(text: str) -> dict[str, object]:
    """The block's TOML."""
    (block,) = parse(text, PATH).blocks
    return tomllib.loads(block.toml)


def gap_names(text: str) -> set[str]:
    return {".".join(p for p in path if isinstance(p, str)) for path, _ in gaps.find_gaps(toml(text))}


def filled(text: str, answers: dict[str, str]) -> str:
    """``text`` with the gaps filled: references as expressions, all else as TOML."""
    for key, answer in answers.items():
        table, name, *what = key.split(".")
        if table == "reference":
            text = text.replace(f'{name} = "{gaps.REFERENCE}"', f'{name} = "{answer}"')
        elif table == "launch":
            text = re.sub(rf"// {name} = .*", f"// {name} = {answer}", text)
        else:
            mark = {"shape": gaps.SHAPE, "init": gaps.CONTENTS}.get(what[0] if what else "", gaps.VALUE)
            text = re.sub(rf'(// {name} = [^\n]*?)"{mark}"', lambda m, a=answer: m[1] + a, text)  # type: ignore[misc]
    return text


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom", "ignore:invalid value")
@pytest.mark.parametrize("name", KERNELS)
def test_a_draft_has_gaps_where_the_code_is_silent_and_verifies_once_they_are_filled(name: str, device: Device) -> None:
    text, answers = KERNELS[name]
    new = drafted(text)
    assert gap_names(new) == set(answers)
    if answers:
        problems = read_specs(parse(new, PATH)).problems
        assert problems
        assert all("fill in" in p.message for p in problems)
    report = verify_file(VerifyRequest(PATH, filled(new, answers), seed=1), device, lambda progress: None)
    assert not report.problems
    (verdict,) = report.verdicts
    assert isinstance(verdict.outcome, Passed), verdict.outcome

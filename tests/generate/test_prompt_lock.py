"""A changed prompt has a changed version, which the lock file remembers."""

import tomllib
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from kernel_forge.generate.prompts import prompts, read_prompts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("lock_prompts", ROOT / "scripts" / "lock_prompts.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lock_is_that_of_the_prompts(script: ModuleType) -> None:
    """Fails where a text was changed: raise its version, add to its changelog, run scripts/lock_prompts.py."""
    read = read_prompts(ROOT / "prompts")
    text = (ROOT / "prompts" / "lock.toml").read_text()
    lock = tomllib.loads(text)
    assert script.problems(read, lock) == []
    assert script.text_of(script.renewed(read, lock)) == text


def test_a_text_that_changed_without_its_version(script: ModuleType) -> None:
    read = {"spec": prompts()["spec"]}
    lock = script.renewed(read, {})
    assert script.problems(read, lock) == []
    changed = {"spec": replace(read["spec"], hash="0" * 64)}
    version = read["spec"].version
    (problem,) = script.problems(changed, lock)
    assert problem == (
        f"spec: its text changed and its version did not: make it {version + 1}, with a line in its changelog"
    )
    raised = {"spec": replace(changed["spec"], version=version + 1)}
    assert script.problems(raised, lock) == []
    assert script.renewed(raised, lock)["spec"] == {**lock["spec"], str(version + 1): "0" * 64}


def test_versions_neither_fall_nor_skip(script: ModuleType) -> None:
    prompt = replace(prompts()["spec"], version=3)
    (skipped,) = script.problems({"spec": prompt}, {"spec": {"1": "a"}})
    assert skipped == "spec: its version is 3; the next is 2"
    (fell,) = script.problems({"spec": prompt}, {"spec": {"3": prompt.hash, "4": "b"}})
    assert fell == "spec: its version is 3, and 4 is in the lock already"


def test_a_locked_prompt_does_not_vanish(script: ModuleType) -> None:
    assert script.problems({}, {"spec": {"1": "a"}}) == ["spec: is in the lock and has no file"]

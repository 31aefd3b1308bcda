"""What is taken over from compile_commands.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_forge import wiring
from kernel_forge.domain.outcome import Passed
from kernel_forge.jobs.compile_database import CompileOptions, compile_options
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.verify import verify_file


def project(root: Path, command: Any, at: str = "compile_commands.json", file: str = "src/k.cu") -> Path:
    """A repository whose database compiles ``file`` from ``root/build`` by ``command``."""
    (root / ".git").mkdir(parents=True, exist_ok=True)
    (root / "src").mkdir(exist_ok=True)
    (root / "build").mkdir(exist_ok=True)
    key = "command" if isinstance(command, str) else "arguments"
    entry = {"directory": str(root / "build"), "file": f"../{file}", key: command}
    other = {**entry, "file": "../src/other.cu", key: "nvcc -DOTHER"}
    (root / at).write_text(json.dumps([other, entry]), encoding="utf-8")
    return root / file


@pytest.mark.parametrize("at", ["compile_commands.json", "build/compile_commands.json", "src/compile_commands.json"])
def test_it_is_found_beside_above_and_in_build(tmp_path: Path, at: str) -> None:
    file = project(tmp_path, "nvcc -DN=4 -c ../src/k.cu", at)
    made = compile_options(str(file))
    assert made.defines == {"N": "4"}
    assert made.source == str(tmp_path / at)


def test_every_spelling(tmp_path: Path) -> None:
    command = (
        "nvcc -I../a -I ../b -isystem=../c -isystem ../d --include-path ../e -DA -DB=2 -D C=3 --define-macro D=4 "
        "-DGONE -UGONE '-DTEXT=\"x y\"' -DNDEBUG --std c++20 -O3 -gencode arch=compute_90,code=sm_90 -x cu -c k.cu"
    )
    made = compile_options(str(project(tmp_path, command)))
    assert [Path(d).name for d in made.include_dirs] == ["a", "b", "c", "d", "e"]
    assert all(Path(d).is_absolute() for d in made.include_dirs)
    assert made.defines == {"A": "1", "B": "2", "C": "3", "D": "4", "TEXT": '"x y"'}
    assert made.flags == ("-std=c++20",)


def test_arguments_and_response_files(tmp_path: Path) -> None:
    file = project(tmp_path, ["nvcc", "--options-file", "includes.rsp", "-std=c++14", "-c", "k.cu"])
    (tmp_path / "build" / "includes.rsp").write_text("-I../far -DR=1\n")
    made = compile_options(str(file))
    assert [Path(d).name for d in made.include_dirs] == ["far"]
    assert made.defines == {"R": "1"}
    assert made.flags == ()  # older than what the emulator's headers need


def test_a_file_that_is_not_in_it_has_no_options(tmp_path: Path) -> None:
    project(tmp_path, "nvcc -DN=4")
    made = compile_options(str(tmp_path / "src" / "new.cu"))
    assert (made.include_dirs, made.defines, made.flags, made.source) == ((), {}, (), None)
    assert made.note is not None and "has no entry for new.cu" in made.note


def test_an_include_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    made = compile_options(str(project(tmp_path, "nvcc -I../incl -DN=4")))
    assert made.note is not None
    assert "language standard are those of" in made.note and f"{tmp_path}/incl of" in made.note


def test_the_search_ends_at_the_repository(tmp_path: Path) -> None:
    project(tmp_path, "nvcc -DN=4", file="inner/src/k.cu")
    inner = tmp_path / "inner"
    (inner / ".git").mkdir(parents=True)
    assert compile_options(str(inner / "src" / "k.cu")) == CompileOptions()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": 1}', "[3, null, {}]", '[{"file": 3}]'])
def test_what_is_no_database_is_no_trouble(tmp_path: Path, text: str) -> None:
    file = project(tmp_path, "nvcc")
    (tmp_path / "compile_commands.json").write_text(text)
    made = compile_options(str(file))
    assert made.defines == {}
    assert made.problem is not None
    readable = text in ('{"a": 1}', "[3, null, {}]", '[{"file": 3}]')
    assert ("has no entry" if readable else "cannot be read") in made.problem


def test_a_kernel_that_needs_its_build_is_verified(tmp_path: Path) -> None:
    device = wiring.device("emulator")
    if device.info().unavailable is not None:
        pytest.skip(str(device.info().unavailable))
    file = project(tmp_path, "nvcc -I../include -DSCALE=3 -c ../src/k.cu")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "scale.h").write_text("__device__ float scaled(float v) { return SCALE * v; }\n")
    text = (
        '// /// kernel-forge\n// kernel = "k"\n// reference = { y = "3 * x" }\n// cases = [{ n = 100 }]\n// [args]\n'
        '// x = { shape = ["n"] }\n// y = { shape = ["n"], role = "out" }\n// [launch]\n// grid = "cdiv(n, 32)"\n'
        '// block = 32\n// ///\n#include "scale.h"\n__global__ void k(const float* x, float* y, int n) {\n'
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = scaled(x[i]);\n}\n"
    )
    (verdict,) = verify_file(VerifyRequest(str(file), text), device, lambda _: None).verdicts
    assert isinstance(verdict.outcome, Passed), verdict
    assert any("compile_commands.json" in note for note in verdict.notes)

"""What is told of a job before it runs."""

import hashlib
from pathlib import Path

from kernel_forge.devices.cuda import CudaDevice
from kernel_forge.jobs.circumstances import platform_of
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.requests import Circumstances, TimeRequest, VerifyRequest
from kernel_forge.jobs.time import time_file
from kernel_forge.jobs.verify import verify_file
from tests.devices.cuda.test_device import Scripted
from tests.jobs.test_verify import BLOCK, copy
from tests.verify.fake_device import FakeDevice


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def told(request: VerifyRequest) -> Circumstances:
    found: list[Circumstances] = []
    verify_file(request, FakeDevice(copy), lambda _: None, tell=found.append)
    (circumstances,) = found
    return circumstances


def test_what_is_run_and_where(tmp_path: Path) -> None:
    text = BLOCK % "x"
    path = str(tmp_path / "w.cu")
    made = told(VerifyRequest(path, text, configuration={"BLOCK": 256}, defines={"A": "1"}, include_dirs=("/i",)))
    assert (made.platform.device, made.platform.basis) == ("fake", "fake")
    assert (made.platform.defines, made.platform.include_dirs) == ({"A": "1"}, ("/i",))
    (one,) = made.undertakings
    assert one.configuration == {"BLOCK": 256}
    assert (one.subject.path, one.subject.kernel, one.subject.source) == (path, "w", sha(text))
    assert one.subject.spec == text[: text.index("#ifndef")].rstrip("\n")
    assert "__global__" not in one.subject.spec  # of the source itself there is a digest only


def test_the_digests_of_what_it_is_made_with(tmp_path: Path) -> None:
    """Headers in quotes, those of headers, and Python references; what is not there, or is no file, is left out."""
    include = tmp_path / "inc"
    include.mkdir()
    (tmp_path / "a.h").write_text('#include "b.h"\n#include "a.h"\n')
    (include / "b.h").write_bytes(b"int b;\r\n")
    (tmp_path / "d.h").mkdir()
    (tmp_path / "ref.py").write_text("def f(x):\n    return x\n")
    text = BLOCK % "ref.py:f" + '#include "a.h"\n  # include "gone.h"\n#include "d.h"\n#include <vector>\n'
    made = told(VerifyRequest(str(tmp_path / "w.cu"), text, include_dirs=(str(include),)))
    root = tmp_path.resolve()
    assert made.undertakings[0].subject.files == {
        str(root / "a.h"): sha('#include "b.h"\n#include "a.h"\n'),
        str(root / "inc" / "b.h"): sha("int b;\r\n"),
        str(root / "ref.py"): sha("def f(x):\n    return x\n"),
    }


def test_a_sidecar_is_the_spec(tmp_path: Path) -> None:
    lines = (BLOCK % "x").split("// ///\n")
    toml = 'source = "w.cu"\n' + "".join(line.removeprefix("// ") for line in lines[0].splitlines(True)[1:])
    text = lines[1]
    made = told(VerifyRequest(str(tmp_path / "w.cu"), text, sidecar=(str(tmp_path / "w.forge.toml"), toml)))
    assert made.undertakings[0].subject.spec == toml


def test_a_timing_tells_the_seed_it_draws(tmp_path: Path) -> None:
    found: list[Circumstances] = []
    for seed in (None, None, 5):
        request = TimeRequest(str(tmp_path / "w.cu"), BLOCK % "x", seed=seed, time_limit=-1)
        time_file(request, FakeDevice(copy), lambda _: None, found.append)
    first, second, third = (c.undertakings[0].seed for c in found)
    assert first is not None
    assert first != second
    assert third == 5


def test_the_compiler_of_a_gpu_is_told_and_its_workers_command_is_not(tmp_path: Path) -> None:
    gpu = CudaDevice("lab", tmp_path, ("false", "worker"), compiler=Scripted())
    made = platform_of(gpu.info(), CompileOptions())
    assert made.compiler == "a script"
    assert not any("false" in value for value in made.facts.values())

"""The command line as users call it: exit codes, messages, files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

SCHEMA = json.loads((Path(__file__).parents[1] / "views" / "report.schema.json").read_text(encoding="utf-8"))
SPEC = """// /// kernel-forge
// kernel = "{name}"
// cases = [{{ n = 100 }}]
// reference = {{ y = "2 * x" }}
//
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
//
// [launch]
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
//
// [tune]
// BLOCK = [32, 64]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
"""
BODY = """__global__ void {name}(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = {factor}.0f * x[i];
}}
"""
NO_SPEC = BODY.format(name="k", factor=2)
GOOD = SPEC.format(name="k") + NO_SPEC
BAD = SPEC.format(name="k") + BODY.format(name="k", factor=3)


def forge(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel_forge", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.cu", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write(tmp_path / "bad.cu", BAD)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refused(*arguments: object, part: str) -> None:
    """One clear message and exit code 2."""
    done = forge(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert part in done.stderr
    assert done.stdout == ""


def test_good_and_bad(good: Path, bad: Path) -> None:
    assert forge("verify", good).returncode == 0
    done = forge("verify", bad)
    assert done.returncode == 1
    assert "(emulated)" in done.stdout
    both = forge("verify", good, bad, "--quiet")
    assert both.returncode == 1
    assert "✓" not in both.stdout
    assert "✗" in both.stdout


def test_json_keeps_to_its_schema(good: Path, bad: Path) -> None:
    done = forge("verify", good, bad, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMA)
    assert [f["verdicts"][0]["passed"] for f in report["files"]] == [True, False]


def test_a_seed_repeats(bad: Path) -> None:
    def run(*more: object) -> dict[str, object]:
        (verdict,) = json.loads(forge("verify", bad, "--json", *more).stdout)["files"][0]["verdicts"]
        return {k: v for k, v in verdict.items() if k != "seconds"}

    first = run()
    assert run("--seed", first["seed"]) == first


def test_folder_with_one_file_that_is_no_text(tmp_path: Path, good: Path) -> None:
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    write(tmp_path / "plain.cu", NO_SPEC)
    done = forge("verify", tmp_path)
    assert done.returncode == 0
    assert "binary.cu: not UTF-8 text" in done.stderr
    assert done.stdout.count("✓") == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused("verify", tmp_path / "none.cu", part="none.cu: no such file")
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    refused("verify", tmp_path / "binary.cu", part="not UTF-8 text")
    with (tmp_path / "large.cu").open("wb") as file:
        file.truncate(9 << 20)
    refused("verify", tmp_path / "large.cu", part="exceed the limit")
    refused("verify", write(tmp_path / "empty.cu", ""), part="no kernel either")
    os.mkfifo(tmp_path / "fifo.cu")
    refused("verify", tmp_path / "fifo.cu", part="not a regular file")
    refused("verify", "/dev/zero", part="not a regular file")


def test_nothing_to_verify(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.cu", NO_SPEC), write(tmp_path / "b.cu", NO_SPEC)
    refused("verify", one, part="kernel-forge spec a.cu:k --write")
    refused("verify", one, two, part="none of the 2 files has a spec block")
    refused("verify", tmp_path, part="no .cu or .cuh file with a spec block")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--set", "BLOK=3"), "did you mean BLOCK?"),
        (("--set", "BLOCK=abc"), "--set BLOCK=abc: the value must be a number"),
        (("--set", "BLOCK=1.5"), "BLOCK takes integers"),
        (("--set", "BLOCK"), "write NAME=VALUE"),
        (("--seed", "-1"), "'-1' is no integer from 0"),
        (("--seed", "x"), "'x' is no integer from 0"),
        (("--time-limit", "nan"), "'nan' is no number of seconds"),
        (("--time-limit", "0"), "'0' is no number of seconds"),
        (("--time-limit", "-1"), "'-1' is no number of seconds"),
        (("--time-limit", "inf"), "'inf' is no number of seconds"),
        (("-I", "/no/such"), "there is no folder /no/such"),
        (("-D", "1x"), "write NAME or NAME=VALUE"),
    ],
    ids=lambda v: "".join(v) if isinstance(v, tuple) else "",
)
def test_wrong_options(good: Path, options: tuple[str, ...], part: str) -> None:
    refused("verify", good, *options, part=part)


def test_a_tunable_of_one_of_several_files_is_known(tmp_path: Path, good: Path) -> None:
    other = write(tmp_path / "other.cu", GOOD.replace("BLOCK", "WIDTH"))
    done = forge("verify", good, other, "--set", "WIDTH=32", "--json")
    assert done.returncode == 0
    used = [f["verdicts"][0]["configuration"] for f in json.loads(done.stdout)["files"]]
    assert used == [{"BLOCK": 64}, {"WIDTH": 32}]


def test_an_unknown_device(good: Path, bad: Path) -> None:
    for files in ((good,), (good, bad)):
        done = forge("verify", *files, "--device", "abacus")
        assert done.returncode == 3
        assert "there is no device abacus" in done.stderr


def test_a_kernel_of_a_namespace(tmp_path: Path) -> None:
    head = "namespace ns {\n" + NO_SPEC + "}\n"
    inside = write(tmp_path / "ns.cu", SPEC.format(name="ns::k") + head)
    for name in ("ns::k", "k"):
        done = forge("verify", f"{inside}:{name}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("✓") == 1
    refused("verify", f"{inside}:other::k", part="no spec for a kernel other::k")
    refused("verify", f"{tmp_path}:k", part="is a folder")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_closed_output_keeps_the_verdict(bad: Path, options: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kernel_forge", "verify", str(bad), *options]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == b""


def test_one_job_that_fails_leaves_the_reports_of_the_others(tmp_path: Path, good: Path) -> None:
    crash = GOOD.replace('"2 * x"', '"crash.py:f"')
    write(tmp_path / "crash.py", "import os\n\n\ndef f(x):\n    os._exit(9)\n")
    done = forge("verify", good, write(tmp_path / "crash.cu", crash), good)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("✓") == 2
    assert "[KF203]" in done.stdout


def test_spec_writes_a_block(tmp_path: Path) -> None:
    file = write(tmp_path / "a.cu", NO_SPEC)
    assert "/// kernel-forge" in forge("spec", f"{file}:k").stdout
    assert file.read_text(encoding="utf-8") == NO_SPEC
    assert forge("spec", f"{file}:k", "--write").returncode == 0
    written = file.read_text(encoding="utf-8")
    assert written.endswith(NO_SPEC)
    assert "/// kernel-forge" in written
    refused("spec", f"{file}:k", "--write", part="has a spec block already")
    refused("spec", file, part="name the kernel")


def test_devices() -> None:
    done = forge("devices", "--json")
    assert done.returncode == 0
    row, *others = json.loads(done.stdout)["devices"]
    assert [r["name"] for r in others] == ["cuda"]
    assert row["name"] == "emulator"
    assert row["basis"] == "emulated"
    assert forge("devices").stdout.startswith("emulator: ")


def test_schema_and_version() -> None:
    assert json.loads(forge("schema").stdout)["type"] == "object"
    assert forge("--version").returncode == 0
    assert forge().returncode == 2
    refused("serve", "--tcp", "nowhere", part="write HOST:PORT")

"""What a tuning result means for another text: stale, applied, and the edits for that very text."""

from dataclasses import replace
from typing import Any

from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import Passed, Unavailable, Verdict
from kernel_forge.domain.tuning import Budget, Contender, KernelTuning, Ratio, SpaceFacts
from kernel_forge.lsp.tuned import Standing, Tuned, TuningRun, is_sure, standing, tuned
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.spec.defaults import edited

BLOCK = """// /// kernel-forge
// kernel = "%s"
// reference = { y = "x" }
// cases = [{ n = 10 }]
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// [launch]
// grid = 1
// block = "B"
// [tune]
// B = [32, 64, 128]
// ///
"""
BODY = "{ y[0] = same(x[0]); }\n"
MACRO = "#ifndef B\n#define B 32\n#endif\n"
PARAMETERS = "(const float* x, float* y, int n) "
FILE = MACRO + "__device__ float same(float v) { return v; }\n"
TEXT = FILE + BLOCK % "a" + "__global__ void a" + PARAMETERS + BODY + "__global__ void other(int n) { }\n"
TEMPLATE = (
    TEXT.replace(MACRO, "").replace('"a"', '"a<B>"').replace("__global__ void a", "template <int B> __global__ void a")
)
SIDECAR = """source = "a.cu"
[kernels.a]
kernel = "a<B>"
reference = { y = "x" }
cases = [{ n = 10 }]
args = { x = { shape = ["n"] }, y = { shape = ["n"], role = "out" } }
launch = { grid = 1, block = "B" }
tune = { B = [32, 64, 128] }
"""


def time(seconds: float) -> Measurement:
    return Measurement(seconds, seconds, seconds, 15, 1, "events", None, "emulated")


TWICE = Ratio(2.0, 1.9, 2.1)


def tuning(ratio: Ratio | None = TWICE, outcome: object = Passed(1, 1)) -> KernelTuning:
    verdict = Verdict("a", "/a.cu", outcome, {"B": 128}, 1, "emulator", "emulated")  # type: ignore[arg-type]
    base = Contender({"B": 32}, (time(2.0),), Ratio(1.0, 1.0, 1.0))
    best = Contender({"B": 128}, (time(1.0),), ratio)
    space = SpaceFacts(3, 3, {"B": (32, 64, 128)})
    where = ("a", "/a.cu", "emulator", "emulated", ({"n": 10},))
    return KernelTuning(*where, space, "random", 1, Budget(), "trials", (), base, best, verdict)


def known(text: str, sidecar: tuple[str, str] | None = None) -> Tuned:
    source = parse(text, "/a.cu")
    spec = read_specs(source, sidecar).spec_of("a")
    assert spec is not None
    return tuned(TuningRun(spec, source, sidecar), tuning())


def means(result: Tuned, text: str, sidecar: tuple[str, str] | None = None) -> Standing:
    source = parse(text, "/a.cu")
    spec = read_specs(source, sidecar).spec_of("a")
    assert spec is not None
    return standing(result, spec, source, sidecar)


def test_the_text_that_was_tuned() -> None:
    found = means(known(TEXT), TEXT)
    assert (found.is_stale, found.is_applied) == (False, False)
    assert edited(TEXT, found.change.edits["/a.cu"]) == TEXT.replace("#define B 32", "#define B 128")


def test_the_best_applied() -> None:
    found = means(known(TEXT), TEXT.replace("#define B 32", "#define B 128"))
    assert (found.is_stale, found.is_applied, dict(found.change.edits)) == (False, True, {})


def test_another_default_or_text_elsewhere_does_not_age_it() -> None:
    text = "// above\n" + TEXT.replace("#define B 32", "#define B 64").replace("{ }", "{ n = 1; }")
    text = text.replace("{ return v; }", "{ /* as it is */ return v; }  // no more") + "int main() { return 0; }\n"
    found = means(known(TEXT), text)
    assert (found.is_stale, found.is_applied) == (False, False)
    assert edited(text, found.change.edits["/a.cu"]) == text.replace("#define B 64", "#define B 128")


def test_what_the_kernel_depends_on_ages_it() -> None:
    for old, new in (
        (BODY, BODY.replace("x[0]", "x[1]")),
        ("return v;", "return v + 1;"),
        ("n = 10", "n = 11"),
        ("B 32", "B 32\n#define C 1"),
    ):
        assert means(known(TEXT), TEXT.replace(old, new)).is_stale


def test_a_launch_that_the_host_code_tells_ages_it() -> None:
    host = "int main() { a<<<1, B>>>(nullptr, nullptr, 10); }\n"
    text = TEXT.replace('// [launch]\n// grid = 1\n// block = "B"\n', "") + host
    assert not means(known(text), text.replace("int main() {", "int main() { int i = 0;")).is_stale
    assert means(known(text), text.replace("<<<1, B>>>", "<<<2, B>>>")).is_stale


def test_a_default_that_can_no_longer_be_set_ages_it() -> None:
    text = TEXT.replace("[32, 64, 128]", "[32, 64]")
    found = means(known(TEXT), text)
    assert found.is_stale and found.change.impossible is not None and not found.change.edits


def test_a_template_argument_is_the_first_of_its_list() -> None:
    found = means(known(TEMPLATE), TEMPLATE)
    applied = edited(TEMPLATE, found.change.edits["/a.cu"])
    assert "B = [128, 32, 64]" in applied
    assert means(known(TEMPLATE), applied) == Standing(False, True, replace(found.change, edits={}, notes=()), None)


def test_a_spec_beside_the_file() -> None:
    text = TEMPLATE.replace(BLOCK % "a<B>", "")
    beside = ("/a.forge.toml", SIDECAR)
    result = known(text, beside)
    found = means(result, text, beside)
    assert not found.is_stale and set(found.change.edits) == {"/a.forge.toml"}
    applied = edited(SIDECAR, found.change.edits["/a.forge.toml"])
    assert "B = [128, 32, 64]" in applied
    after = means(result, text, ("/a.forge.toml", applied))
    assert (after.is_stale, after.is_applied) == (False, True)
    assert means(result, text, ("/a.forge.toml", SIDECAR.replace("n = 10", "n = 11"))).is_stale


def test_only_what_is_verified_and_faster_for_sure_is_sure() -> None:
    def of_gpu(*what: Any, **more: Any) -> KernelTuning:
        return replace(tuning(*what, **more), basis="measured on NVIDIA H200")

    assert is_sure(of_gpu())
    assert not is_sure(tuning())  # times of an emulation
    assert not is_sure(of_gpu(Ratio(1.1, 0.9, 1.3)))
    assert not is_sure(of_gpu(None))
    assert not is_sure(of_gpu(outcome=Unavailable("not decided")))
    assert not is_sure(replace(of_gpu(), winner=Contender({"B": 32}, (time(2.0),), Ratio(1.0, 1.0, 1.0))))

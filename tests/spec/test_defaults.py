"""A configuration made the default: what is changed is the value alone, and it is read back."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_forge.domain.expression import Number
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.spec.defaults import edited, make_default
from tests.spec.reading import PATH

SIDECAR = "/work/scale.forge.toml"
HEAD = """\
// /// kernel-forge
// kernel = "scale"
// reference = "a * x"
// cases = [{ n = 100 }]
// args = { a = 2.0 }
// launch = { grid = "cdiv(n, 32)", block = "32" }
"""
KERNEL = "__global__ void scale(const float* x, float* y, int n, float a) {{ int i = {}; }}\n"


def file(tune: str, macros: str, body: str = "BLOCK") -> str:
    lines = "".join(f"// {line}".rstrip() + "\n" for line in tune.splitlines())
    return f"{HEAD}// [tune]\n{lines}// ///\n{macros}{KERNEL.format(body)}"


def after(
    text: str, configuration: Mapping[str, Number], sidecar: str | None = None, kernel: str = "scale"
) -> tuple[str, str | None, tuple[str, ...]]:
    """Both texts after the edits, and the notes."""
    beside = None if sidecar is None else (SIDECAR, sidecar)
    source = parse(text, PATH)
    reading = read_specs(source, beside)
    assert not reading.problems, [p.message for p in reading.problems]
    spec = reading.spec_of(kernel)
    assert spec is not None
    made = make_default(spec, source, configuration, beside)
    assert not isinstance(made, str), made
    assert set(made.edits) <= {PATH, SIDECAR}
    new = edited(text, made.edits.get(PATH, ()))
    return new, None if sidecar is None else edited(sidecar, made.edits.get(SIDECAR, ())), made.notes


def refused(text: str, configuration: Mapping[str, Number], kernel: str = "scale") -> str:
    source = parse(text, PATH)
    spec = read_specs(source).spec_of(kernel)
    assert spec is not None
    made = make_default(spec, source, configuration)
    assert isinstance(made, str)
    return made


def guarded(name: str, value: str) -> str:
    return f"#ifndef {name}\n#define {name} {value}\n#endif\n"


@pytest.mark.parametrize(
    ("values", "written", "value", "new"),
    [
        ("[64, 128]", "128  // threads", 64, "64  // threads"),
        ("[64, 128]", "  128u /* threads */", 64, "  64u /* threads */"),
        ("[64, 128]", "(128)", 64, "(64)"),
        ("[64, 128]", "4 * 32", 64, "64"),
        ("[-1, 1]", "1", -1, "-1"),
        ("[0.5, 0.25]", "0.5f", 0.25, "0.25f"),
        ("[true, false]", "true", False, "false"),
        ("[true, false]", "1", False, "0"),
        ("[64, 128]", "100", 64, "64"),  # 100 is none of the values: the first is the default, and now the code's too
    ],
)
def test_only_the_value_of_a_macro_changes(values: str, written: str, value: Number, new: str) -> None:
    tune = f"BLOCK = {values} # why"
    text, _, notes = after(file(tune, guarded("BLOCK", written)), {"BLOCK": value})
    assert text == file(tune, guarded("BLOCK", new))
    assert notes == ()


def test_a_suffix_and_a_bool_are_read_as_the_default() -> None:
    """They gave the first value of the list, whatever the code said."""
    for values, written, value in (("[0.25, 0.5]", "0.5f", 0.5), ("[false, true]", "true", True)):
        (spec,) = read_specs(parse(file(f"BLOCK = {values}", guarded("BLOCK", written)), PATH)).specs
        assert spec.default_configuration == {"BLOCK": value}


def test_what_is_the_default_already_needs_no_edit() -> None:
    text = file("BLOCK = [64, 128]", guarded("BLOCK", "128"))
    assert after(text, {"BLOCK": 128}) == (text, None, ())


def test_without_a_macro_the_value_moves_to_the_front_of_its_list() -> None:
    text = file("BLOCK = [ 32,64,  128 ]  # threads", "")
    new, _, (note,) = after(text, {"BLOCK": 128})
    assert new == file("BLOCK = [ 128,32,  64 ]  # threads", "")
    assert "your own build has to" in note


def test_comments_go_along_where_each_value_has_a_line() -> None:
    text = file("BLOCK = [\n  32, # one warp\n  64,\n  128 # most\n]", "")
    new, _, _ = after(text, {"BLOCK": 128})
    assert new == file("BLOCK = [\n  128, # most\n  32, # one warp\n  64\n]", "")
    assert after(new, {"BLOCK": 32})[0] == file("BLOCK = [\n  32, # one warp\n  128, # most\n  64\n]", "")


def test_the_list_of_a_template_argument() -> None:
    text = (
        file("BLOCK = [32, 64]", "")
        .replace('"scale"', '"scale<BLOCK>"')
        .replace("__global__", "template <int B>\n__global__")
    )
    new, _, (note,) = after(text, {"BLOCK": 64})
    assert new == text.replace("[32, 64]", "[64, 32]")
    assert "template argument" in note


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("prefix", ["", "kernels.scale."])
def test_a_sidecar(newline: str, prefix: str) -> None:
    toml = (
        f'source = "scale.cu"\n{f"[{prefix[:-1]}]" if prefix else ""}\nkernel = "scale"\nreference = "a * x"\n'
        'cases = [{ n = 100 }]\nargs = { a = 2.0 }\nlaunch = { grid = 4, block = "WIDTH" }\n'
        f"[{prefix}tune]\nBLOCK = [64, 128]\nWIDTH = [32, 64] # last\n"
    ).replace("\n", newline)
    text = (guarded("BLOCK", "64") + KERNEL.format("BLOCK")).replace("\n", newline)
    new, beside, (note,) = after(text, {"BLOCK": 128, "WIDTH": 64}, toml)
    assert new == text.replace("BLOCK 64", "BLOCK 128")
    assert beside == toml.replace("[32, 64]", "[64, 32]")
    assert "of the launch alone" in note


@pytest.mark.parametrize(
    ("macros", "value", "reason"),
    [
        (guarded("BLOCK", "64") * 2, 128, "several places (lines 11 and 14)"),
        ("#define WARPS 2\n" + guarded("BLOCK", "(WARPS * 32)"), 128, "no number that can be replaced"),
        (guarded("BLOCK", "64"), 96, "none of its values: 64, 128"),
    ],
)
def test_why_not(macros: str, value: Number, reason: str) -> None:
    assert reason.replace(" and ", ", ") in refused(file("BLOCK = [64, 128]", macros), {"BLOCK": value})


def test_an_unknown_tunable() -> None:
    assert refused(file("BLOCK = [64]", guarded("BLOCK", "64")), {"WARP": 1}) == "scale has no tunable WARP"


def second(values: str, where: str = "") -> str:
    tune = f"// [tune]\n// BLOCK = {values}\n{where}// ///\n"
    return HEAD.replace('"scale"', '"other"') + tune + KERNEL.format("BLOCK").replace("scale", "other")


def test_a_macro_of_two_kernels() -> None:
    """The other kernel's default changes too, which has to be said; where its spec does not admit it, nothing is."""
    first = file("BLOCK = [64, 128]", guarded("BLOCK", "64"))
    new, _, (note,) = after(first + second("[64, 128]"), {"BLOCK": 128})
    assert [s.default_configuration for s in read_specs(parse(new, PATH)).specs] == [{"BLOCK": 128}] * 2
    assert note == "BLOCK is used by other too: verify again"
    assert refused(first + second("[32, 64]"), {"BLOCK": 128}) == (
        "other has BLOCK as well, and 128 is none of its values there"
    )
    where = '// where = ["BLOCK < 100"]\n'
    assert "the spec of other does not admit the new default: " in refused(
        first + second("[64, 128]", where), {"BLOCK": 128}
    )


def test_a_kernel_that_names_the_macro_without_a_spec() -> None:
    text = file("BLOCK = [64, 128]", guarded("BLOCK", "64")) + "__global__ void bare(int* p) { p[0] = BLOCK; }\n"
    assert after(text, {"BLOCK": 128})[2] == ("BLOCK is used by bare too: verify again",)


# Values that TOML and C++ have in common, in the spellings that a file may have them in.
INTEGERS = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda f: round(f, 4))
SUFFIX = {int: ("", "u", "U", "l", "LL"), float: ("", "f", "F")}
COMMENT = st.sampled_from(["", " // why", "\t/* why */", "   // 128, [64]"])


@st.composite
def spelling(draw: st.DrawFn, value: Number) -> str:
    if isinstance(value, bool):
        text = draw(st.sampled_from(["true", "1"] if value else ["false", "0"]))
    elif isinstance(value, float):
        text = repr(value) + draw(st.sampled_from(SUFFIX[float]))
    else:
        suffix = draw(st.sampled_from(SUFFIX[int])) if value >= 0 else ""
        text = (hex(value) if draw(st.booleans()) else str(value)) + suffix
    return draw(st.sampled_from(["{}", "({})", "( {} )"])).format(text)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, dict[str, Number]]:
    """A file with up to three tunables, macros or not, and a configuration of them."""
    tune, macros, chosen = [], [], {}
    for name in ["BLOCK", "TILE", "W"][: draw(st.integers(1, 3))]:
        kind: st.SearchStrategy[Number] = draw(st.sampled_from([INTEGERS, FLOATS, st.booleans()]))
        values = draw(st.lists(kind, min_size=1, max_size=4, unique=True))
        texts = [repr(v).lower() if isinstance(v, bool) else repr(v) for v in values]
        if draw(st.booleans()):
            inner = draw(st.sampled_from([", ", ",", " ,  "])).join(texts)
            tune.append(f"{name} = [{inner}]{draw(st.sampled_from(['', ' # [1, 2]']))}")
        else:
            comments = [draw(st.sampled_from(["", " # c", f"  # {i}"])) for i in range(len(texts))]
            last = draw(st.sampled_from(["", ","]))
            rows = [
                f"  {t}{',' if i + 1 < len(texts) else last}{c}"
                for i, (t, c) in enumerate(zip(texts, comments, strict=True))
            ]
            tune.extend([f"{name} = [", *rows, "]"])
        if draw(st.booleans()):
            gap = draw(st.sampled_from([" ", "   ", "\t"]))
            value = draw(spelling(draw(st.sampled_from(values))))
            macros.append(f"#ifndef {name}\n#define {name}{gap}{value}{draw(COMMENT)}\n#endif\n")
        chosen[name] = draw(st.sampled_from(values))
    text = file("\n".join(tune), "".join(macros), " + ".join(["BLOCK", "TILE", "W"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))), chosen


@settings(max_examples=60, deadline=None)
@given(files())
def test_every_configuration_is_read_back(made: tuple[str, dict[str, Number]]) -> None:
    text, configuration = made
    new, _, _ = after(text, configuration)
    (spec,) = read_specs(parse(new, PATH)).specs
    assert dict(spec.default_configuration) == configuration
    assert after(new, configuration)[0] == new
    # Nothing but values (and the comments of their lines) changes, and none of those is lost.
    assert len(new.splitlines()) == len(text.splitlines())
    tables = [t.partition("[tune]")[2].partition("// ///")[0] for t in (text, new)]
    assert sorted(tables[0]) == sorted(tables[1])
    (old_spec,) = read_specs(parse(text, PATH)).specs
    assert [sorted(t.values) for t in spec.tunables] == [sorted(t.values) for t in old_spec.tunables]

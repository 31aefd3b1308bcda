"""Every KF1xx problem: its code, its exact place inside the comment, its advice, and that its fix mends it."""

import pytest

from tests.spec.reading import GOOD, KERNEL, PATH, apply, at, block, only, read, source, spec_of


def good(old: str = "", new: str = "") -> str:
    assert old in GOOD
    return source(GOOD.replace(old, new) if old else GOOD)


def test_the_block_all_tests_start_from_has_no_problem() -> None:
    spec = spec_of(good())
    assert spec.kernel == "scale"


@pytest.mark.parametrize(
    ("code", "old", "new", "place", "message"),
    [
        ("KF102", "a * x", 'a * x" "', '""', "not TOML"),
        ("KF103", "cases", "csaes", "csaes", "did you mean cases?"),
        ("KF103", "cases = [", "zzz = 1\ncases = [", "zzz", "known keys are kernel, reference, cases"),
        ("KF103", "grid =", "gird =", "gird", "did you mean grid?"),
        ("KF103", "{ a = 2.0 }", "{ a = { vlaue = 2.0 } }", "vlaue", "did you mean value?"),
        ("KF104", "[{ n = 100 }]", "[{ n = 1.5 }]", "1.5", "must be a whole number"),
        ("KF104", "[{ n = 100 }]", '[{ n = "100" }]', '"100"', "must be a whole number"),
        ("KF104", "[{ n = 100 }]", "{ n = 100 }", "{ n = 100 }", "must be a list"),
        ("KF104", "[{ n = 100 }]", "[]", "[]", "must not be empty"),
        ("KF104", '"a * x"', "3", "3", "What each output must be"),
        (
            "KF104",
            "{ a = 2.0 }",
            '{ a = 2.0, y = { role = "output" } }',
            '"output"',
            "'in', 'out', 'inout' or 'scratch'",
        ),
        ("KF104", "{ a = 2.0 }", '{ a = 2.0, x = { init = "norml" } }', '"norml"', "use normal, uniform"),
        ("KF104", "{ a = 2.0 }", '{ a = 2.0, x = { role = "out" } }', '"out"', "x is const in the kernel"),
        ("KF104", "{ a = 2.0 }", "{ a = 2.0, x = 3 }", "3", "x is a pointer; give it a shape"),
        (
            "KF104",
            "{ a = 2.0 }",
            '{ a = { shape = ["n"] } }',
            '{ shape = ["n"] }',
            "a is passed by value; write a = 1.0",
        ),
        ("KF105", '"scale"', '"scael"', '"scael"', "did you mean scale?"),
        ("KF105", '"scale"', '"scale<3>"', '"scale<3>"', "not a template"),
        ("KF105", '"scale"', '"a b"', '"a b"', "is no kernel"),
        ("KF106", "kernel = ", "# kernel = ", None, "needs the key kernel"),
        ("KF106", "{ a = 2.0 }", "{ }", "args", "parameter a needs a value: a = 1e-6"),
        (
            "KF106",
            "[{ n = 100 }]",
            "[{ n = 100, m = 2 }]",
            "args",
            'x needs a shape, for example x = { shape = ["n", "m"] }',
        ),
        (
            "KF106",
            "{ a = 2.0 }",
            '{ a = 2.0, x = { init = { kind = "constant" } } }',
            '{ kind = "constant" }',
            "its value",
        ),
        ("KF106", "{ a = 2.0 }", '{ a = 2.0, x = { init = { kind = "integers" } } }', '{ kind = "integers" }', "limit"),
        ("KF107", "{ a = 2.0 }", "{ a = 2.0, z = 3 }", "z", "z is no parameter of the kernel"),
        ("KF109", '"cdiv(n, 32)"', '"cdiv(m, 32)"', "m", "m is no size, scalar or tunable (known are a, n)"),
        ("KF109", '"cdiv(n, 32)"', '"n +"', None, "not an expression"),
        ("KF109", '"cdiv(n, 32)"', '"foo(n)"', "foo(n)", "cdiv"),
        ("KF109", "{ a = 2.0 }", '{ a = 2.0, x = { shape = ["n", "n[0]"] } }', "n[0]", "only numbers"),
        ("KF109", "cases", 'where = ["min(n, q) > 1"]\ncases', "q", "q is no size or tunable (known are n)"),
        ("KF109", "{ a = 2.0 }", '{ a = "1 / (n - 100)" }', "1 / (n - 100)", "division by zero"),
        ("KF110", "[{ n = 100 }]", "[{ n = -1 }]", "-1", "a size is never negative"),
        ("KF110", "[{ n = 100 }]", "[{ n = 100 }, {}]", "{}", "lacks n"),
        ("KF110", "[{ n = 100 }]", "[{ n = 100 }, { n = 1, k = 2 }]", "{ n = 1, k = 2 }", "has k"),
        ("KF110", "[{ n = 100 }]", "[{ n = 1000000000 }]", "{ n = 1000000000 }", "7.45 GiB"),
        ("KF110", "cases", 'where = ["n > 200"]\ncases', "{ n = 100 }", "breaks the constraint n > 200"),
        ("KF110", "{ a = 2.0 }", '{ a = 2.0, x = { shape = ["n - 101"] } }', '"n - 101"', "n - 101 is -1"),
        ("KF111", '"a * x"', '"a * z"', "z", "z is not an argument of the kernel"),
        ("KF111", '"a * x"', '"np.load(x)"', "np.load", "np.load is not among the allowed"),
        ("KF111", '"a * x"', '{ x = "a * x" }', "x", "x is no output of the kernel"),
        ("KF111", '"a * x"', '"<fill in the reference>"', '"<fill in the reference>"', "fill in the reference"),
        ("KF111", '"a * x"', '"kernel:naive"', '"kernel:naive"', "needs a spec block of its own"),
        ("KF112", "cases", "tune = { WARPS = [1, 2] }\ncases", "WARPS", "WARPS is used nowhere"),
        ("KF112", "cases", "tune = { WARPS = [] }\ncases", "[]", "has no values"),
        *(
            ("KF112", '32)", block = 32 }', f'B)", block = "B" }}\ntune = {{ B = [{values}] }}', place, message)
            for values, place, message in (
                ("64, 128, 64.0", "64.0", "B has the value 64, which 64.0 is, twice; leave one out"),
                ("64, 128, 128", "128", "B has the value 128 twice"),
                ("1, true", "true", "B has the value 1, which true is, twice"),
                ("64, [128]", "[128]", "B: a tunable's value is a number, true or false"),
                ("64, { a = 1 }", "{ a = 1 }", "B: a tunable's value is a number, true or false"),
                ('64, "128"', '"128"', "B: a tunable's value is a number, true or false"),
                ("64, 2026-01-01", "2026-01-01", "B: a tunable's value is a number, true or false"),
                ("64, nan", "nan", "B: nan is no value that code can have"),
                ("64, -inf", "-inf", "B: -inf is no value that code can have"),
            )
        ),
        *(
            ("KF112", "cases", f"tune = {{ {name} = [1, 2] }}\ncases", name, message)
            for name, message in (
                ("n", "n is a size as well; give the tunable another name"),
                ("x", "x is an argument of the kernel as well; give the tunable another name"),
                ("a", "a is an argument of the kernel as well; give the tunable another name, and pass that: [args] a"),
                ("scale", "scale is a kernel as well"),
                ("int", "int is a word of CUDA C++"),
                ("threadIdx", "threadIdx is a word of CUDA C++"),
                ('"a-b"', '"a-b" is no name that C++ code can have'),
                ('""', '"" is no name that C++ code can have'),
            )
        ),
        ("KF104", "{ a = 2.0 }", "{ a = 2.0, x = { init = 3 } }", "3", "this must be a table, not 3"),
        ("KF104", "{ a = 2.0 }", "{ a = { value = [2.0] } }", "[2.0]", "this must be a string or true or false"),
        (
            "KF104",
            "{ a = 2.0 }",
            '{ a = 2.0, x = { init = { kind = "constant", value = "q" } } }',
            '"q"',
            "this must be a number or true or false, not 'q'",
        ),
        ("KF104", "block = 32 }", "block = 32, args = 3 }", "3", "this must be a list or a table, not 3"),
        ("KF104", "block = 32 }", "block = 32, args = [3] }", "3", "this must be a string, not 3"),
        ("KF104", "cases", 'tolerance = { absolute = "q" }\ncases', '"q"', "this must be a number, not 'q'"),
        ("KF113", '"cdiv(n, 32)"', '"n - 100"', '"n - 100"', "grid is zero with n = 100"),
        ("KF113", '"cdiv(n, 32)"', '"n - 101"', '"n - 101"', "is -1"),
        ("KF113", '"cdiv(n, 32)"', '"2 + 1 / (n - 100)"', "1 / (n - 100)", "division by zero"),
        ("KF113", '"cdiv(n, 32)"', "[1, 2, 3, 4]", "[1, 2, 3, 4]", "one to three extents"),
        ("KF113", "launch = ", "# launch = ", None, "how is scale launched?"),
        ("KF113", "block = 32 }", 'block = 32, args = ["x"] }', '["x"]', "has 4 parameters, 1 arguments are listed"),
        ("KF113", "block = 32 }", 'block = 32, args = { q = "x" } }', "q", "q is no parameter of scale"),
    ],
)
def test_code_place_and_advice(code: str, old: str, new: str, place: str | None, message: str) -> None:
    text = good(old, new)
    found = [p for p in read(text).problems if p.code == code and message in p.message]
    assert found, [(p.code, p.message) for p in read(text).problems]
    assert not read(text).specs
    if place is not None:
        assert at(text, found[0].range) == place
    assert 0 < found[0].range.start.line < 8  # inside the comment, never elsewhere


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("KF103", "cases", "csaes"),
        ("KF103", "grid =", "gird ="),
        ("KF104", "{ a = 2.0 }", '{ a = 2.0, x = { init = "norml" } }'),
        ("KF105", '"scale"', '"scael"'),
        ("KF106", "{ a = 2.0 }", "{ }"),
        ("KF106", "{ a = 2.0 }", '{ x = { init = "uniform" } }'),
        ("KF106", "args = { a = 2.0 }", ""),
        ("KF106", "[{ n = 100 }]", "[{ n = 100, m = 2 }]"),
        ("KF107", "{ a = 2.0 }", "{ a = 2.0, xx = { shape = [1] } }"),
        ("KF111", '"a * x"', '{ yy = "a * x" }'),
        ("KF113", "launch = ", "# launch = "),
        ("KF113", 'launch = { grid = "cdiv(n, 32)", block = 32 }', "[launch]\nblock = 32"),
    ],
)
def test_the_fix_mends(code: str, old: str, new: str) -> None:
    text = good(old, new)
    for _ in range(5):
        found = [p for p in read(text).problems if p.code == code]
        if not found:
            break
        before = {p.message for p in read(text).problems}
        assert found[0].fixes, found[0].message
        text = apply(text, found[0].fixes[0])
        after = read(text).problems
        assert found[0].message not in {p.message for p in after}, text
        assert all(p.code in ("KF106", "KF109", "KF111", "KF113", code) for p in after), (before, after, text)
    assert not [p for p in read(text).problems if p.code == code], text


def test_an_unclosed_block_and_its_fix() -> None:
    text = good().replace("// ///\n__", "\n__")
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF101", "// /// kernel-forge")
    assert "end it with a line // ///" in found.message
    spec_of(apply(text, found.fixes[0]))


def test_a_kernel_still_to_be_written_is_only_information() -> None:
    found = only(block('kernel = "later"\nreference = "x"\n') + "int x;\n")
    assert (found.code, found.severity.name) == ("KF105", "INFORMATION")


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("struct S s", "cannot be made"),
        ("float** p", "cannot be made"),
        ("const other_t* p", "say what it is"),
    ],
)
def test_a_parameter_that_cannot_be_made(parameter: str, message: str) -> None:
    text = good().replace("int n,", f"int n, {parameter},")
    (found,) = [p for p in read(text).problems if p.code == "KF108"]
    assert at(text, found.range) == '"scale"'
    assert message in found.message
    assert at(text, found.related[0].location.range).startswith(parameter.split()[0])


def test_a_type_from_a_header_can_be_said() -> None:
    text = source(
        GOOD.replace("{ a = 2.0 }", '{ a = 2.0, p = { dtype = "half", shape = ["n"] } }'),
        KERNEL.replace("int n,", "int n, const other_t* p,"),
    )
    assert {a.name: a.dtype.value for a in spec_of(text).args}["p"] == "float16"


def test_a_macro_without_a_guard_and_its_fix() -> None:
    text = source(
        GOOD.replace("block = 32", 'block = "BLOCK"') + "tune = { BLOCK = [32, 64] }\n", "#define BLOCK 64\n" + KERNEL
    )
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF112", "BLOCK")
    fixed = apply(text, found.fixes[0])
    assert "#ifndef BLOCK\n#define BLOCK 64\n#endif\n" in fixed
    assert spec_of(fixed).default_configuration == {"BLOCK": 64}


def test_the_second_block_of_a_kernel() -> None:
    text = block(GOOD) + source(GOOD)
    reading = read(text)
    (found,) = reading.problems
    assert found.code == "KF114"
    assert "already, in line 1" in found.message
    assert found.range.start.line == 9
    assert len(reading.specs) == 1


SIDECAR = 'source = "scale.cu"\n' + GOOD
TABLES = """source = "scale.cu"
[kernels.scale]
reference = "a * x"
cases = [{ n = 100 }]
launch = { grid = "cdiv(n, 32)", block = 32 }
"""


def test_sidecars() -> None:
    assert spec_of(KERNEL, SIDECAR).block_path == "/work/scale.forge.toml"
    assert spec_of(KERNEL, TABLES + "args = { a = 1 }\n").kernel == "scale"
    assert spec_of(KERNEL, "\ufeff" + SIDECAR.replace("\n", "\r\n")).kernel == "scale"


def test_a_fix_in_a_sidecar_goes_into_the_kernels_own_table() -> None:
    found = only(KERNEL, TABLES)
    assert found.code == "KF106"
    spec_of(KERNEL, apply(TABLES, found.fixes[0]))


@pytest.mark.parametrize(
    ("sidecar", "message", "place"),
    [
        (SIDECAR.replace("scale.cu", "other.cu"), "is for other.cu, but stands beside scale.cu", '"other.cu"'),
        ('source = "scale.cu"\n', "the sidecar has no spec", None),
        ('source = "scale.cu"\nkernels = 3\n', "one table per kernel", "3"),
        ('source = "scale.cu"\n[kernels]\na = 3\n', "one table per kernel", "kernels"),
    ],
)
def test_a_sidecar_that_does_not_fit(sidecar: str, message: str, place: str | None) -> None:
    found = only(KERNEL, sidecar)
    assert found.code == "KF115"
    assert message in found.message
    if place is not None:
        assert at(sidecar, found.range) == place
    if found.fixes:
        spec_of(KERNEL, apply(sidecar, found.fixes[0]))


FORMS = {
    "an array of launches": (
        '[args]\na = 2.0\n[[launch]]\nkernel = "scale"\ngrid = 1\nblock = 32\n'
        '[[launch]]\nkernel = "scale"\nblock = 32\n',
        'block = 32\n// grid = "cdiv(n, 256)"\n// ///',
    ),
    "the first of an array of launches": (
        "args.a = 2.0\n[[launch]]\nblock = 32\n\n[[launch]]\ngrid = 1\nblock = 32\n",
        '[[launch]]\n// block = 32\n// grid = "cdiv(n, 256)"\n//\n// [[launch]]\n',
    ),
    "launches in line": (
        "args.a = 2.0\nlaunch = [{ grid = 1, block = 32 }, { block = 32 }]\n",
        '{ block = 32, grid = "cdiv(n, 256)" }]\n',
    ),
    "dotted keys": (
        "launch.block = 32\nargs.a = 2.0\n",
        'launch.block = 32\n// args.a = 2.0\n// launch.grid = "cdiv(n, 256)"\n// ///',
    ),
    "a table with a comment behind its name": (
        "[launch] # one row per block\nblock = 32\n\n[args]\na = 2.0\n",
        '[launch] # one row per block\n// block = 32\n// grid = "cdiv(n, 256)"\n//\n// [args]\n',
    ),
    "a value over several lines": (
        "[args]\na = 2.0\n[launch]\nblock = [\n  32,\n  1,\n]\n[tune]\n",
        '  1,\n// ]\n// grid = "cdiv(n, 256)"\n// [tune]\n',
    ),
}
HEAD = 'kernel = "scale"\nreference = "a * x"\ncases = [{ n = 100 }]\n'


@pytest.mark.parametrize("name", FORMS)
def test_a_fix_takes_the_form_that_the_block_has(name: str) -> None:
    rest, wanted = FORMS[name]
    text = source(HEAD + rest)
    found = only(text)
    assert found.code == "KF113"
    fixed = apply(text, found.fixes[0])
    assert wanted in fixed
    spec_of(fixed)


@pytest.mark.parametrize("lead", ["", "\t", "    "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_fixes_keep_line_ends_and_indentation(lead: str, newline: str) -> None:
    toml = HEAD + '[launch]\nblock = "BLOCK"\n\n[tune]\nBLOCK = [32, 64]\n'
    text = "".join(
        lead + line + newline for line in ("#define BLOCK 64 // threads\n" + source(toml)).rstrip("\n").split("\n")
    )
    while problems := read(text).problems:
        text = apply(text, problems[0].fixes[0])
    spec_of(text)
    assert newline == "\n" or "\n" not in text.replace("\r\n", "")
    assert all(line.startswith(lead) for line in text.split(newline)[:-1])
    assert f"{lead}#ifndef BLOCK{newline}{lead}#define BLOCK 64 // threads{newline}{lead}#endif{newline}" in text


def test_the_fix_of_an_unclosed_block_keeps_line_ends_and_indentation() -> None:
    text = ("namespace a {\n" + good()).replace("\n", "\r\n\t").replace("\t// ///\r\n", "\r\n")
    fixed = apply(text, only(text).fixes[0])
    assert "}\r\n\t// ///\r\n" in fixed
    spec_of(fixed)


def test_a_misspelt_kernel_keeps_its_template_arguments() -> None:
    kernel = "template <int B> " + KERNEL
    text = source(GOOD.replace('"scale"', '"scael<32>"'), kernel)
    fixed = apply(text, only(text).fixes[0])
    assert 'kernel = "scale<32>"' in fixed
    spec_of(fixed)
    several = source(HEAD + 'args.a = 2.0\n[[launch]]\nkernel = "scael"\ngrid = 1\nblock = 32\n')
    spec_of(apply(several, read(several).problems[0].fixes[0]))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_fixes_in_a_sidecar(newline: str) -> None:
    """Every problem on the way to a whole spec: the kernel's name, an argument, the launch, the unguarded macro."""
    sidecar = (
        'source = "scale.cu"\n[kernels.scael]\nreference = "a * x"\ncases = [{ n = 100 }]\ntune = { BLOCK = [64] }\n'
    )
    sidecar = (sidecar + '[kernels.scael.launch]\nblock = "BLOCK"\n').replace("\n", newline)
    text = "#define BLOCK 64\n" + KERNEL
    for _ in range(6):
        problems = read(text, sidecar).problems
        if not problems:
            break
        fix = problems[0].fixes[0]
        if fix.path == PATH:
            text = apply(text, fix)
        else:
            sidecar = apply(sidecar, fix)
    spec_of(text, sidecar)
    assert newline == "\n" or "\n" not in sidecar.replace("\r\n", "")


def test_a_value_that_cannot_be_is_shown_where_it_is_written() -> None:
    toml = (
        HEAD
        + 'args.a = 2.0\n[[launch]]\ngrid = 1\nblock = 32\n[[launch]]\ngrid = ["1", "1 + n / (n - 100)"]\nblock = 32\n'
    )
    text = source(toml)
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF113", "n / (n - 100)")
    (related,) = found.related
    assert at(text, related.location.range) == "{ n = 100 }"
    site = (
        source(HEAD + "args.a = 2.0\n")
        + "void f(float* x, float* y, int n) { scale<<<n - 101, 32>>>(x, y, n, 2.f); }\n"
    )
    found = only(site)
    assert at(site, found.range).startswith("scale<<<n - 101, 32>>>")
    sidecar = GOOD.replace('"cdiv(n, 32)"', '"n ** 6"')
    found = only(KERNEL, 'source = "scale.cu"\n' + sidecar)
    assert (found.path, found.range.start.line, found.related[0].message) == (
        "/work/scale.forge.toml",
        5,
        "in this case",
    )


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        ("constexpr int BLOCK = 64;", "#ifndef BLOCK\n#define BLOCK 64\n#endif\n"),
        ("static const int BLOCK = 64;  // threads", "#ifndef BLOCK\n#define BLOCK 64  // threads\n#endif\n"),
        ("enum { BLOCK = 64 };", "#ifndef BLOCK\n#define BLOCK 64\n#endif\n"),
        ("constexpr int BLOCK = 64, OTHER = 2;", None),
        ("enum { BLOCK = 64, OTHER = 2 };", None),
        ("namespace a { constexpr int BLOCK = 64; }\nusing a::BLOCK;", None),
    ],
)
def test_a_constant_as_a_tunable(declared: str, made: str | None) -> None:
    toml = GOOD.replace("block = 32", 'block = "BLOCK"') + "tune = { BLOCK = [32, 64] }\n"
    text = source(toml, declared + "\n" + KERNEL)
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF112", "BLOCK")
    assert "make it a macro between #ifndef BLOCK and #endif, or a template argument" in found.message
    assert at(text, found.related[0].location.range) == "BLOCK"
    assert bool(found.fixes) is (made is not None)
    if made is not None:
        fixed = apply(text, found.fixes[0])
        assert made in fixed
        assert spec_of(fixed).default_configuration == {"BLOCK": 64}


def test_a_constant_inside_the_kernel_as_a_tunable() -> None:
    kernel = KERNEL.replace("{ }", "{\n  constexpr int BLOCK = 64;\n}")
    text = source(GOOD + "tune = { BLOCK = [32, 64] }\n", kernel)
    found = only(text)
    assert (found.code, at(text, found.related[0].location.range)) == ("KF112", "constexpr int BLOCK = 64;")
    assert "  #ifndef BLOCK\n  #define BLOCK 64\n  #endif\n" in apply(text, found.fixes[0])


def test_a_reference_that_reads_an_output_without_contents() -> None:
    """Its role says that it holds nothing; evaluating the reference used to end in an internal error."""
    text = source(
        GOOD.replace('"a * x"', '{ y = "a * x + y" }').replace("a = 2.0 }", 'a = 2.0, y = { role = "out" } }')
    )
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF111", '"a * x + y"')
    assert 'give it role = "inout"' in found.message
    assert {a.name: getattr(a, "role", None) for a in spec_of(apply(text, found.fixes[0])).args}["y"].name == "INOUT"


def test_an_argument_named_like_a_word_of_python() -> None:
    kernel = KERNEL.replace("const float* x", "const float* in")
    found = only(source(GOOD.replace("a * x", "a * in"), kernel))
    assert "in is a word of Python's own; write in_ for the argument" in found.message
    assert spec_of(source(GOOD.replace("a * x", "a * in_"), kernel)).args[0].name == "in"


def test_a_tunable_can_be_passed_as_an_argument() -> None:
    """As the message about a tunable that is called like a parameter says."""
    toml = GOOD.replace("{ a = 2.0 }", '{ a = "ITEMS" }') + "tune = { ITEMS = [1, 2] }\n"
    spec = spec_of(source(toml))
    assert (spec.tunables[0].name, spec.args[3].name) == ("ITEMS", "a")

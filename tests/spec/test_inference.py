"""What the block need not say because the signature and the launch sites of the file say it."""

import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.spec import (
    BufferArg,
    ConstantInit,
    ExpressionReference,
    FunctionInit,
    FunctionReference,
    IntegersInit,
    KernelReference,
    KernelSpec,
    NamedInit,
    Role,
    ScalarArg,
)
from kernel_forge.spec import bind
from kernel_forge.spec.binding import BoundCase
from tests.spec.reading import GOOD, KERNEL, block, only, read, source, spec_of


def buffer(spec: KernelSpec, name: str) -> BufferArg:
    (found,) = [a for a in spec.args if a.name == name]
    assert isinstance(found, BufferArg)
    return found


def scalar(spec: KernelSpec, name: str) -> ScalarArg:
    (found,) = [a for a in spec.args if a.name == name]
    assert isinstance(found, ScalarArg)
    return found


def bound(spec: KernelSpec, **sizes: int) -> BoundCase:
    found = bind(spec, sizes or spec.cases[0], spec.default_configuration)
    assert isinstance(found, BoundCase), found
    return found


def test_roles_shapes_and_scalars() -> None:
    spec = spec_of(source(GOOD))
    assert buffer(spec, "x").role is Role.IN  # const
    assert buffer(spec, "y").role is Role.OUT  # the one that is not
    assert [e.text for e in buffer(spec, "x").shape] == ["n"]  # the one size there is
    assert (scalar(spec, "n").dtype, scalar(spec, "n").value.text) == (DType.INT32, "n")
    assert scalar(spec, "a").value.text == "2.0"
    assert spec.launches[0].args == ("x", "y", "n", "a")


def test_an_output_that_its_reference_reads_is_inout() -> None:
    assert buffer(spec_of(source(GOOD.replace('"a * x"', '"a * x + y"'))), "y").role is Role.INOUT


def test_a_pointer_that_is_not_const_nor_an_output_is_an_input_of_a_single_launch() -> None:
    text = source(GOOD.replace('"a * x"', '{ y = "a * x" }'), KERNEL.replace("const ", ""))
    assert buffer(spec_of(text), "x").role is Role.IN


def test_several_outputs_and_function_references() -> None:
    text = source(
        GOOD.replace('"a * x"', '{ y = "a * x", z = "ref.py:f" }'), KERNEL.replace("float* y", "float* y, double* z")
    )
    spec = spec_of(text)
    assert [o.name for o in spec.outputs] == ["y", "z"]
    assert isinstance(spec.references["y"], ExpressionReference)
    reference = spec.references["z"]
    assert isinstance(reference, FunctionReference)
    assert (reference.path, reference.function) == ("ref.py", "f")


def test_one_reference_for_two_possible_outputs_asks_which() -> None:
    found = only(source(GOOD, KERNEL.replace("float* y", "float* y, float* z")))
    assert found.code == "KF111"
    assert "(y, z could be)" in found.message


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ('"uniform"', NamedInit("uniform")),
        ('"sub/fill.py:make"', FunctionInit("sub/fill.py", "make")),
        ('{ kind = "constant", value = 3 }', ConstantInit(3)),
    ],
)
def test_inits(init: str, expected: object) -> None:
    spec = spec_of(source(GOOD.replace("{ a = 2.0 }", f"{{ a = 2.0, x = {{ init = {init} }} }}")))
    assert buffer(spec, "x").init == expected


def test_integers_may_depend_on_sizes() -> None:
    init = '{ a = 2.0, x = { init = { kind = "integers", high = "n" } } }'
    found = buffer(spec_of(source(GOOD.replace("{ a = 2.0 }", init))), "x").init
    assert isinstance(found, IntegersInit)
    assert (found.low.text, found.high.text) == ("0", "n")


def test_lanes_of_vector_types_count_scalars() -> None:
    spec = spec_of(source(GOOD, KERNEL.replace("float*", "float4*")))
    assert buffer(spec, "x").lanes == 4
    assert bound(spec).shapes["x"] == (100,)
    found = bind(spec, {"n": 6}, {})
    assert not isinstance(found, BoundCase)
    assert "6 elements, not a multiple of its vector type's 4" in found.message


NO_LAUNCH = GOOD.replace('launch = { grid = "cdiv(n, 32)", block = 32 }\n', "")


@pytest.mark.parametrize(
    ("host", "grid", "threads"),
    [
        ("scale<<<(n + 63) / 64, 64>>>(x, y, n, 2.f);", 2, 64),
        ("int t = 128; scale<<<(n + t - 1) / t, t>>>(x, y, n, 2.f);", 1, 128),
        ("dim3 g((n + 31) / 32), b(32); scale<<<g, b>>>(x, y, n, 2.f);", 4, 32),
        ("dim3 g = dim3((n + 31) / 32, 1, 1); scale<<<g, 32>>>(x, y, n, 2.f);", 4, 32),
        ("scale<<<ceil_div(count, 50), 50>>>(dx, dy, count, 2.f);", 2, 50),  # the host calls n count
        ("const auto b = 1u << 5; scale<<<n / b + 1, b>>>(x, y, n, 2.f);", 4, 32),
    ],
)
def test_launch_from_the_files_own_launch(host: str, grid: int, threads: int) -> None:
    text = source(NO_LAUNCH, KERNEL + f"void run(float* x, float* y, int n) {{ {host} }}\n")
    (launch,) = bound(spec_of(text), n=100).launches
    assert (launch.grid, launch.block) == ((grid, 1, 1), (threads, 1, 1))


def test_a_launch_over_unknown_names_is_asked_for() -> None:
    text = source(NO_LAUNCH, KERNEL + "void run(int g) { scale<<<g, 32>>>(x, y, n, 2.f); }\n")
    assert only(text).code == "KF113"


TWO = """\
kernel = "partial"
reference = { total = "np.sum(x)" }
cases = [{ n = 1000 }]
[args]
part = { shape = ["cdiv(n, 64)"] }
total = { shape = [1] }
[[launch]]
grid = "cdiv(n, 64)"
block = 64
[[launch]]
kernel = "finish"
args = { in = "part", out = "total", count = "parts" }
grid = 1
block = 1
"""
TWO_KERNELS = """\
__global__ void partial(const float* x, float* part, int n) { }
__global__ void finish(const float* in, float* out, int count) { }
"""


def test_launches_in_a_row_with_scratch_between() -> None:
    spec = spec_of(source(TWO.replace("[args]", '[args]\nparts = "cdiv(n, 64)"'), TWO_KERNELS))
    assert spec.kernel == "partial"
    assert buffer(spec, "part").role is Role.SCRATCH
    assert buffer(spec, "total").role is Role.OUT
    assert [launch.args for launch in spec.launches] == [("x", "part", "n"), ("part", "total", "parts")]
    assert bound(spec).scalars == {"n": 1000, "parts": 16}
    assert bound(spec).kernels == ("partial", "finish")


def test_a_misspelt_kernel_of_a_second_launch() -> None:
    found = only(source(TWO.replace('"finish"', '"finsh"').replace('total = "np', 'part = "np'), TWO_KERNELS))
    assert found.code in ("KF105", "KF107")


TEMPLATE = """\
template <typename T, int BLOCK = 64>
__global__ void scale(const T* x, T* y, int n, float a) { }
"""


@pytest.mark.parametrize(
    ("kernel", "dtype", "instance"),
    [
        ("scale<double>", DType.FLOAT64, "scale<double, 64>"),
        ("scale<half, 32>", DType.FLOAT16, "scale<half, 32>"),
        ("scale<int, BLOCK>", DType.INT32, "scale<int, 128>"),
    ],
)
def test_templates(kernel: str, dtype: DType, instance: str) -> None:
    spec = spec_of(source(GOOD.replace('"scale"', f'"{kernel}"') + "tune = { BLOCK = [128, 256] }\n", "\n" + TEMPLATE))
    assert buffer(spec, "x").dtype is dtype
    assert bound(spec).kernels == (instance,)


def test_a_template_without_arguments() -> None:
    found = only(source(GOOD, "template <typename T>\n__global__ void scale(const T* x, T* y, int n, float a) { }\n"))
    assert found.code == "KF105"
    assert 'kernel = "scale<T>"' in found.message


def test_symbols() -> None:
    text = source(
        GOOD.replace("{ a = 2.0 }", "{ a = 2.0, weights = {} }").replace('"a * x"', '"a * x * weights[0]"'),
        "#define TAPS 5\n__constant__ float weights[TAPS];\n" + KERNEL,
    )
    found = buffer(spec_of(text), "weights")
    assert found.is_symbol
    assert found.role is Role.IN
    assert bound(spec_of(text)).shapes["weights"] == (5,)


def test_macro_tunables_take_their_default_from_the_code() -> None:
    guard = "#ifndef BLOCK\n#define BLOCK 64\n#endif\n"
    spec = spec_of(
        source(GOOD.replace("block = 32", 'block = "BLOCK"') + "tune = { BLOCK = [32, 64] }", guard + KERNEL)
    )
    assert spec.default_configuration == {"BLOCK": 64}
    assert bound(spec).defines == {"BLOCK": "64"}
    assert bound(spec).launches[0].block == (64, 1, 1)


def test_another_kernel_as_reference() -> None:
    naive = KERNEL.replace("scale", "naive")
    text = block(GOOD.replace('"scale"', '"naive"')) + naive + block(GOOD.replace('"a * x"', '"kernel:naive"')) + KERNEL
    reading = read(text)
    assert not reading.problems
    spec = reading.spec_of("scale")
    assert spec is not None
    reference = spec.references["y"]
    assert isinstance(reference, KernelReference)
    assert reference.launches[0].kernel == "naive"


def test_a_kernel_cannot_be_its_own_reference() -> None:
    assert only(source(GOOD.replace('"a * x"', '"kernel:scale"'))).code == "KF111"


def test_one_bad_block_leaves_the_others() -> None:
    text = block("kernel = ") + source(GOOD)
    reading = read(text)
    assert [p.code for p in reading.problems] == ["KF102"]
    assert [s.kernel for s in reading.specs] == ["scale"]

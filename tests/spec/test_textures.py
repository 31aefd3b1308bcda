"""Textures in spec blocks: what is taken from them, and what CUDA does not have, refused at its place."""

import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.spec import BufferArg, Role
from kernel_forge.domain.text import Position
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Sampling, Texture
from kernel_forge.source import parse
from kernel_forge.spec import bind, describe, draft_block
from kernel_forge.spec.textures import texture_at
from tests.spec.reading import PATH, apply, at, only, source, spec_of

TOML = """\
kernel = "look"
reference = {{ y = "y0" }}
cases = [{{ h = 5, w = 7, n = 100 }}]
where = []

[args]
{entry}
y = {{ shape = ["n"], role = "out" }}

[launch]
grid = "cdiv(n, 64)"
block = 64
"""


def text_of(entry: str, handle: str = "cudaTextureObject_t", before: str = "") -> str:
    toml = TOML.format(entry=entry).replace('"y0"', '"np.zeros(n)"')
    return before + source(toml, f"__global__ void look({handle} tex, float* y, int n) {{ }}\n")


def texture(entry: str, handle: str = "cudaTextureObject_t", before: str = "") -> BufferArg:
    arg = next(a for a in spec_of(text_of(entry, handle, before)).args if a.name == "tex")
    assert isinstance(arg, BufferArg)
    return arg


def test_the_shortest_entry_reads_as_cuda_does_by_default() -> None:
    arg = texture('tex = { shape = ["h", "w"], dtype = "float" }')
    assert (arg.dtype, arg.lanes, arg.role, arg.texture) == (DType.FLOAT32, 1, Role.IN, Sampling())
    assert [e.text for e in arg.shape] == ["h", "w"]


def test_every_word() -> None:
    arg = texture(
        'tex = { shape = ["n"], dtype = "uchar", role = "in", init = "uniform", texture = { filter = "linear", '
        'address = "mirror", normalized = true, read = "normalized" } }'
    )
    assert arg.texture == Sampling(Filter.LINEAR, Address.MIRROR, True, Read.NORMALIZED)
    linear = texture('tex = { shape = ["n"], dtype = "int", texture = { memory = "linear" } }')
    assert linear.texture == Sampling(memory=Memory.LINEAR)


def test_lanes_are_a_further_dimension() -> None:
    text = text_of('tex = { shape = ["h", "w"], dtype = "float4" }')
    spec = spec_of(text)
    bound = bind(spec, {"h": 5, "w": 7, "n": 100}, {})
    assert not isinstance(bound, Finding)
    arg = next(a for a in spec.args if isinstance(a, BufferArg) and a.name == "tex")
    assert bound.shapes["tex"] == (5, 7, 4)
    assert texture_at(arg, bound.shapes["tex"]) == Texture((5, 7), 4)


@pytest.mark.parametrize(
    ("handle", "before"),
    [
        ("cudaTextureObject_t", ""),
        ("const cudaTextureObject_t", ""),
        ("CUtexObject", ""),
        ("Image", "typedef cudaTextureObject_t Image;\n"),
        ("unsigned long long", ""),
        ("uint64_t", ""),
    ],
)
def test_what_can_carry_a_texture_object(handle: str, before: str) -> None:
    entry = 'tex = { shape = ["h", "w"], dtype = "float", texture = {} }'
    assert texture(entry, handle, before).texture == Sampling()


@pytest.mark.parametrize("handle", ["float", "const float*", "int", "unsigned long long*"])
def test_what_cannot(handle: str) -> None:
    text = text_of('tex = { shape = ["n"], dtype = "float", texture = {} }', handle)
    problem = only(text)
    assert (problem.code, at(text, problem.range)) == ("KF104", "texture")
    assert "no texture object" in problem.message


@pytest.mark.parametrize(
    ("entry", "code", "place", "message"),
    [
        ('tex = { shape = ["n"], dtype = "half" }', "KF104", '"half"', "texels are float or integers"),
        ('tex = { shape = ["n"], dtype = "double" }', "KF104", '"double"', "texels are float or integers"),
        ('tex = { shape = ["n"], dtype = "float3" }', "KF104", '"float3"', "vectors of 2 or 4"),
        ('tex = { shape = ["n"], dtype = "pixel" }', "KF104", '"pixel"', "texels are float or integers"),
        ('tex = { shape = ["h", "w", "h", "w"], dtype = "int" }', "KF104", '["h", "w", "h", "w"]', "1, 2 or 3"),
        ('tex = { shape = ["n"], dtype = "int", role = "out" }', "KF104", '"out"', "read only"),
        ('tex = { shape = ["n"], dtype = "int", value = 3 }', "KF104", "3", "not a value"),
        (
            'tex = { shape = ["n"], dtype = "uchar", texture = { filter = "linear" } }',
            "KF104",
            '"linear"',
            "only floats are filtered",
        ),
        (
            'tex = { shape = ["n"], dtype = "float", texture = { address = "wrap" } }',
            "KF104",
            '"wrap"',
            "normalized coordinates only",
        ),
        (
            'tex = { shape = ["n"], dtype = "int", texture = { read = "normalized" } }',
            "KF104",
            '"normalized"',
            "only integers of 8 and 16 bits",
        ),
        (
            'tex = { shape = ["h", "w"], dtype = "int", texture = { memory = "linear" } }',
            "KF104",
            '["h", "w"]',
            "one dimension, not 2",
        ),
        (
            'tex = { shape = ["n"], dtype = "float", texture = { memory = "linear", filter = "linear" } }',
            "KF104",
            '"linear"',
            "not filtered",
        ),
        (
            'tex = { shape = ["n"], dtype = "int", texture = { memory = "linear", address = "border" } }',
            "KF104",
            '"border"',
            "no address mode",
        ),
        (
            'tex = { shape = ["n"], dtype = "int", texture = { memory = "linear", normalized = true } }',
            "KF104",
            "true",
            "no normalized coordinates",
        ),
        (
            'tex = { shape = ["n"], dtype = "int", texture = { filter = "cubic" } }',
            "KF104",
            '"cubic"',
            "'point' or 'linear'",
        ),
        (
            'tex = { shape = ["n"], dtype = "int", texture = { adress = "clamp" } }',
            "KF103",
            "adress",
            "did you mean address?",
        ),
        ('tex = { shape = ["n"] }', "KF106", "tex", "say what its texels are"),
        ('tex = { dtype = "float" }', "KF106", "tex", "say what its texels are"),
        ('tex = { shape = ["n - 100"], dtype = "float" }', "KF110", '["n - 100"]', "would have no texels"),
        ('tex = { shape = ["1000 * n", "w"], dtype = "float" }', "KF110", '["1000 * n", "w"]', "up to 65536 x 131072"),
        ('tex = { shape = ["2 ** 18"], dtype = "float" }', "KF110", '["2 ** 18"]', "up to 131072"),
    ],
)  # fmt: skip
def test_what_is_refused_at_its_place(entry: str, code: str, place: str, message: str) -> None:
    text = text_of(entry)
    problem = only(text)
    assert (problem.code, at(text, problem.range)) == (code, place), problem
    assert message in problem.message


def test_a_missing_entry_is_put_in_by_its_fix() -> None:
    text = text_of("# nothing of tex")
    problem = only(text)
    assert problem.code == "KF106" and "tex is a texture" in problem.message
    assert 'tex = { shape = ["h", "w"], dtype = "float" }' in apply(text, problem.fixes[0])
    assert spec_of(apply(text, problem.fixes[0])).kernel == "look"


@pytest.mark.parametrize("order", ["first, second", "second, first"])
def test_a_texture_cannot_be_a_buffer_of_another_launch(order: str) -> None:
    toml = """\
kernel = "first"
reference = { y = "x" }
cases = [{ n = 100 }]

[args]
x = { shape = ["n"], dtype = "float" }
y = { shape = ["n"], role = "out" }

""" + "".join(f'[[launch]]\nkernel = "{k}"\ngrid = 1\nblock = 64\n\n' for k in order.split(", "))
    text = source(
        toml,
        "__global__ void first(float* x, float* y, int n) { }\n"
        "__global__ void second(cudaTextureObject_t x, float* y, int n) { }\n",
    )
    problem = only(text)
    assert (problem.code, at(text, problem.range)) == ("KF107", "x")
    assert "a texture in one launch and a buffer in another" in problem.message


def test_linear_memory_is_larger_than_an_array() -> None:
    assert texture('tex = { shape = ["2 ** 18"], dtype = "float", texture = { memory = "linear" } }').texture


@pytest.mark.parametrize(
    ("fetch", "entry"),
    [
        ("tex2D<float4>(image, x, y).x", 'image = { shape = ["<fill in the shape>"], dtype = "float4" }'),
        (
            "tex1Dfetch<unsigned char>(image, x)",
            'image = { shape = ["<fill in the shape>"], dtype = "unsigned char", texture = { memory = "linear" } }',
        ),
        ("look(image)", 'image = { shape = ["<fill in the shape>"], dtype = "<fill in the type>" }'),
    ],
)
def test_a_draft_takes_the_type_from_the_fetch(fetch: str, entry: str) -> None:
    kernel = (
        "__global__ void k(cudaTextureObject_t image, float* y, int n) {\n"
        f"  int x = threadIdx.x; if (x < n) y[x] = {fetch};\n}}\n"
    )
    draft = draft_block(parse(kernel, PATH), "k")
    assert draft.has_gaps and f"// {entry}\n" in draft.edit.new_text
    assert 'reference = { y = "<fill in the reference>" }' in draft.edit.new_text


def test_the_words_of_a_texture_have_a_hover() -> None:
    toml = '[args]\ntex = { shape = ["n"], texture = { address = "wrap" } }\n'
    said = describe(toml, Position(1, toml.split("\n")[1].index("address") + 2))
    assert said is not None and "normalized coordinates" in said

"""Texture fetches that only the emulator has to answer: weights to the bit, and what no device defines.

The formulas are those of the CUDA C++ Programming Guide, appendix on texture fetching; the contract's part is in
``tests/contracts/texture_suite.py``.
"""

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest
from kernel_forge.domain.outcome import Ran, RunOutcome, Unavailable
from kernel_forge.domain.texture import Address, Filter, Memory, Sampling, Texture
from kernel_forge.ports import Artifact
from tests.contracts.texture_suite import fetch
from tests.devices.emulator.shim import device


def test_weights_have_eight_bits() -> None:
    # Between the texels 0 and 1 a fetch gives the weight itself: x - 1/2, rounded to a multiple of 1/256.
    steps = np.array([0, 1, 100, 100.25, 100.75, 255, 255.75])
    at = ((0.5 + steps / 256).astype(np.float32),)
    texture = Texture((2,), 1, Sampling(Filter.LINEAR))
    got = fetch(device(), np.array([0, 1], np.float32), texture, DType.FLOAT32, at)[:, 0]
    assert (got * 256).tolist() == [0, 1, 100, 100, 101, 255, 256]


def test_weights_of_two_dimensions_multiply() -> None:
    texels = np.array([[0, 0], [0, 1]], np.float32)
    at = (np.array([0.75], np.float32), np.array([1.0], np.float32))  # weights 1/4 and 1/2
    got = fetch(device(), texels, Texture((2, 2), 1, Sampling(Filter.LINEAR)), DType.FLOAT32, at)
    assert got[0, 0] == 0.125


def test_huge_coordinates() -> None:
    texels = np.array([1, 2, 3], np.float32)
    at = (np.array([1e30, -1e30, np.inf, -np.inf], np.float32),)
    got = fetch(device(), texels, Texture((3,), 1, Sampling(Filter.LINEAR)), DType.FLOAT32, at)
    assert got[:, 0].tolist() == [3, 1, 3, 1]
    wrapped = Texture((3,), 1, Sampling(Filter.POINT, Address.WRAP, normalized=True))
    assert set(fetch(device(), texels, wrapped, DType.FLOAT32, (at[0][:2],))[:, 0]) <= {1.0, 2.0, 3.0}


def outcome(line: str) -> RunOutcome:
    text = f"__global__ void k(cudaTextureObject_t plane, cudaTextureObject_t row, float* y) {{\n  {line}\n}}\n"
    made = device().compile(CompileRequest("/tests/texture.cu", text, ("k",)))
    assert isinstance(made, Artifact), made
    texels = np.zeros(16, np.float32)
    buffers = (
        Buffer("plane", DType.FLOAT32, 64, texels, writable=False, texture=Texture((4, 4))),
        Buffer(
            "row", DType.FLOAT32, 64, texels, writable=False, texture=Texture((16,), 1, Sampling(memory=Memory.LINEAR))
        ),
        Buffer("y", DType.FLOAT32, 64),
    )
    args = tuple(BufferRef(b.name) for b in buffers)
    return device().run(made, RunRequest(buffers, (Launch("k", args, (1, 1, 1), (1, 1, 1)),)))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("y[0] = tex2D<int>(plane, 0, 0);", "tex2D of int from a texture that gives float"),
        ("y[0] = tex2D<float4>(plane, 0, 0).w;", "tex2D of 4 lanes from a texture of 1"),
        ("y[0] = tex1D<float>(plane, 0);", "tex1D of a texture of 2 dimensions"),
        ("y[0] = tex1D<float>(row, 0);", "tex1D of a texture in linear memory"),
        ("y[0] = tex1Dfetch<float>(plane, 0);", "tex1Dfetch of a texture in a CUDA array"),
        ("y[0] = tex2D<float>(plane + 7, 0, 0);", "no argument of the launch"),
        ("y[0] = tex2D<float>(plane, nanf(\"\"), 0);", "not a finite number"),
        ("y[0] = tex2DLod<float>(plane, 0, 0, 0);", "tex2DLod"),
        ("y[0] = tex2DGrad<float>(plane, 0, 0, float2{0, 0}, float2{0, 0});", "tex2DGrad"),
        ("y[0] = tex2DLayered<float>(plane, 0, 0, 0);", "tex2DLayered"),
        ("y[0] = tex2Dgather<float4>(plane, 0, 0).x;", "tex2Dgather"),
        ("y[0] = texCubemap<float>(plane, 0, 0, 0);", "texCubemap"),
        ("bool there; y[0] = tex2D<float>(plane, 0, 0, &there);", "sparse"),
        ("surf2Dread<float>(plane, 0, 0);", "surf2Dread"),
    ],
)  # fmt: skip
def test_what_cuda_or_the_emulator_leaves_open(line: str, reason: str) -> None:
    ended = outcome(line)
    assert isinstance(ended, Unavailable), ended
    assert reason in ended.reason
    assert ended.location is not None and ended.location.range.start.line == 1


def test_types_of_host_code_that_makes_textures() -> None:
    text = (
        "#include <cuda_runtime.h>\n#include <texture_types.h>\n#include <texture_indirect_functions.h>\n"
        "static cudaArray_t array;\n"
        "struct Image { cudaArray* texels; cudaTextureObject_t object; cudaTextureDesc reading; cudaExtent size; };\n"
        "__device__ float look(CUtexObject t, int x) { return tex1D<float>(t, x + 0.5f); }\n"
        "__global__ void k(cudaTextureObject_t t, float* y) {\n"
        "  tex1D(y + 8, t, 0.5f); y[threadIdx.x] = look(t, threadIdx.x); }\n"
    )
    made = device().compile(CompileRequest("/tests/image.cu", text, ("k",)))
    assert isinstance(made, Artifact), made
    assert not [m for m in made.messages if "left out" in m.message]
    texels = np.arange(8, dtype=np.float32)
    buffers = (
        Buffer("t", DType.FLOAT32, 32, texels, writable=False, texture=Texture((8,))),
        Buffer("y", DType.FLOAT32, 36),
    )
    launch = Launch("k", (BufferRef("t"), BufferRef("y")), (1, 1, 1), (8, 1, 1))
    ended = device().run(made, RunRequest(buffers, (launch,)))
    assert isinstance(ended, Ran), ended
    assert ended.contents["y"].tolist() == [*range(8), 0]

"""Textures, for every device: what fetches give, by the formulas of the CUDA C++ Programming Guide (texture fetching).

With linear filtering the weights have eight bits of fraction, so a device may be off by 2^-8 of the spread of the
texels it blends, once per dimension. Coordinates keep away from where two texels meet: there float32 decides.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, RunRequest, Scalar
from kernel_forge.domain.outcome import Ran
from kernel_forge.domain.texture import Address, Filter, Memory, Read, Sampling, Texture
from kernel_forge.ports import Device
from tests.contracts.device_suite import compiled, launch, ref

Array = np.ndarray[Any, np.dtype[Any]]
WEIGHT_ERROR = 2.0**-8
EXTENTS = {1: (7,), 2: (5, 7), 3: (3, 5, 7)}
_C_NAMES = {
    DType.FLOAT32: "float", DType.INT8: "char", DType.UINT8: "uchar", DType.INT16: "short", DType.UINT16: "ushort",
    DType.INT32: "int", DType.UINT32: "uint",
}  # fmt: skip


def texel_at(texels: Array, index: tuple[Array, ...], address: Address) -> Array:
    """The texels at ``index`` (per dimension, in the order of the array's axes); those outside by the address mode."""
    inside = np.ones(index[0].shape, bool)
    resolved = []
    for i, n in zip(index, texels.shape, strict=True):
        match address:
            case Address.CLAMP:
                resolved.append(np.clip(i, 0, n - 1))
            case Address.BORDER:
                inside &= (i >= 0) & (i < n)
                resolved.append(np.clip(i, 0, n - 1))
            case Address.WRAP:
                resolved.append(i % n)
            case Address.MIRROR:
                resolved.append(np.where(i % (2 * n) < n, i % (2 * n), 2 * n - 1 - i % (2 * n)))
    return np.where(inside, texels[tuple(resolved)], 0)


def fetched(
    texels: Array,
    at: tuple[Array, ...],
    sampling: Sampling,
    rounded: Callable[[Array], Array] = lambda weights: weights,
) -> Array:
    """What fetches at ``at`` give, the coordinates in the order of the array's axes (z, y, x); ``rounded`` tells what a
    device keeps of the weights."""
    places = [c * n if sampling.normalized else c for c, n in zip(at, texels.shape, strict=True)]
    if sampling.filter is Filter.POINT:
        return texel_at(texels, tuple(np.floor(p).astype(int) for p in places), sampling.address)
    low = [np.floor(p - 0.5).astype(int) for p in places]
    weights = [rounded(p - 0.5 - i) for p, i in zip(places, low, strict=True)]
    total = np.zeros(at[0].shape)
    for corner in itertools.product((0, 1), repeat=texels.ndim):
        weight = np.prod([w if c else 1 - w for w, c in zip(weights, corner, strict=True)], axis=0)
        total += weight * texel_at(texels, tuple(i + c for i, c in zip(low, corner, strict=True)), sampling.address)
    return total


def coordinates(extents: tuple[int, ...], normalized: bool) -> tuple[Array, ...]:
    """Float32 coordinates inside and, on either side, outside; none within 1/16 of a place where texels meet."""
    rng = np.random.default_rng(5)
    found = []
    for n in extents:
        texel = rng.integers(-n - 2, 2 * n + 2, 96)
        part = rng.choice(np.array([1 / 16, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 15 / 16]), 96)
        place = texel + part
        found.append((place / n if normalized else place).astype(np.float32))
    return tuple(found)


def fetch(
    device: Device,
    texels: Array,
    texture: Texture,
    dtype: DType,
    at: tuple[Array, ...],
    *,
    result: DType | None = None,
) -> Array:
    """What the device gives for each coordinate (z, y, x): an array of (fetches, lanes)."""
    kind, n = result or dtype, at[0].size
    vector = f"{_C_NAMES[kind]}{texture.lanes}" if texture.lanes > 1 else f"{_C_NAMES[kind]}1"
    if texture.sampling.memory is Memory.LINEAR:
        call, number = "tex1Dfetch", DType.INT32
    else:
        call, number = f"tex{len(at)}D", DType.FLOAT32
    names = ("z", "y", "x")[3 - len(at) :]
    given = ", ".join(f"{name}[i]" for name in reversed(names))
    c_number = "int" if number is DType.INT32 else "float"
    text = (
        f"__global__ void k(cudaTextureObject_t t, {''.join(f'const {c_number}* {name}, ' for name in names)}"
        f"{vector}* out, int n) {{\n  int i = blockIdx.x * 32 + threadIdx.x;\n"
        f"  if (i < n) out[i] = {call}<{vector}>(t, {given});\n}}\n"
    )
    out = Buffer("out", kind, n * texture.lanes * kind.itemsize)
    buffers = (
        Buffer("t", dtype, texels.nbytes, texels.reshape(-1), writable=False, texture=texture),
        *(Buffer(m, number, 4 * n, c.astype(number.numpy), writable=False) for m, c in zip(names, at, strict=True)),
        out,
    )
    args = (ref("t"), *(ref(m) for m in names), ref("out"), Scalar(DType.INT32, n))
    outcome = device.run(compiled(device, text), RunRequest(buffers, (launch("k", *args, grid=(n + 31) // 32),)))
    assert isinstance(outcome, Ran), outcome
    return outcome.contents["out"].reshape(n, texture.lanes)


class TextureSuite:
    """Every device passes this."""

    @pytest.mark.parametrize("dimensions", [1, 2, 3])
    @pytest.mark.parametrize("kind", list(Filter))
    @pytest.mark.parametrize(
        ("address", "normalized"),
        [
            (Address.CLAMP, False),
            (Address.BORDER, False),
            (Address.CLAMP, True),
            (Address.BORDER, True),
            (Address.WRAP, True),
            (Address.MIRROR, True),
        ],
    )
    def test_fetches(self, device: Device, dimensions: int, kind: Filter, address: Address, normalized: bool) -> None:
        extents = EXTENTS[dimensions]
        texels = np.random.default_rng(3).uniform(-1, 1, extents).astype(np.float32)
        sampling = Sampling(kind, address, normalized)
        at = coordinates(extents, normalized)
        got = fetch(device, texels, Texture(extents, 1, sampling), DType.FLOAT32, at)[:, 0]
        expected = fetched(texels.astype(np.float64), tuple(c.astype(np.float64) for c in at), sampling)
        if kind is Filter.POINT:
            assert np.array_equal(got, expected.astype(np.float32))
        else:
            # Texels and border lie within [-1, 1]: a spread of 2 at most.
            assert np.abs(got - expected).max() <= WEIGHT_ERROR * dimensions * 2

    def test_linear_filtering_in_the_middle_of_texels_gives_them(self, device: Device) -> None:
        texels = np.arange(35, dtype=np.float32).reshape(5, 7)
        y, x = (c.reshape(-1) + 0.5 for c in np.meshgrid(np.arange(5), np.arange(7), indexing="ij"))
        got = fetch(device, texels, Texture((5, 7), 1, Sampling(Filter.LINEAR)), DType.FLOAT32, (y, x))
        assert np.array_equal(got[:, 0], texels.reshape(-1))

    def test_linear_filtering_half_way(self, device: Device) -> None:
        # 1/2 is a weight of eight bits: (2 + 6) / 2, and by clamping 2 left of the first texel.
        texels = np.array([2, 6], np.float32)
        at = (np.array([1.0, 0.25, 1.75, -3.0], np.float32),)
        got = fetch(device, texels, Texture((2,), 1, Sampling(Filter.LINEAR)), DType.FLOAT32, at)
        assert got[:, 0].tolist() == [4.0, 2.0, 6.0, 2.0]

    @pytest.mark.parametrize("lanes", [1, 2, 4])
    @pytest.mark.parametrize("dtype", list(_C_NAMES))
    def test_element_types_and_lanes(self, device: Device, dtype: DType, lanes: int) -> None:
        rng = np.random.default_rng(1)
        texels = rng.integers(0, 256, (3, 4, lanes * dtype.itemsize)).astype(np.uint8).view(dtype.numpy)
        if dtype is DType.FLOAT32:
            texels = rng.standard_normal((3, 4, lanes)).astype(np.float32)
        y, x = (c.reshape(-1) + 0.5 for c in np.meshgrid(np.arange(3), np.arange(4), indexing="ij"))
        got = fetch(device, texels, Texture((3, 4), lanes), dtype, (y, x))
        assert np.array_equal(got, texels.reshape(12, lanes))

    @pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16, DType.UINT16])
    @pytest.mark.parametrize("kind", list(Filter))
    def test_integers_as_normalized_floats(self, device: Device, dtype: DType, kind: Filter) -> None:
        limits = np.iinfo(dtype.value)
        texels = np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype.numpy)
        sampling = Sampling(kind, read=Read.NORMALIZED)
        at = (np.arange(5) + 0.5,)
        got = fetch(device, texels, Texture((5,), 1, sampling), dtype, at, result=DType.FLOAT32)[:, 0]
        # The largest integer is 1; -1 is met by the smallest two.
        expected = np.maximum(texels / limits.max, -1.0)
        # Signed bytes that are blended have 16 bits on an H200; all others came back to the last bit or so.
        coarse = dtype is DType.INT8 and kind is Filter.LINEAR
        assert np.abs(got - expected).max() <= (2.0**-15 if coarse else 2.0**-22)

    @pytest.mark.parametrize("lanes", [1, 4])
    def test_tex1Dfetch_is_zero_outside(self, device: Device, lanes: int) -> None:
        texels = np.random.default_rng(2).standard_normal((100, lanes)).astype(np.float32)
        index = np.array([0, 1, 99, 100, 101, 1000, -1, -100, 2**31 - 1, -(2**31)])
        texture = Texture((100,), lanes, Sampling(memory=Memory.LINEAR))
        got = fetch(device, texels, texture, DType.FLOAT32, (index,))
        inside = (index >= 0) & (index < 100)
        assert np.array_equal(got, np.where(inside[:, None], texels[np.where(inside, index, 0)], 0))

    def test_tex1Dfetch_of_normalized_bytes(self, device: Device) -> None:
        texels = np.array([0, 51, 255], np.uint8)
        texture = Texture((3,), 1, Sampling(read=Read.NORMALIZED, memory=Memory.LINEAR))
        got = fetch(device, texels, texture, DType.UINT8, (np.arange(3),), result=DType.FLOAT32)
        assert np.allclose(got[:, 0], [0, 0.2, 1], rtol=0, atol=2.0**-22)

    def test_two_textures_and_two_launches(self, device: Device) -> None:
        text = (
            "__global__ void k(cudaTextureObject_t a, unsigned long long b, float* y) {\n"
            "  y[threadIdx.x] += tex2D<float>(a, threadIdx.x + 0.5f, 0.5f) - tex1Dfetch<float>(b, threadIdx.x); }\n"
        )
        one, two = (np.random.default_rng(s).integers(0, 9, 32).astype(np.float32) for s in (1, 2))
        buffers = (
            Buffer("one", DType.FLOAT32, 128, one, writable=False, texture=Texture((1, 32))),
            Buffer(
                "two",
                DType.FLOAT32,
                128,
                two,
                writable=False,
                texture=Texture((32,), 1, Sampling(memory=Memory.LINEAR)),
            ),
            Buffer("y", DType.FLOAT32, 128, np.zeros(32, np.float32)),
        )
        both = launch("k", ref("one"), ref("two"), ref("y"))
        outcome = device.run(compiled(device, text), RunRequest(buffers, (both, both)))
        assert isinstance(outcome, Ran), outcome
        assert np.array_equal(outcome.contents["y"], 2 * (one - two))

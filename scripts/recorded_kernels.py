"""How the kernels of the recorded spaces are launched, from their public sources, and the GPUs that they ran on.

A recorded space has values and times, and no launch. What stands here is what a spec block would say. Static shared
memory, which a compiler would tell, counts as dynamic.
"""

from collections.abc import Mapping

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.domain.hardware import GpuFacts, HardwareLimits
from kernel_forge.domain.recorded_space import RecordedSpace
from kernel_forge.domain.spec import BufferArg, KernelSpec, LaunchSpec, Role, Tunable
from kernel_forge.domain.text import Range
from kernel_forge.knowledge import limits_of

# An AMD compute unit (RDNA 2, instruction set reference guide) in the words of the table: 1,024 threads in waves of 32,
# 1,024 registers for each of its 64 lanes, 64 KiB of local memory.
_RDNA2 = HardwareLimits((7, 0), 1024, 32, 65536, 65536, 1024, 65536, 65536, 1)
# Multiprocessors, bandwidth and level-2 cache as the vendors' data sheets have them.
GPUS: Mapping[str, GpuFacts] = {
    "RTX_2080_Ti": GpuFacts(limits_of((7, 5)), 68, 616e9, 5632 << 10),
    "RTX_Titan": GpuFacts(limits_of((7, 5)), 72, 672e9, 6 << 20),
    "A4000": GpuFacts(limits_of((8, 6)), 48, 448e9, 4 << 20),
    "A6000": GpuFacts(limits_of((8, 6)), 84, 768e9, 6 << 20),
    "W6600": GpuFacts(_RDNA2, 28, 224e9, 2 << 20),
}
_X, _Y = "block_size_x", "block_size_y"
_TILES = "(block_size_x * tile_size_x + filter_width - 1) * (block_size_y * tile_size_y + filter_height - 1)"
_TILED = ("cdiv(width, block_size_x * tile_size_x)", "cdiv(height, block_size_y * tile_size_y)")
_IMAGE = {"width": 4096, "height": 4096}
# grid, block, shared memory, sizes, elements of the output
_LAUNCHES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str, dict[str, int], str]] = {
    "convolution": (_TILED, (_X, _Y), f"4 * {_TILES}", _IMAGE, "width * height"),
    "convolution_milo": (_TILED, (_X, _Y), f"4 * use_shmem * {_TILES}", _IMAGE, "width * height"),
    "dedispersion_milo": (_TILED, (_X, _Y), "0", {"width": 25000, "height": 2048}, "width * height"),
    "gemm": (
        ("m / MWG", "n / NWG"),
        ("MDIMC", "NDIMC"),
        "4 * KWG * (SA * MWG + SB * NWG)",
        {"m": 4096, "n": 4096},
        "m * n",
    ),
    "pnpoly": (("cdiv(n, block_size_x * tile_size)",), (_X,), "0", {"n": 20_000_000}, "n"),
}


def described(name: str, recorded: RecordedSpace) -> tuple[KernelSpec, dict[str, int]]:
    """A spec that says how ``name`` is launched, and its sizes."""
    grid, block, shared, sizes, outputs = _LAUNCHES[name]
    numeric = {p: [v for v in values if not isinstance(v, str)] for p, values in recorded.parameters}
    launch = LaunchSpec(name, ("out",), _parsed(grid), _parsed(block), Expression.parse(shared))
    out = BufferArg("out", DType.FLOAT32, (Expression.parse(outputs),), Role.OUT)
    first: dict[str, tuple[Number, ...]] = {p: tuple(values) for p, values in numeric.items()}
    tunables = tuple(Tunable(p, values, values[0]) for p, values in first.items())
    here = Range.of_line(0)
    return KernelSpec(name, "", "", here, here, (out,), (launch,), {}, (sizes,), tunables=tunables), sizes


def _parsed(texts: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(map(Expression.parse, texts))

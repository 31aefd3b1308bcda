"""Textures: what the block says of one, refused where CUDA has no such texture."""

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.expression import Expression
from kernel_forge.domain.finding import Related
from kernel_forge.domain.spec import BufferArg, Role
from kernel_forge.domain.texture import (
    ELEMENTS,
    LANES,
    MAX_EXTENTS,
    MAX_LINEAR,
    SCALED,
    Address,
    Filter,
    Memory,
    Read,
    Sampling,
    Texture,
)
from kernel_forge.spec.block_model import ArgTable, TextureTable
from kernel_forge.spec.problems import BlockText
from kernel_forge.spec.toml_document import Path

_EXAMPLE = 'shape = ["h", "w"], dtype = "float"'


def ask_for_texels(block: BlockText, name: str, declared: tuple[Related, ...], *, is_written: bool) -> None:
    """Note that the texture ``name`` lacks a shape or a dtype, which no signature tells."""
    entry = f"{name} = {{ {_EXAMPLE} }}"
    fixes = () if is_written else (block.insert_lines_fix(("args",), [entry], f"Add {name} to [args]"),)
    message = f"{name} is a texture: say what its texels are, for example {entry}"
    block.add("KF106", message, ("args", name) if is_written else ("args",), key=True, fixes=fixes, related=declared)


def texture_arg(
    block: BlockText, name: str, table: ArgTable, texel: tuple[DType | None, int], extents: tuple[Expression, ...]
) -> BufferArg | None:
    """The texture ``name``, ``texel`` being its element type and lanes; None where CUDA has none such, noted."""
    path: Path = ("args", name)
    given = table.texture or TextureTable()
    dtype, lanes = texel
    problem = _problem(given, dtype, lanes, len(table.shape or ()))
    if table.value is not None:
        problem = ("value", "a texture has texels, not a value; give it a shape")
    elif table.role not in (None, "in"):
        problem = ("role", "a texture is read only: its role is in")
    if problem is not None:
        key, message = problem
        where: Path = (*path, key) if key in ArgTable.model_fields else (*path, "texture", key)
        block.add("KF104", f"{name}: {message}", where if block.is_written(where) else path)
    if problem is not None or dtype is None or not extents:
        return None
    sampling = Sampling(
        Filter(given.filter), Address(given.address), given.normalized, Read(given.read), Memory(given.memory)
    )
    shape = (*extents, Expression.parse(str(lanes))) if lanes > 1 else extents
    return BufferArg(name, dtype, shape, Role.IN, lanes=lanes, texture=sampling)


def _problem(given: TextureTable, dtype: DType | None, lanes: int, dimensions: int) -> tuple[str, str] | None:
    """The key that is wrong, and why."""
    if dtype is None or dtype not in ELEMENTS or lanes not in LANES:
        return "dtype", "texels are float or integers of 8, 16 or 32 bits, alone or in vectors of 2 or 4"
    if given.read == "normalized" and dtype not in SCALED:
        return "read", f"only integers of 8 and 16 bits are read as normalized floats, not {dtype.value}"
    if given.memory == "linear":
        return _problem_in_linear_memory(given, dimensions)
    if not 1 <= dimensions <= 3:
        return "shape", f"a texture has 1, 2 or 3 dimensions, not {dimensions} (lanes come from the dtype: float4)"
    if given.filter == "linear" and dtype is not DType.FLOAT32 and given.read == "element":
        return "filter", 'only floats are filtered: float texels, or integers of 8 and 16 bits with read = "normalized"'
    if given.address in ("wrap", "mirror") and not given.normalized:
        return "address", f"CUDA has {given.address} with normalized coordinates only (normalized = true)"
    return None


def _problem_in_linear_memory(given: TextureTable, dimensions: int) -> tuple[str, str] | None:
    if dimensions != 1:
        return "shape", f"linear memory has one dimension, not {dimensions}"
    if given.filter != "point":
        return "filter", "tex1Dfetch takes single texels: linear memory is not filtered"
    if given.normalized:
        return "normalized", "tex1Dfetch takes the number of a texel: linear memory has no normalized coordinates"
    if given.address != "clamp":
        return "address", "linear memory has no address mode: outside of it tex1Dfetch gives zero"
    return None


def texture_at(arg: BufferArg, shape: tuple[int, ...]) -> Texture | None:
    """The texture of an argument whose shape is ``shape``; None for one that is no texture."""
    if arg.texture is None:
        return None
    return Texture(shape[:-1] if arg.lanes > 1 else shape, arg.lanes, arg.texture)


def texture_problem(arg: BufferArg, shape: tuple[int, ...]) -> str | None:
    """Why no GPU has a texture of this shape."""
    texture = texture_at(arg, shape)
    if texture is None:
        return None
    if 0 in texture.extents:
        return "is a texture and would have no texels, which CUDA does not have; exclude the size with where"
    largest = (MAX_LINEAR,) if texture.sampling.memory is Memory.LINEAR else MAX_EXTENTS[len(texture.extents)]
    if any(n > most for n, most in zip(texture.extents, largest, strict=True)):
        shown, limit = (" x ".join(map(str, e)) for e in (texture.extents, largest))
        return f"is a texture of {shown} texels; GPUs have them up to {limit}"
    return None

"""From a parameter's declarator to what it needs as an argument, or why none can be made."""

from collections.abc import Mapping

from kernel_forge.domain.text import Range
from kernel_forge.source.declarators import Declarator
from kernel_forge.source.model import Param
from kernel_forge.source.scalar_types import ElementType, canonical, element_type

_TEXTURES = frozenset({"cudaTextureObject_t", "CUtexObject", "CUtexObject_v1"})
_HANDLES = {
    "cudaSurfaceObject_t": "a surface object",
    "CUsurfObject": "a surface object",
    "CUtensorMap": "a tensor map",
    "texture": "a texture reference",
}


def read_param(declarator: Declarator, where: Range, aliases: Mapping[str, str], type_names: frozenset[str]) -> Param:
    """Describe one parameter; ``type_names`` are the kernel's template type parameters."""
    name = canonical(declarator.base)
    template_type = name if name in type_names else None
    element = ElementType(name, None) if template_type else element_type(declarator.base, aliases)
    if not template_type and element.spelling in type_names:
        template_type = element.spelling
    depth = declarator.pointers + element.pointers + bool(declarator.extents)
    return Param(
        name=declarator.name,
        type_text=declarator.type_text,
        dtype=element.dtype,
        lanes=element.lanes,
        is_pointer=depth > 0 and not declarator.is_reference and not declarator.is_nested,
        is_const=declarator.is_const or element.is_const,
        is_template_type=template_type,
        range=where,
        unsupported=_trouble(declarator, element, depth, template_type),
        is_texture=element.spelling in _TEXTURES and not depth and not declarator.is_reference,
    )


def _trouble(declarator: Declarator, element: ElementType, depth: int, template_type: str | None) -> str | None:
    text = declarator.type_text
    handle = _HANDLES.get(element.spelling.partition("<")[0].strip())
    if declarator.is_nested:
        return f"`{text}` is a function pointer or a reference to an array; pass a plain pointer instead"
    if declarator.is_pack:
        return f"`{text}` is a parameter pack; verify a kernel with a fixed list of parameters"
    if declarator.is_reference:
        return f"`{text}` is a reference; kernels take values or pointers"
    if handle:
        return f"`{text}` is {handle}; pass a plain pointer instead"
    if element.spelling in _TEXTURES:
        return f"`{text}` points to texture objects; pass each as a parameter" if depth else None
    if depth > 1:
        return f"`{text}` is a pointer to pointers; pass one pointer and compute the offsets instead"
    if template_type:
        return None
    if element.dtype is None:
        if depth and element.spelling == "void":
            return "`void*` has no element type; declare the parameter with the type of its elements"
        if not element.spelling:
            return f"`{text}`: its type cannot be read; write a type that the file defines"
        how = "points to" if depth else "is passed by value as"
        return (
            f"`{text}` {how} `{element.spelling}`, which this file does not define as a number type; "
            "pass a structure's members as separate parameters, or put the alias into this file"
        )
    if element.lanes > 1 and not depth:
        return f"`{text}` passes a vector of {element.lanes} lanes by value; pass its lanes separately"
    return None

"""What can be read off a CUDA file: kernels, parameters, launch sites, variables and macros.

All ranges are :class:`~kernel_forge.domain.text.Range` in code points. Texts are as written in the file,
with runs of white space and comments between tokens reduced to what the tokens need.
"""

from dataclasses import dataclass

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.text import Range


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a kernel.

    Attributes:
        name: empty where the parameter has none.
        type_text: the type as written, declarator symbols included: ``const float* __restrict__``.
        dtype: scalar element type; None for template types and whatever has no counterpart.
        lanes: scalars per element: 4 for ``float4``, else 1.
        is_pointer: pointer or array parameter (a reference is neither).
        is_const: whether the pointee is const; for values, whether the value is.
        is_template_type: name of the template type parameter that is the element type.
        unsupported: why no argument can be made for it, or None.
        is_texture: a texture object, whose texels the signature does not tell.
    """

    name: str
    type_text: str
    dtype: DType | None
    lanes: int
    is_pointer: bool
    is_const: bool
    is_template_type: str | None
    range: Range
    unsupported: str | None = None
    is_texture: bool = False


@dataclass(frozen=True, slots=True)
class TemplateParam:
    """One template parameter; ``kind`` is ``type`` or ``value``, ``type_text`` is ``int`` or ``typename``."""

    name: str
    kind: str
    type_text: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """One ``__global__`` function, its definition where the file has one.

    Attributes:
        qualified_name: with its namespaces; anonymous ones leave no trace.
        range: from the template header or first specifier to the end of the body (or of ``;``).
        signature_range: the same start, up to and including the parameter list's ``)``.
        body_range: both braces included; None for a declaration.
        launch_bounds, cluster_dims: the arguments of the attribute as written; empty without it.
        docs: text of the comment right above, without markers and without any spec block.
    """

    name: str
    qualified_name: str
    range: Range
    name_range: Range
    signature_range: Range
    body_range: Range | None
    params: tuple[Param, ...]
    template_params: tuple[TemplateParam, ...] = ()
    launch_bounds: tuple[str, ...] = ()
    cluster_dims: tuple[str, ...] = ()
    extern_c: bool = False
    docs: str = ""


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """A place that launches a kernel, with the texts of its configuration.

    ``grid`` and ``block`` are empty where they are not written there (``cudaLaunchKernelEx`` takes them in
    a structure). ``args`` is empty for ``cudaLaunchKernel``, which takes an array of pointers.
    """

    kernel: str
    template_args: tuple[str, ...]
    grid: str
    block: str
    shared: str | None
    stream: str | None
    args: tuple[str, ...]
    range: Range
    in_function: str | None
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class Macro:
    """An object-like ``#define NAME VALUE``; ``guarded`` inside ``#ifndef NAME``, so ``-DNAME=`` wins."""

    name: str
    value: str
    guarded: bool
    range: Range
    value_range: Range


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant at file or namespace scope; ``kind`` is ``constexpr``, ``const`` or ``enum``.

    ``is_alone`` where its declaration, which is at ``range``, declares nothing else.
    """

    name: str
    value: str
    kind: str
    is_alone: bool
    range: Range
    name_range: Range


@dataclass(frozen=True, slots=True)
class Symbol:
    """A global variable in device memory; ``space`` is ``constant``, ``device`` or ``managed``.

    ``shape_texts`` are the array extents as written, outermost first; empty for a single value.
    """

    name: str
    dtype: DType | None
    lanes: int
    shape_texts: tuple[str, ...]
    space: str
    range: Range


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A ``__shared__`` variable; ``kernel`` is the function around it, or None at namespace scope."""

    name: str
    kernel: str | None
    dynamic: bool
    range: Range

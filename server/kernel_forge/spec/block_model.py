"""The spec block's format as pydantic models: one place for validation, JSON schema, hover and completion."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, WithJsonSchema

INIT_NAMES = ("normal", "uniform", "permutation", "sorted", "adversarial")
ROLES = ("in", "out", "inout", "scratch")


def _expression_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Arithmetic = Annotated[
    str, BeforeValidator(_expression_text), WithJsonSchema({"type": ["integer", "number", "string"]})
]
"""A number or an expression over sizes, tunables and scalars."""


def _one_or_many(value: object) -> object:
    return value if isinstance(value, list) else [value]


ArithmeticList = Annotated[
    list[Arithmetic],
    BeforeValidator(_one_or_many),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["integer", "string"]},
                {"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 1, "maxItems": 3},
            ]
        }
    ),
]


class Strict(BaseModel):
    """Unknown keys are errors: a misspelt key must not be silently without effect."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InitTable(Strict):
    """How to fill an argument, with parameters."""

    kind: Literal["integers", "constant"] = Field(description="`integers` or `constant`.")
    low: Arithmetic | None = Field(None, description="Smallest integer (may depend on sizes).")
    high: Arithmetic | None = Field(None, description="One more than the largest integer.")
    value: StrictInt | float | StrictBool | None = Field(None, description="The constant.")


class TextureTable(Strict):
    """How fetches read a texture."""

    filter: Literal["point", "linear"] = Field(
        default="point", description="Between texels: `point` takes the texel, `linear` blends the nearest ones."
    )
    address: Literal["clamp", "border", "wrap", "mirror"] = Field(
        default="clamp",
        description="Outside: `clamp`, `border` (zero), and with normalized coordinates `wrap` and `mirror`.",
    )
    normalized: StrictBool = Field(
        default=False, description="Whether coordinates run from 0 to 1 over each dimension."
    )
    read: Literal["element", "normalized"] = Field(
        default="element",
        description="`normalized` gives integers of 8 and 16 bits as floats from 0 (signed: -1) to 1.",
    )
    memory: Literal["array", "linear"] = Field(
        default="array", description="`array` for `tex1D`, `tex2D`, `tex3D`; `linear` for `tex1Dfetch`."
    )


def _init(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class InitName(Strict):
    """How to fill an argument, by name or by a function of the user's."""

    name: str


class ArgTable(Strict):
    """What the signature does not say about one argument."""

    shape: Annotated[
        list[Arithmetic] | None,
        Field(
            description="Extent of each dimension, outermost first, in *scalars* (a `float4*` over n floats has "
            'shape `["n"]`). Expressions over sizes and tunables.'
        ),
    ] = None
    role: Annotated[
        Literal["in", "out", "inout", "scratch"] | None,
        Field(
            description="What the kernel does with the memory: `in`, `out`, `inout`, `scratch`. "
            "`const T*` is `in` without saying so."
        ),
    ] = None
    init: Annotated[
        InitName | InitTable | None,
        BeforeValidator(_init),
        Field(
            description='Contents before the run: `"normal"` (floats, the default), `"uniform"`, `"permutation"`, '
            '`"sorted"`, `"adversarial"`, `"file.py:function"`, or a table '
            '`{ kind = "integers", low = 0, high = 64 }`, `{ kind = "constant", value = 0 }`.'
        ),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"$model": "InitTable"}]}),
    ] = None
    value: Annotated[
        Arithmetic | StrictBool | None,
        Field(description="Value of a scalar parameter: a number or an expression over the sizes."),
    ] = None
    dtype: Annotated[
        str | None,
        Field(
            description="Element type, where the parameter's type comes from a header: `float`, `half`, `int32`, ..., "
            "and of a texture's texels: `float`, `float4`, `uchar`, ..."
        ),
    ] = None
    texture: Annotated[
        TextureTable | None,
        Field(
            description="How a texture object is read: "
            '`{ filter = "linear", address = "border", normalized = true }`; left out, as CUDA does by default. The '
            "reference sees an array of the texels (with the lanes of `float2` or `float4` as last dimension)."
        ),
    ] = None


def _arg(value: object) -> object:
    return {"value": value} if isinstance(value, int | float | str | bool) else value


class LaunchTable(Strict):
    """One kernel launch."""

    kernel: str | None = Field(None, description="Kernel of this launch, with template arguments.")
    grid: ArithmeticList | None = Field(None, description='Blocks per dimension: `"cdiv(n, BLOCK)"` or a list.')
    block: ArithmeticList | None = Field(None, description='Threads per dimension: `"BLOCK"` or a list.')
    shared: Arithmetic | None = Field(None, description="Dynamic shared memory in bytes.")
    cluster: ArithmeticList | None = Field(None, description="Blocks per cluster (compute capability 9.0).")
    cooperative: StrictBool = Field(False, description="Launch cooperatively, for `grid.sync()`.")
    stream: Annotated[
        str | None,
        Field(
            pattern=r"^[\w-]{1,40}$",
            description='Stream of this launch, a word such as `"copy"`. Launches of different streams may run at the '
            "same time; one that names none waits for all before it, and those after wait for it.",
        ),
    ] = None
    args: Annotated[
        list[str] | dict[str, str] | None,
        Field(description="Arguments in parameter order, or a table parameter -> argument, where the names differ."),
    ] = None


class ToleranceTable(Strict):
    """A tolerance in place of the derived one. Shown in every verdict."""

    absolute: StrictInt | float = Field(0.0, ge=0, description="Absolute part.")
    relative: StrictInt | float = Field(0.0, ge=0, description="Part relative to the expected value.")


def _reference(value: object) -> object:
    return {"": value} if isinstance(value, str) else value


def _launches(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class Block(Strict):
    """One spec block."""

    kernel: str = Field(
        description='Name of the kernel below, with template arguments where it has any: `"f<BLOCK, float>"`.'
    )
    reference: Annotated[
        dict[str, str],
        BeforeValidator(_reference),
        Field(
            description='What each output must be: a NumPy expression over the arguments, `"file.py:function"` or '
            '`"kernel:name"`. A bare string serves where there is one output.'
        ),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}),
    ]
    cases: list[dict[str, StrictInt]] = Field(
        default=[{}],
        min_length=1,
        description="Values of the sizes; the first case is the one to tune for.",
    )
    where: list[str] = Field(default_factory=list, description='Which sizes are legal: `["n % 256 == 0"]`.')
    args: dict[
        str,
        Annotated[
            ArgTable,
            BeforeValidator(_arg),
            WithJsonSchema({"anyOf": [{"$model": "ArgTable"}, {"type": ["number", "string", "boolean"]}]}),
        ],
    ] = Field(default_factory=dict, description="What the signature does not say, per argument.")
    launch: Annotated[
        list[LaunchTable],
        BeforeValidator(_launches),
        Field(description="Grid, block and shared memory; an array of tables for several launches in a row."),
        WithJsonSchema(
            {
                "anyOf": [
                    {"$model": "LaunchTable"},
                    {"type": "array", "items": {"$model": "LaunchTable"}},
                ]
            }
        ),
    ] = Field(default_factory=list)
    tune: dict[str, list[StrictInt | float | StrictBool | str]] = Field(
        default_factory=dict,
        description="Tunable parameters and their values, and `where` with constraints between them.",
    )
    tolerance: ToleranceTable | None = Field(
        None, description="A tolerance in place of the derived one; shown in every verdict."
    )
    baseline: str | None = Field(None, description="What a speed is compared with.")
    gate: float | None = Field(None, gt=0, description="Largest slowdown accepted, 1.05 for 5 %.")


def json_schema() -> dict[str, Any]:
    """The JSON schema of a spec block."""
    schema = Block.model_json_schema()
    definitions: dict[str, Any] = schema.setdefault("$defs", {})
    for model in (ArgTable, InitTable, LaunchTable, TextureTable):
        own = model.model_json_schema()
        definitions.update(own.pop("$defs", {}))
        definitions[model.__name__] = own
    schema = dict(_with_references(schema))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Kernel Forge spec block"
    return schema


def _with_references(node: Any) -> Any:
    """``node`` with the models that a ``$model`` names as references (pydantic only refers to what it made itself)."""
    if isinstance(node, dict):
        if "$model" in node:
            return {"$ref": f"#/$defs/{node['$model']}"}
        return {key: _with_references(value) for key, value in node.items()}
    return [_with_references(value) for value in node] if isinstance(node, list) else node


Model = type[BaseModel]


def model_at(path: tuple[str | int, ...]) -> Model | None:
    """The model whose fields are the legal keys in the table at ``path``; None where keys are free names."""
    names = tuple(p for p in path if isinstance(p, str))
    match names:
        case ():
            return Block
        case ("args", _):
            return ArgTable
        case ("args", _, "init"):
            return InitTable
        case ("args", _, "texture"):
            return TextureTable
        case ("launch",):
            return LaunchTable
        case ("tolerance",):
            return ToleranceTable
        case _:
            return None

"""The prompts of ``prompts/``: read, checked, and rendered with every input that they declare and no other."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.front_matter import split_front_matter
from kernel_forge.resources import prompts_folder

SUFFIX = ".jinja"
_KEYS = {"id", "version", "inputs", "parameters", "changelog"}
_BLOCKS = ("system", "user")


class PromptFileError(InternalError):
    """A prompt's file is not as it must be; the message names the file."""


class PromptInputsError(InternalError):
    """A prompt was given inputs other than those that it declares.

    Attributes:
        missing: names that it declares and did not get.
        surplus: names that it got and does not declare.
    """

    def __init__(self, prompt: str, missing: tuple[str, ...], surplus: tuple[str, ...]) -> None:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has no input {', '.join(surplus)}"] if surplus else []
        super().__init__(f"prompt {prompt} {' and '.join(said)}")
        self.missing = missing
        self.surplus = surplus


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a model is sent, and where it came from.

    Attributes:
        id: of the prompt.
        version: of the prompt.
        hash: SHA-256 of the prompt's file and of the parts that it includes, in hexadecimal digits.
        system: the system text. It depends on nothing that changes while one kernel is made, so that it can be cached.
        user: the user's turn.
    """

    id: str
    version: int
    hash: str
    system: str
    user: str


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """How a model is to be asked; ``temperature`` None leaves it to the model."""

    max_tokens: int
    temperature: float | None


@dataclass(frozen=True)
class Prompt:
    """One file of ``prompts/``.

    Attributes:
        id: its file's stem.
        version: counts from 1; a changed text has a new one.
        hash: as in :class:`Rendered`.
        inputs: name -> what it is.
        parameters: how to ask.
        changelog: version -> what is new in it; there is a line for every version.
    """

    id: str
    version: int
    hash: str
    inputs: Mapping[str, str]
    parameters: ModelParameters
    changelog: Mapping[int, str]
    _template: Template = field(repr=False, compare=False)

    def render(self, **inputs: object) -> Rendered:
        """The texts for these inputs.

        Raises:
            PromptInputsError: an input is missing, or is none of the prompt's.
            PromptFileError: the text asks something of an input that it does not have.
        """
        missing = tuple(sorted(self.inputs.keys() - inputs.keys()))
        surplus = tuple(sorted(inputs.keys() - self.inputs.keys()))
        if missing or surplus:
            raise PromptInputsError(self.id, missing, surplus)
        try:
            system, user = (self._block(name, inputs) for name in _BLOCKS)
        except TemplateError as error:
            raise PromptFileError(f"prompt {self.id} cannot be rendered: {error}") from error
        return Rendered(self.id, self.version, self.hash, system, user)

    def _block(self, name: str, inputs: Mapping[str, object]) -> str:
        context = self._template.new_context(dict(inputs))
        return "".join(self._template.blocks[name](context)).strip() + "\n"


@cache
def prompts() -> Mapping[str, Prompt]:
    """The prompts that ship with the package, by their id.

    Raises:
        PromptFileError: as :func:`read_prompts`.
    """
    return read_prompts(prompts_folder())


def read_prompts(folder: Path) -> Mapping[str, Prompt]:
    """The prompts in a folder: each ``*.jinja`` in it; those in ``parts/`` are there to be included.

    Raises:
        PromptFileError: one cannot be read, or is not as it must be.
    """
    parts = {f"parts/{path.name}": _text(path) for path in sorted((folder / "parts").glob(f"*{SUFFIX}"))}
    read = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            read[path.stem] = _prompt(path.stem, _text(path), parts)
        except (ValueError, TemplateError) as error:
            raise PromptFileError(f"{path}: {error}") from None
    return read


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptFileError(f"{path} cannot be read: {error}") from None


def _prompt(stem: str, text: str, parts: Mapping[str, str]) -> Prompt:
    table, body = split_front_matter(text)
    missing, unknown = sorted(_KEYS - table.keys()), sorted(table.keys() - _KEYS)
    if missing or unknown:
        raise ValueError(f"its front matter lacks {missing[0]}" if missing else f"{unknown[0]} is no key of a prompt")
    name, version = table["id"], table["version"]
    if name != stem:
        raise ValueError(f"its id is {name!r}, and its file's name another")
    if not isinstance(version, int) or version < 1:
        raise ValueError("its version is a number from 1 on")
    environment = _environment(parts)
    included = _included(body, parts, environment)
    inputs = _lines(table["inputs"], "inputs")
    _check_names(inputs, [body, *included.values()], environment)
    template = environment.from_string(body)
    if set(template.blocks) != set(_BLOCKS):
        raise ValueError(f"it has the blocks {' and '.join(_BLOCKS)}, and no other")
    return Prompt(
        stem, version, _hash(text, included), inputs, _parameters(table["parameters"]),
        _changelog(table["changelog"], version), template,
    )  # fmt: skip


def _environment(parts: Mapping[str, str]) -> ImmutableSandboxedEnvironment:
    # No escaping: models read plain text. Values are never read as templates, whatever they contain.
    return ImmutableSandboxedEnvironment(
        loader=DictLoader(parts),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _included(body: str, parts: Mapping[str, str], environment: ImmutableSandboxedEnvironment) -> dict[str, str]:
    """Every part that ``body`` includes, directly or through others, by its name."""
    found: dict[str, str] = {}
    waiting = [body]
    while waiting:
        for name in meta.find_referenced_templates(environment.parse(waiting.pop())):
            if name is None or name not in parts:
                raise ValueError(f"it includes {name or 'what only an input says'}, which is no part")
            if name not in found:
                found[name] = parts[name]
                waiting.append(parts[name])
    return found


def _check_names(inputs: Mapping[str, str], texts: list[str], environment: ImmutableSandboxedEnvironment) -> None:
    """That the texts read the declared inputs, all of them and nothing else."""
    read = set().union(*(meta.find_undeclared_variables(environment.parse(text)) for text in texts))
    if read - inputs.keys():
        raise ValueError(f"it reads {min(read - inputs.keys())}, which is none of its inputs")
    if inputs.keys() - read:
        raise ValueError(f"its input {min(inputs.keys() - read)} is never read")


def _lines(table: object, what: str) -> dict[str, str]:
    if not isinstance(table, dict) or not table:
        raise ValueError(f"{what} is a table")
    wrong = next((k for k, v in table.items() if not isinstance(v, str) or not v.strip() or "\n" in v), None)
    if wrong is not None:
        raise ValueError(f"{what}.{wrong} is one line of text")
    return table


def _parameters(table: Any) -> ModelParameters:
    if not isinstance(table, dict) or not {"max_tokens"} <= table.keys() <= {"max_tokens", "temperature"}:
        raise ValueError("parameters are max_tokens and, where it matters, temperature")
    tokens, temperature = table["max_tokens"], table.get("temperature")
    if not isinstance(tokens, int) or tokens < 1:
        raise ValueError("max_tokens is a number from 1 on")
    if temperature is not None and not (isinstance(temperature, int | float) and 0 <= temperature <= 1):
        raise ValueError("temperature lies between 0 and 1")
    return ModelParameters(tokens, temperature)


def _changelog(table: object, version: int) -> dict[int, str]:
    lines = _lines(table, "changelog")
    if sorted(lines) != sorted(str(n) for n in range(1, version + 1)):
        raise ValueError(f"its changelog has a line for each version from 1 to {version}")
    return {int(key): line for key, line in lines.items()}


def _hash(text: str, included: Mapping[str, str]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(included):
        digest.update(f"\0{name}\0{included[name]}".encode())
    return digest.hexdigest()

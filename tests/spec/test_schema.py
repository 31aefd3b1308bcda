"""The JSON schema accepts what the reader accepts: the blocks of the example kernels."""

from pathlib import Path

import jsonschema
import pytest

from kernel_forge.source import parse
from kernel_forge.spec import json_schema, read_specs
from kernel_forge.spec.toml_document import TomlDocument, parse_toml
from tests.spec.reading import GOOD

FILES = sorted((Path(__file__).parents[1] / "kernels").glob("*.cu"))


def validate(toml: str) -> None:
    document = parse_toml(toml)
    assert isinstance(document, TomlDocument)
    jsonschema.Draft202012Validator(json_schema()).validate(document.data)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_examples(path: Path) -> None:
    source = parse(path.read_text(), str(path))
    for comment in source.blocks:
        validate(comment.toml)
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), beside.read_text()) if beside.exists() else None
    reading = read_specs(source, sidecar)
    assert not [p.message for p in reading.problems]
    assert reading.specs


@pytest.mark.parametrize(
    ("old", "new"),
    [("cases", "csaes"), ("grid =", "gird ="), ("{ a = 2.0 }", '{ x = { role = "output" } }'), ("n = 100", 'n = "1"')],
)
def test_what_the_reader_refuses_the_schema_refuses(old: str, new: str) -> None:
    validate(GOOD)
    with pytest.raises(jsonschema.ValidationError):
        validate(GOOD.replace(old, new))


@pytest.mark.parametrize("init", ['"normal"', '{ kind = "constant", value = 0 }', '"f.py:g"'])
def test_inits(init: str) -> None:
    validate(GOOD.replace("{ a = 2.0 }", f"{{ a = 2.0, x = {{ init = {init} }} }}"))

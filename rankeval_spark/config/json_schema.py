"""Files of ``rankeval init``: ``template.yaml``, and the JSON Schema for completion and checks in editors.

``python -m rankeval_spark.config.json_schema`` writes ``evaluation.schema.json``, which is part of the wheel.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rankeval_spark.config.base import Model
from rankeval_spark.config.evaluation_config import EvaluationConfig
from rankeval_spark.errors import ConfigError, Fault

TEMPLATE: Final = "template.yaml"
SCHEMA: Final = "evaluation.schema.json"  # next to the config, whose first line refers to it


def template_text(name: str) -> str:
    """Return the text of one of the two files, also from a zip."""
    return resources.files("rankeval_spark.config").joinpath(name).read_text(encoding="utf-8")


def write_config(path: Path, text: str) -> Path:
    """Write a config and the JSON Schema next to it, and return the path of this; ConfigError where the file exists."""
    schema = path.with_name(SCHEMA)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        schema.write_text(template_text(SCHEMA), encoding="utf-8")
    except FileExistsError:
        found = "an existing file or folder"
        raise ConfigError(Fault(str(path), found, "a new file", "choose another name, or remove it")) from None
    except OSError as error:
        found = f"a path that cannot be written ({error.strerror})"
        raise ConfigError(Fault(str(path), found, "a file in a folder that can be written")) from None
    return schema


_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of :class:`~rankeval_spark.config.EvaluationConfig`."""
    described = EvaluationConfig.model_json_schema()
    models = {model.__name__: model for model in _all_models(Model)}
    for name, part in {EvaluationConfig.__name__: described, **described["$defs"]}.items():
        for key, text in _read_descriptions(models[name]).items() if name in models else ():
            part["properties"][key]["description"] = text
    properties = described["properties"]
    described["properties"] = {**{name: properties[name] for name in ("evaluation", "inputs")}, **properties}  # first
    for model in (described, *described["$defs"].values()):  # a key with a default may have no value
        required = model.get("required", [])
        for name, part in model.get("properties", {}).items():
            if name not in required and "anyOf" not in part:
                rest = {key: part.pop(key) for key in ("description", "default", "title") if key in part}
                model["properties"][name] = {"anyOf": [part, {"type": "null"}], **rest}
    return {"$schema": _DIALECT, **_join_lines(described)}


def schema_text() -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(build_schema(), indent=2, sort_keys=True) + "\n"


def _all_models(base: type[Model]) -> Iterator[type[Model]]:
    """Yield the subclasses of a model, and theirs."""
    for model in base.__subclasses__():
        yield model
        yield from _all_models(model)


def _read_descriptions(model: type[Model]) -> dict[str, str]:
    """Read the texts below the keys of a model from its source, which pydantic does at import, too slowly."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, Model):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        for key, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else []):
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(text, ast.Expr):
                found[key.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    return {name: text for name, text in found.items() if name in model.model_fields}


def _join_lines(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Remove the line breaks of docstrings from descriptions."""
    if isinstance(value, dict):
        return {
            key: " ".join(part.split()) if key == "description" and isinstance(part, str) else _join_lines(part)
            for key, part in value.items()
        }
    return [_join_lines(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    Path(__file__).with_name(SCHEMA).write_text(schema_text(), encoding="utf-8")

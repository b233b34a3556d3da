"""The files that a config begins with: ``template.yaml``, and the JSON Schema that editors check it by."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from rankeval_spark.errors import ConfigError, Fault

TEMPLATE: Final = "template.yaml"
SCHEMA: Final = "evaluation.schema.json"
"""Name of the schema file next to the config, whose first line names it."""


def text_of(name: str) -> str:
    """Return the text of one of the two files, from a folder or from a zip."""
    return resources.files("rankeval_spark.config").joinpath(name).read_text(encoding="utf-8")


def write(path: Path) -> Path:
    """Write a copy of the template, and the JSON Schema next to it; return the path of the schema.

    Raises
    ------
    ConfigError
        Something is there already, or the folder cannot be written.
    """
    schema = path.with_name(SCHEMA)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text_of(TEMPLATE))
        schema.write_text(text_of(SCHEMA), encoding="utf-8")
    except FileExistsError:
        found = "a file or folder that is there already"
        raise ConfigError(Fault(str(path), found, "a new file", "choose another name, or remove it")) from None
    except OSError as error:
        found = f"a place that cannot be written ({error.strerror})"
        raise ConfigError(Fault(str(path), found, "a file in a folder that can be")) from None
    return schema

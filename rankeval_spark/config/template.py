"""The files of ``rankeval init``: ``template.yaml``, and the JSON Schema with which editors check it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from rankeval_spark.errors import ConfigError, Fault

TEMPLATE: Final = "template.yaml"
SCHEMA: Final = "evaluation.schema.json"
"""Name of the schema file next to the config; the first line of the config refers to it."""


def template_text(name: str) -> str:
    """Return the text of one of the two files, also from a zip."""
    return resources.files("rankeval_spark.config").joinpath(name).read_text(encoding="utf-8")


def write_config(path: Path, text: str) -> Path:
    """Write a config, such as the template, and the JSON Schema next to it; return the path of the schema.

    Raises
    ------
    ConfigError
        The file exists, or the folder cannot be written.
    """
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
